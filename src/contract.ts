/** The words of the contract that everything else is spelled with. */

export const contractVersion = '1.0.0'
export const apiPrefix = '/api/v1'

export const gates = [
  'rest',
  'crm',
  'pipeline',
  'analytics',
  'start_chat',
  'campaigns',
  'scoped_routing',
  'campaign_mutation',
  'branching',
  'read_receipts',
  'broadcast',
  'extended',
  'mcp_send',
  'mcp_pipeline',
  'mcp_columns',
] as const
export type Gate = (typeof gates)[number]

export const scopes = ['read', 'write', 'send', 'campaigns'] as const
export type Scope = (typeof scopes)[number]

const allowlists = ['campaign_user', 'campaign_workspace'] as const
export type Allowlist = (typeof allowlists)[number]

/** On whose behalf something happens: an API key, or a person at the dashboard. */
export interface Caller {
  readonly workspace_id: string
  readonly user_id: string
  readonly scopes: readonly Scope[]
  readonly via:
    | {
        readonly kind: 'key'
        readonly id: string
        readonly name: string
        readonly prefix: string
        readonly mcp_only: boolean
      }
    | { readonly kind: 'session' }
}

/** A messaging account that may be used: READY, and of the caller's workspace. */
export interface Account {
  readonly id: string
  readonly provider: string
  readonly type: 'MESSAGING'
  readonly name: string
  readonly status: string
}

/** What has to be true of the instance and the caller before the input is looked at. */
export interface Needs {
  /** Any one of these. */
  readonly scopes: readonly Scope[]
  /** All of these, besides `rest`. */
  readonly gates?: readonly Gate[]
  readonly allowlists?: readonly Allowlist[]
  readonly idempotency?: 'required' | 'optional'
}

/** What /me shows of a route. */
export interface RouteInfo extends Needs {
  /** Its name: operationId, capability in /me, and the scope of its idempotency keys. */
  readonly name: string
  /** Whether it reads, changes our own database, or acts on a platform. */
  readonly effect: 'read' | 'local' | 'platform'
}

/** Whose rows these are: an account, and the workspace it belongs to. */
export interface AccountKey {
  readonly account_id: string
  readonly workspace_id: string
}

// The search slice, which is being rewritten, still says Owner.
