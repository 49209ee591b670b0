/**
 * What a route is. A slice states what each of its routes needs, and one function; HTTP, MCP, the dashboard, the
 * OpenAPI document and the tests that hold for every route read the same list.
 */
import type { z } from 'zod'
import type { App, Rule } from './app.ts'
import type { Account, AnyCaller, Caller, Gate, Needs, RouteInfo, UserCaller, Visitor } from './contract.ts'
import type { Tx } from './db/sql.ts'
import type { ApiError, ErrorCode } from './lib/errors.ts'
import type { NewOperation, OperationKind } from './operation.ts'

export interface Reply {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** The session that begins with this answer, for the cookie; null ends it. Only routes of the dashboard have one. */
  readonly session_token?: string | null
  /** What the browser brings back from the identity provider. */
  readonly oidc_flow?: { readonly cookie: string; readonly seconds: number }
}

/** JSON that the database has written already; it goes out as it is. */
export class Json {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/**
 * A text too long to be held at once. It has begun when it is made, so what cannot be read is refused while there is
 * still a status to refuse it with; what fails later ends the connection.
 */
export class Stream implements AsyncIterable<string> {
  readonly #rest: AsyncGenerator<string>
  readonly #begun: IteratorResult<string>[]

  private constructor(begun: IteratorResult<string>, rest: AsyncGenerator<string>) {
    this.#begun = [begun]
    this.#rest = rest
  }

  static async begin(chunks: AsyncGenerator<string>): Promise<Stream> {
    return new Stream(await chunks.next(), chunks)
  }

  [Symbol.asyncIterator](): AsyncIterator<string> {
    return {
      next: async () => this.#begun.shift() ?? this.#rest.next(),
      return: () => this.#rest.return(undefined),
    }
  }
}

/** A form as it came in: its fields, and its one file, which is stored already unless there is a refusal. */
export class Form {
  readonly fields: Readonly<Record<string, unknown>>
  readonly attachment: FormFile
  /** Why the file was not stored. */
  readonly refusal: ApiError | undefined

  constructor(fields: Readonly<Record<string, string>>, attachment: FormFile, refusal?: ApiError) {
    this.fields = { ...fields, attachment }
    this.attachment = attachment
    this.refusal = refusal
  }

