/**
 * What a route is. A slice declares what each of its routes needs, and one function. HTTP, MCP, the dashboard, the OpenAPI
 * document and the tests that apply to every route read the same list.
 */
import type { z } from 'zod'
import type { App, Rule } from './app.ts'
import type { Account, AnyCaller, Caller, Gate, Needs, RouteInfo, UserCaller, Visitor } from './contract.ts'
import type { Tx } from './db/sql.ts'
import type { ApiError, ErrorCode } from './lib/errors.ts'
import type { FairQueue } from './lib/queue.ts'
import type { MarkKind } from './mark.ts'
import type { NewOperation, OperationKind } from './operation.ts'

export interface Reply {
  readonly status: number
  readonly body: unknown
  /** What the ledger stores for repeats in place of `body`: without texts that have a row of their own, which may be deleted. */
  readonly stored?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** The session that begins with this response, for the cookie; null ends it. Only dashboard routes set it. */
  readonly session_token?: string | null
  /** Identifies the browser at its next sign-in. */
  readonly device_token?: string | undefined
  /** What the browser returns from the identity provider. */
  readonly oidc_flow?: { readonly cookie: string; readonly seconds: number }
}

/** JSON that the database has already written; it is sent as it is. */
export class Json {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** Something that the browser saves as a file. */
interface SavedAs {
  readonly media_type: 'text/csv' | 'application/zip'
  /** Of our own making: letters, digits, dots and hyphens. */
  readonly file_name: string
}

/**
 * An answer too long to hold at once: JSON, or a file. It has begun when it is created, so that a failed first read is refused
 * while there is still a status to refuse it with; a later failure ends the connection.
 */
export class Stream implements AsyncIterable<string | Uint8Array> {
  readonly saved_as: SavedAs | undefined
  readonly #rest: AsyncGenerator<string | Uint8Array>
  readonly #begun: IteratorResult<string | Uint8Array>[]

  private constructor(
    begun: IteratorResult<string | Uint8Array>,
    rest: AsyncGenerator<string | Uint8Array>,
    saved_as: SavedAs | undefined,
  ) {
    this.saved_as = saved_as
    this.#begun = [begun]
    this.#rest = rest
  }

  static async begin(chunks: AsyncGenerator<string | Uint8Array>, saved_as?: SavedAs): Promise<Stream> {
    return new Stream(await chunks.next(), chunks, saved_as)
  }

  [Symbol.asyncIterator](): AsyncIterator<string | Uint8Array> {
    return {
      next: async () => this.#begun.shift() ?? this.#rest.next(),
      return: () => this.#rest.return(undefined),
    }
  }
}

/** The connection that an answer is sent over. */
export interface Sending {
  readonly cut: () => void
  /** Called when the client has it all, or has gone. */
  readonly onEnd: (act: () => void) => void
}

/** A file, or a range of it. It has begun when it is created, as a `Stream` has. */
export class Bytes implements AsyncIterable<Uint8Array> {
  readonly length: number
  /** Called when the answer begins. */
  readonly begins: (sending: Sending) => void
  readonly #rest: AsyncGenerator<Uint8Array>
  readonly #begun: IteratorResult<Uint8Array>[]

  private constructor(
    length: number,
    begun: IteratorResult<Uint8Array>,
    rest: AsyncGenerator<Uint8Array>,
    begins: (sending: Sending) => void,
  ) {
    this.length = length
    this.begins = begins
    this.#begun = [begun]
    this.#rest = rest
  }

  static async begin(
    length: number,
    chunks: AsyncGenerator<Uint8Array>,
    begins: (sending: Sending) => void,
  ): Promise<Bytes> {
    return new Bytes(length, await chunks.next(), chunks, begins)
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return {
      next: async () => this.#begun.shift() ?? this.#rest.next(),
      return: () => this.#rest.return(undefined),
    }
  }
}

/** Server-sent events, as they happen. It begins with the answer and has no end of its own. */
export class Live {
  readonly begin: (sink: EventSink) => void

  constructor(begin: (sink: EventSink) => void) {
    this.begin = begin
  }
}

/** The receiving end of a `Live` reply. */
export interface EventSink {
  /** Bytes that the client has not taken yet. */
  readonly waiting: number
  write(text: string | Buffer): void
  /** After the last event. */
  end(): void
  /** At once, for a client that does not read. */
  cut(): void
  /** Called once, when either side has ended it. */
  onEnd(act: () => void): void
}

/** A form as received: its fields, and its one file, which is stored already unless there is a refusal. */
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

/** A text file as received. It is stored until the request has been answered: `readChunksIn` reads it. */
export class TextFile {
  readonly file_id: string

