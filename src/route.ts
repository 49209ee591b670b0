/**
 * What an operation is. A slice states what its operations need and one function for each; HTTP, MCP, the
 * dashboard, the OpenAPI document and the tests that hold for every operation read the same list.
 */
import type { z } from 'zod'
import type { App } from './app.ts'
import type { Tx } from './db/sql.ts'
import type { ErrorCode } from './lib/errors.ts'

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

export const allowlists = ['campaign_user', 'campaign_workspace'] as const
export type Allowlist = (typeof allowlists)[number]

/** On whose behalf something happens: an API key, or a person at the dashboard. */
export interface Caller {
  readonly workspace_id: string
  readonly user_id: string
  readonly scopes: readonly Scope[]
  readonly via:
    | { readonly kind: 'key'; readonly id: string; readonly name: string; readonly prefix: string }
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

export interface Reply {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export function ok(body: unknown): Reply {
  return { status: 200, body }
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

interface Described {
  /** Its name: operationId, capability in /me, and the scope of its idempotency keys. */
  readonly name: string
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: `/${string}`
  readonly summary: string
  readonly description?: string
  /** `required`: always named. `extended`: may be left out with that gate. `optional`: a filter. */
  readonly account?: 'required' | 'extended' | 'optional'
  /** What a malformed path parameter answers, where it is not 400. */
  readonly malformed?: ErrorCode
  /** 409 instead of 400 for an idempotency key that was used for another payload. */
  readonly collision?: 400 | 409
  /** Bytes of JSON; CONTRACT 1 says 1 MiB unless an operation needs more. */
  readonly body_limit?: number
  readonly response: z.ZodType
  readonly statuses?: readonly [number, ...number[]]
  /** What it can refuse with, beyond what its needs imply. */
  readonly errors?: readonly (ErrorCode | readonly [ErrorCode, number])[]
  readonly example: {
    readonly params?: Readonly<Record<string, string>>
    readonly query?: Readonly<Record<string, string>>
    readonly body?: unknown
    readonly response: unknown
  }
}

export interface Call<P, Q, B> {
  readonly caller: Caller
  readonly params: P
  readonly query: Q
  readonly body: B
  /** The named account, or every eligible one of the workspace where none was named. */
  readonly accounts: readonly Account[]
}

interface Input<P, Q, B> {
  readonly params?: z.ZodType<P>
  readonly query?: z.ZodType<Q>
  readonly body?: z.ZodType<B>
  /** Where the body decides what is needed: checked again once it is known. */
  readonly variant?: (body: B) => Needs
}

interface Read<P, Q, B> {
  readonly effect: 'read'
  readonly handle: (app: App, call: Call<P, Q, B>) => Promise<Reply>
}

/** Changes our database only: the key's row, the effect and the stored answer commit together. */
interface Local<P, Q, B> {
  readonly effect: 'local'
  readonly handle: (app: App, tx: Tx, call: Call<P, Q, B>) => Promise<Reply>
}

export type Spec<P, Q, B> = Described & Needs & Input<P, Q, B> & (Read<P, Q, B> | Local<P, Q, B>)

/** Any route: its schemas and its function belong together, and only `perform` brings them together. */
export type Route = Spec<never, never, never>

export function route<P = undefined, Q = undefined, B = undefined>(spec: Spec<P, Q, B>): Route {
  return spec as unknown as Route
}
