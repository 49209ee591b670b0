/** What a capability may use. Built once at the start, passed down as the first argument. */
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from './config.ts'
import type { Account, Allowlist, Caller, Gate, RouteInfo } from './contract.ts'
import type { Database } from './db/sql.ts'
import type { Secrets } from './lib/secrets.ts'
import type { Mark } from './mark.ts'
import type { OperationKinds, State } from './operation.ts'

export interface App {
  readonly config: Config
  /** The address that people and agents use, without a final slash. */
  base_url(): string
  readonly db: Database
  /** For reads that hold a connection or the processor for long: a workspace has one at a time. */
  readonly costly: WorkspaceTurns
  /** For all work of requests that holds a connection for long, whatever kind it is: its holder waits for no other turn. */
  readonly long: WorkspaceTurns
  readonly secrets: Secrets
  readonly settings: Settings
  readonly limits: Limits
  readonly wake: Wake
  readonly waiting: Waiting
  readonly log: Logger
  /** Every module adds its own metrics. */
  readonly metrics: Registry
  /** All routes, and what each needs. */
  readonly routes: readonly RouteInfo[]
  /** The kinds of platform operations, by name. */
  readonly operations: OperationKinds
  readonly sources: Sources
  /** Aborted once the service stops: code that waits for an event stops waiting. */
  readonly stopping: AbortSignal
}

/**
 * Runs work of a request that takes long. A workspace has few at a time, all workspaces together fewer than there are
 * connections, and the workspaces take turns. Throws 429 if the turn does not come.
 */
export interface WorkspaceTurns {
  <T>(turn: WorkspaceTurn, work: () => Promise<T>): Promise<T>
  /** How many callers wait for their turn. */
  countWaiting(): number
}

export interface WorkspaceTurn {
  readonly workspace_id: string
  /** Aborted once the caller has left: it waits no longer. */
  readonly left: AbortSignal | undefined
}

/** What operators switch while the service runs; never more than a second old. */
export interface Settings {
  current(): Promise<Snapshot>
  /** Reads now, so that the process that made a change sees it immediately. */
  refresh(): Promise<Snapshot>
}

export interface Snapshot {
  readonly version: string
  readonly gates: ReadonlySet<Gate>
  /** Undefined if the table cannot be read: what needs it is unavailable, everything else works. */
  readonly allowlists: Readonly<Record<Allowlist, ReadonlySet<string>>> | undefined
  readonly dispatch: boolean
  /** Domain time, as this process knows it. */
  now(): Date
  /** Cached per version; a revoked key or a changed account makes a new version. */
  readonly callers: Map<string, KnownKey>
  /** Every account of a workspace, whatever its status. */
  readonly accounts: Map<string, Promise<readonly Account[]>>
}

export interface KnownKey {
  readonly caller: Caller
  readonly expires_at: Date | null
  /** Its workspace is disabled. */
  readonly disabled: boolean
}

/** Counts requests in a sliding window: never more than `limit` in any `seconds`. */
export interface Limits {
  /** Takings under one name of a `place` count once while that place is in the window. */
  take(caller: string, rule: Rule, place?: string): Promise<Window>
  /** Takes in this order, up to the first that refuses. Returns the window of that one, or of the last. */
  takeAll(asked: readonly Taking[]): Promise<Window>
  /** Fails if a store of its own does not respond. */
  check(): Promise<void>
  close(): Promise<void>
}

export interface Taking {
  readonly caller: string
  readonly rule: Rule
}

export interface Rule {
  readonly limit: number
  readonly seconds: number
}

export interface Window {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  /** When the oldest counted request leaves the window, in Unix seconds. */
  readonly reset: number
  /** Seconds until a refused caller may retry; 0 when allowed. */
  readonly retry_after: number
}

/** What a loop may wait for. The module that writes the rows declares it, once. */
export interface Topic {
  /** Its name in notifications between processes. */
  readonly topic: string
}

/** Wakes loops, in this process and in others, when there may be work. */
export interface Wake {
  /** Call it after the commit, never inside a data transaction. */
  signal(topic: Topic): void
  on(topic: Topic, listener: () => void): () => void
  /** Notifies pages that show what has changed, in every process. Call it after the commit, like `signal`. */
  mark(...marks: readonly Mark[]): void
  /** The marks of all processes, in batches of some milliseconds. */
  onMarks(listener: (marks: readonly Mark[]) => void): () => void
  close(): Promise<void>
}

/** Callers that wait for their platform operations. */
export interface Waiting {
  /** How this attempt, or a later one of the same key, settled; undefined once the time is up. */
  settled(attempt: QueuedAttempt, ms: number): Promise<LedgerOperation | undefined>
  close(): void
}

/** A queued operation, and how often it had been queued by then. */
export interface QueuedAttempt {
  readonly id: string
  readonly queued_no: number
}

/** What differs on every run. A simulation derives it from its seed. */
export interface Sources {
  newId(): string
  newToken(): string
  /** The monotonic clock, in milliseconds. */
  now(): number
  /** The real calendar time; domain time is the database's. */
  date(): Date
  /** From 0 to below 1. */
  random(): number
  sleep(ms: number): Promise<void>
  /** Calls back once the time is up, unless the returned function is called first. */
  timer(ms: number, done: () => void): () => void
}

/** A row of the ledger as its caller sees it, in any state; `Waiting.settled` returns only rows that have ended. */
export interface LedgerOperation extends QueuedAttempt {
  readonly kind: string
  readonly account_id: string
  readonly state: State
  readonly reason: string | null
  readonly detail: string | null
  readonly fingerprint: Buffer
  readonly reply_status: number | null
  readonly reply_body: unknown
}