  /** What an idempotency key compares: the fields and the file's content, not where it is stored. */
  identity(): unknown {
    const { file_id: _, ...attachment } = this.attachment
    return { ...this.fields, attachment }
  }
}

export interface FormFile {
  readonly file_id: string
  readonly file_name: string
  readonly media_type: string
  readonly size: number
  readonly sha256: string
}

export function ok(body: unknown): Reply {
  return { status: 200, body }
}

interface Described extends RouteInfo {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: `/${string}`
  /** Who asks, where it is not a caller in a workspace: `ownRoute` and `visitorRoute` say so. */
  readonly asked_by?: 'user' | 'visitor'
  readonly summary: string
  readonly description?: string
  /** `required`: always named. `extended`: may be left out with that gate. `optional`: a filter. `all`: never named. */
  readonly account?: 'required' | 'extended' | 'optional' | 'all'
  /** What a malformed path parameter answers, where it is not 400. */
  readonly malformed?: ErrorCode
  /** 409 instead of 400 for an idempotency key that was used for another payload. */
  readonly collision?: 400 | 409
  /** Takes a form with one file as well, for the platform: what its fields are, and the file as `attachment`. */
  readonly form?: z.ZodType
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

export interface Call<P, Q, B, C = undefined, W = Caller> {
  readonly caller: W
  readonly params: P
  readonly query: Q
  readonly body: B
  /** What `check` returned. */
  readonly checked: C
  /** The named account, or every eligible one of the workspace where none was named. */
  readonly accounts: readonly Account[]
  /** The caller's idempotency key, where one came. */
  readonly key: string | undefined
  /** Aborted once the caller has left and would not hear the answer: for work that takes seconds. */
  readonly left?: (() => AbortSignal) | undefined
}

interface Input<P, Q, B, C, W> {
  readonly params?: z.ZodType<P>
  readonly query?: z.ZodType<Q>
  readonly body?: z.ZodType<B>
  /** Where the input decides what is needed: checked again once it is known. Throws where the gates forbid the input. */
  readonly variant?: (input: { readonly query: Q; readonly body: B }, gates: ReadonlySet<Gate>) => Needs
  /** What a schema cannot see, such as who a cursor was made for. Throws, or hands on what it has read. */
  readonly check?: (app: App, caller: W, input: { readonly query: Q; readonly body: B }) => C | Promise<C>
}

/** The schemas of a route have made it, and its own function takes it. */
export type AnyCall = Call<never, never, never, never, never>

interface Read<P, Q, B, C, W> {
  readonly effect: 'read'
  readonly handle: (app: App, call: Call<P, Q, B, C, W>) => Promise<Reply>
}

/** Changes our database only: the key's row, the effect and the stored answer commit together. */
interface Local<P, Q, B, C, W> {
  readonly effect: 'local'
  /** What one workspace may ask for, counted over all processes. A replay is not counted. */
  readonly workspace_limit?: (app: App) => Rule
  /** Throws where what the request names is not there: that is told before the limit, and counts for nothing. */
  readonly require_resources?: (app: App, call: Call<P, Q, B, C, W>) => Promise<unknown>
  readonly handle: (app: App, tx: Tx, call: Call<P, Q, B, C, W>) => Promise<Reply>
}

/** Reaches the platform: a row of the ledger, executed once by the worker that drives the account. */
interface OnPlatform<P, Q, B, C, W> {
  readonly effect: 'platform'
  readonly operation: OperationKind
  /** What is wanted; throws where it cannot be. Nothing is written yet. */
  readonly handle: (app: App, call: Call<P, Q, B, C, W>) => Promise<NewOperation>
  /** What one account may ask for, each counted over all processes. */
  readonly account_limits?: (app: App) => readonly Rule[]
  /** The status a caller gets during a flood wait. */
  readonly flood: 429 | 503
  /** A second operation once the first has completed, under the same key: a row of its own. */
  readonly followed_by?: {
    readonly operation: OperationKind
    readonly wanted: (body: B) => boolean
    readonly next: (call: Call<P, Q, B, C, W>, reply: unknown) => NewOperation
  }
}

/**
 * Does what operators do at the terminal too, by the same function of the capability, which makes its own transaction and
 * records the change in the audit log.
 */
interface Admin<P, Q, B, C, W> {
  readonly effect: 'admin'
  readonly handle: (app: App, call: Call<P, Q, B, C, W>) => Promise<Reply>
}

type Spec<P, Q, B, C, W> = Described &
  Input<P, Q, B, C, W> &
  (Read<P, Q, B, C, W> | Local<P, Q, B, C, W> | OnPlatform<P, Q, B, C, W> | Admin<P, Q, B, C, W>)

/** Any route: its schemas and its function belong together, and only `perform` brings them together. */
export type Route = Spec<never, never, never, never, never>

/** In a workspace: the contract's routes, and those for people under the dashboard's address of the workspace. */
export function route<P = undefined, Q = undefined, B = undefined, C = undefined>(
  spec: Spec<P, Q, B, C, Caller>,
): Route {
  return spec as unknown as Route
}

/** Of a signed-in user, outside of any workspace. */
export function ownRoute<P = undefined, Q = undefined, B = undefined, C = undefined>(
  spec: OutsideSpec<P, Q, B, C, UserCaller>,
): Route {
  return { ...spec, asked_by: 'user' } as unknown as Route
}

/** For somebody who has not signed in yet. */
export function visitorRoute<P = undefined, Q = undefined, B = undefined, C = undefined>(
  spec: OutsideSpec<P, Q, B, C, Visitor>,
): Route {
  return { ...spec, asked_by: 'visitor' } as unknown as Route
}

/** Outside of a workspace there are no accounts, no ledger and no idempotency keys. */
type OutsideSpec<P, Q, B, C, W extends AnyCaller> = Extract<
  Spec<P, Q, B, C, W>,
  { effect: 'read' | 'admin' } | { effect: 'local' }
> & { readonly account?: never; readonly idempotency?: never; readonly workspace_limit?: never }