  constructor(file_id: string) {
    this.file_id = file_id
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

interface RouteDescription extends RouteInfo {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: `/${string}`
  /** Who calls it, if not a caller in a workspace: set by `ownRoute` and `visitorRoute`. */
  readonly asked_by?: 'user' | 'visitor'
  readonly summary: string
  readonly description?: string
  /** `required`: always named. `extended`: may be left out with that gate. `optional`: a filter. `all`: never named. */
  readonly account?: 'required' | 'extended' | 'optional' | 'all'
  /** The code for a malformed path parameter, if not 400. */
  readonly malformed?: ErrorCode
  /** 409 instead of 400 for an idempotency key that was used with another payload. */
  readonly collision?: 400 | 409
  /** Also accepts a form with one file for the platform: the schema of its fields, with the file as `attachment`. */
  readonly form?: z.ZodType
  /** Takes a text file of this media type in place of JSON, at most 64 MiB: its `body` is `z.instanceof(TextFile)`. */
  readonly text?: 'text/csv'
  /** Bytes of JSON; CONTRACT 1 says 1 MiB unless an operation needs more. */
  readonly body_limit?: number
  readonly response: z.ZodType
  /** The media types of a response that is a file. */
  readonly bytes?: readonly string[]
  /** The media type of a response that is a `Stream` and no JSON. */
  readonly saved?: 'text/csv' | 'application/zip'
  readonly statuses?: readonly [number, ...number[]]
  /** Answers with a `Live` reply: events as they happen, until one side leaves. */
  readonly live?: true
  /** What its success changes for pages that are open: `perform` marks it. Every route that writes has it. */
  readonly touches?: readonly MarkKind[]
  /** Errors it can return beyond those that its needs imply. */
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
  /** The named account, or if none was named every eligible one of the workspace; for a member's reads every one. */
  readonly accounts: readonly Account[]
  /** The caller's idempotency key, if it sent one. */
  readonly key: string | undefined
  /** Which part of a file the caller wants: the header Range, if it applies. */
  readonly range?: string | undefined
  /** Aborted once the caller has left and cannot receive the answer: for work that takes seconds. */
  readonly left?: (() => AbortSignal) | undefined
}

interface Input<P, Q, B, C, W> {
  readonly params?: z.ZodType<P>
  readonly query?: z.ZodType<Q>
  readonly body?: z.ZodType<B>
  /** For input that decides what is needed: checked again once it is known. Throws if the gates forbid the input. */
  readonly variant?: (input: { readonly query: Q; readonly body: B }, gates: ReadonlySet<Gate>) => Needs
  /** Checks what a schema cannot see, such as for whom a cursor was made. Throws, or returns what it has read. */
  readonly check?: (app: App, caller: W, input: { readonly query: Q; readonly body: B }) => C | Promise<C>
}

/** A call that the route's schemas have parsed for the route's own function. */
export type AnyCall = Call<never, never, never, never, never>

interface Read<P, Q, B, C, W> {
  readonly effect: 'read'
  /** Holds a connection or the processor for long: runs in turns of the workspaces (`app.costly`). */
  readonly costly?: true
  readonly handle: (app: App, call: Call<P, Q, B, C, W>) => Promise<Reply>
}

/** Changes our database only: the key's row, the effect and the stored answer commit together. */
interface Local<P, Q, B, C, W> {
  readonly effect: 'local'
  /** The limit of one workspace, counted across all processes. A replay does not count. */
  readonly workspace_limit?: (app: App) => Rule
  /** For what takes a connection and the loop for long: requests of one workspace run one after the other. */
  readonly in_turn?: FairQueue
  /** Throws if something that the request names is missing: that is reported before the limit and not counted. */
  readonly require_resources?: (app: App, call: Call<P, Q, B, C, W>) => Promise<unknown>
  readonly handle: (app: App, tx: Tx, call: Call<P, Q, B, C, W>) => Promise<Reply>
}

/** Reaches the platform: a row of the ledger, which the worker that drives the account executes once. */
interface OnPlatform<P, Q, B, C, W> {
  readonly effect: 'platform'
  readonly operation: OperationKind
  /** Returns what is wanted; throws if it is not possible. Nothing is written yet. */
  readonly handle: (app: App, call: Call<P, Q, B, C, W>) => Promise<NewOperation>
  /** The limits of one account, each counted across all processes. */
  readonly account_limits?: (app: App) => readonly Rule[]
  /** The status a caller gets during a flood wait. */
  readonly flood: 429 | 503
  /** A second operation under the same key once the first has completed, with a row of its own. */
  readonly followed_by?: {
    readonly operation: OperationKind
    readonly wanted: (body: B) => boolean
    readonly next: (call: Call<P, Q, B, C, W>, reply: unknown) => NewOperation
  }
}

/**
 * Does what operators also do at the terminal, with the same function of the capability, which opens its own transaction
 * and records the change in the audit log.
 */
interface Admin<P, Q, B, C, W> {
  readonly effect: 'admin'
  readonly handle: (app: App, call: Call<P, Q, B, C, W>) => Promise<Reply>
}

type Spec<P, Q, B, C, W> = RouteDescription &
  Input<P, Q, B, C, W> &
  (Read<P, Q, B, C, W> | Local<P, Q, B, C, W> | OnPlatform<P, Q, B, C, W> | Admin<P, Q, B, C, W>)

/** Any route: its schemas and its function belong together, and only `perform` combines them. */
export type Route = Spec<never, never, never, never, never>

/** In a workspace: the contract's routes, and those for people under the workspace's dashboard address. */
export function route<P = undefined, Q = undefined, B = undefined, C = undefined>(
  spec: Spec<P, Q, B, C, Caller>,
): Route {
  return spec as unknown as Route
}

/** For a signed-in user, outside any workspace. */
export function ownRoute<P = undefined, Q = undefined, B = undefined, C = undefined>(
  spec: OutsideSpec<P, Q, B, C, UserCaller>,
): Route {
  return { ...spec, asked_by: 'user' } as unknown as Route
}

/** For a person who has not signed in yet. */
export function visitorRoute<P = undefined, Q = undefined, B = undefined, C = undefined>(
  spec: OutsideSpec<P, Q, B, C, Visitor>,
): Route {
  return { ...spec, asked_by: 'visitor' } as unknown as Route
}

/** Outside a workspace there are no accounts, ledger or idempotency keys. */
type OutsideSpec<P, Q, B, C, W extends AnyCaller> = Extract<
  Spec<P, Q, B, C, W>,
  { effect: 'read' | 'admin' } | { effect: 'local' }
> & {
  readonly account?: never
  readonly idempotency?: never
  readonly workspace_limit?: never
  readonly text?: never
}
