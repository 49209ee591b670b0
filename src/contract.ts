/** The contract's names, which all other code uses. */
import type { Traceparent } from './lib/traceparent.ts'

export const contractVersion = '1.0.0'
export const apiPrefix = '/api/v1'
export const mcpPath = '/api/mcp'
/** Paths for a signed-in user in a workspace, and for the user's own data. */
export const workspacePrefix = '/dashboard/api/w/{workspace_id}'
export const ownPrefix = '/dashboard/api'

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

export const scopes = [
  'read',
  'write',
  'send',
  'campaigns',
  'people',
  'people_export',
  'people_erase',
] as const
/** What a key for everyday work has: what is known of a person is asked for by name. */
export const everydayScopes = ['read', 'write', 'send', 'campaigns'] as const satisfies readonly Scope[]
export type Scope = (typeof scopes)[number]

export const allowlists = ['campaign_user', 'campaign_workspace'] as const
export type Allowlist = (typeof allowlists)[number]

/** A user's role in a workspace. Each may do what those before it may. */
export const roles = ['member', 'admin', 'owner'] as const
export type Role = (typeof roles)[number]

/** What a user may do, by their role in the workspace. A key has its own scopes, within those of its maker's role. */
export const scopesOfRole: Readonly<Record<Role, readonly Scope[]>> = {
  member: ['read', 'write', 'send', 'people'],
  admin: scopes,
  owner: scopes,
}

/** Who issued a key: its own user, or an operator at the terminal for its user. */
export const keyIssuers = ['user', 'operator'] as const
export type KeyIssuer = (typeof keyIssuers)[number]

interface ViaKey {
  readonly kind: 'key'
  readonly id: string
  readonly name: string
  readonly prefix: string
  readonly mcp_only: boolean
  /** What an operator issued has what the operator gave it, whatever the role of its user. */
  readonly issued_by: KeyIssuer
  /** Of its user, at this moment. */
  readonly role: Role
}

/** How a user proved who they are: with a local password (issuer `local`), or at an identity provider. */
export interface Identity {
  readonly issuer: string
  readonly subject: string
  readonly idp_user_uuid: string
}

/** A user who is signed in at the dashboard. */
interface ViaSession {
  readonly kind: 'session'
  readonly id: string
  /** Null outside a workspace. */
  readonly role: Role | null
  readonly operator: boolean
  readonly identity: Identity
  /** What the browser sent of its last sign-in. */
  readonly device_token?: string | undefined
}

/** For whom something happens in a workspace: an API key, a dashboard user, an operator at the terminal. */
export interface Caller {
  readonly workspace_id: string
  readonly user_id: string
  readonly scopes: readonly Scope[]
  readonly via: ViaKey | ViaSession | { readonly kind: 'terminal' }
  /** The trace that this request belongs to, if the caller named one. */
  readonly traceparent?: Traceparent | undefined
}

/** A signed-in user who requests their own data, outside any workspace. */
export interface UserCaller {
  readonly user_id: string
  readonly via: ViaSession
}

/** A person who has not signed in yet. */
export interface Visitor {
  readonly via: {
    readonly kind: 'visitor'
    readonly address: string
    readonly user_agent: string
    /** From the request's cookie, so that signing in can end the previous session. */
    readonly session_token: string | undefined
    /** Distinguishes a browser that has signed in before from strangers. */
    readonly device_token: string | undefined
  }
}

export type AnyCaller = Caller | UserCaller | Visitor

/** A messaging account in the caller's workspace. What acts with it needs it READY. */
export interface Account {
  readonly id: string
  readonly provider: string
  readonly type: 'MESSAGING'
  readonly name: string
  readonly status: string
}

/** What the instance and the caller must satisfy before the input is read. */
export interface Needs {
  /** Any one of these. Empty: a route for people, which no key may use. */
  readonly scopes: readonly Scope[]
  /** At least this role in the workspace: of the user at the dashboard, or of the maker of the key. */
  readonly role?: Role
  /** Only users who may change what applies to the whole instance. No key may. */
  readonly operator?: true
  /** All of these, besides `rest`. */
  readonly gates?: readonly Gate[]
  readonly allowlists?: readonly Allowlist[]
  readonly idempotency?: 'required' | 'optional'
}

/** What capabilities know of a route, for /me and the ledger. */
export interface RouteInfo extends Needs {
  /** Its name: operationId, capability in /me, and the scope of its idempotency keys. */
  readonly name: string
  /** Whether it reads, changes our own database, acts on a platform, or does what operators also do at the terminal. */
  readonly effect: 'read' | 'local' | 'platform' | 'admin'
  /** What the ledger says was done, as a sentence, if the response has no `message` that says so. */
  readonly done?: string
}

/** Whose rows these are: an account, and the workspace it belongs to. */
export interface AccountKey {
  readonly account_id: string
  readonly workspace_id: string
}
