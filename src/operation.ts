/**
 * What a platform operation is. One file of a slice holds everything about one kind: what is stored of the request, what is
 * prepared, the one call, the reply, and what is stored and counted once the platform has accepted it.
 */
import type { z } from 'zod'
import type { AccountKey } from './contract.ts'
import type { Database, Sql, Tx } from './db/sql.ts'
import type { ChatNumber } from './lib/shapes.ts'
import type { FloodScope, Outcome, Session } from './platform/port.ts'

/** Which message of a campaign or broadcast an operation is; all null if it is none. */
export interface CampaignPlace {
  readonly campaign_id: string | null
  readonly recipient_id: string | null
  /** How many messages the recipient had received before it. */
  readonly step_no: number | null
  /** The day, in the workspace's time zone, whose quota it uses, as 2026-11-02; null if it uses none. */
  readonly quota_day: string | null
  /** A first message to a person who has never written to the account: it also uses that day's cold allowance. */
  readonly cold: boolean
}

/** A row of the ledger as the worker executes it. */
export interface Operation<P = unknown> extends CampaignPlace {
  readonly id: string
  readonly workspace_id: string
  readonly account_id: string
  readonly kind: string
  readonly idempotency_key: string | null
  readonly fingerprint: Buffer
  readonly chat_id: ChatNumber | null
  readonly payload: P
  readonly file_id: string | null
  readonly random_id: string
}

/** The chat of an operation whose kind always has one. */
export function requireChatOf({ id, chat_id }: Operation): ChatNumber {
  if (chat_id === null) throw new Error(`The operation ${id} names no chat.`)
  return chat_id
}

/** What a handler wants done on the platform. The payload is all that the worker needs. */
export interface NewOperation {
  readonly account_id: string
  /** The chat's number; null if there is none yet. */
  readonly chat_id: ChatNumber | null
  readonly payload: unknown
  /** An attachment that is stored already. */
  readonly file_id?: string | undefined
}

/** Our own rules refuse it before the platform is called. */
export interface Forbidden {
  readonly kind: 'forbidden'
  readonly detail: string
}

/** An accepted operation, and the platform's answer. */
export interface Completion<P = unknown, V = unknown> {
  readonly operation: Operation<P>
  readonly value: V
}

export type State = 'queued' | 'submitting' | 'completed' | 'refused' | 'released' | 'ambiguous'

/** An operation that has just left a state, as its slice receives it. */
export interface SettledOperation extends Operation {
  readonly from_state: State
  readonly state: State
  readonly reason: string | null
  readonly detail: string | null
  /** A person's note on an unknown outcome. */
  readonly closed_as: 'sent' | 'not_sent' | null
}

/** P: what is stored of the request. R: what was prepared. V: the platform's answer. */
interface KindSpec<P, R, V> extends KindInfo {
  readonly payload: z.ZodType<P>
  /** The platform's answer, which may come back from a journal. */
  readonly answer: z.ZodType<V>
  /** Whether preparing it calls the platform. */
  readonly asks: (operation: Operation<P>) => boolean
  /** Runs before the boundary: if the process dies here, the operation is simply prepared again. */
  readonly prepare: (target: Target, operation: Operation<P>) => Promise<Outcome<R> | Forbidden>
  /** The one call. Nothing is awaited before it. */
  readonly submit: (session: Session, operation: Operation<P>, prepared: R) => Promise<Outcome<V>>
  /** The responses to the callers, now and on every repeat. A row put back from a journal has no payload, nor has a cleared one. */
  readonly reply: (tx: Tx, done: readonly Completion<P | null, V>[]) => Promise<unknown[]> | unknown[]
  /** Stores the effects in one transaction with the rows' completion. Running it twice changes nothing more. */
  readonly store: (tx: Tx, done: readonly Completion<P | null, V>[]) => Promise<unknown>
  /** Counts what is counted, once. */
  readonly count?: (tx: Tx, done: readonly Completion<P | null, V>[]) => void
  /** The message it became, if any: the platform's own update about it then contains nothing new. */
  readonly message?: (operation: Operation<P>, value: V) => SentMessage | undefined
  /** What the journal keeps of the answer: no name and no text, because a journal outlives an erasure. By default all of it. */
  readonly journaled?: (value: V) => V
  /** Called on every transition, in its transaction: whatever depends on the operation changes with it. */
  readonly settled?: (tx: Tx, rows: readonly SettledOperation[]) => Promise<void>
}

interface SentMessage {
  readonly message_id: string
  readonly text: string
}

interface KindInfo {
  /** The value of its rows in `operations.kind`; it never changes. */
  readonly kind: string
  /** The platform's history shows its random id, so an unknown outcome can be looked for there. */
  readonly found_in_history: boolean
  /** The flood waits that stop it: the platform counts sends, look-ups and reading apart. */
  readonly stopped_by: FloodScope
  /** Its rows, and so its keys, are deleted 30 days after their end. The others stay as long as the workspace. */
  readonly forgettable: boolean
  /**
   * Evaluated inside the boundary for its row `o` (`id`, `workspace_id`, `account_id`, `chat_id`): null if it may cross,
   * otherwise why not, and `busy` if it must be retried. It must be ordered against every transaction that changes the answer.
   */
  readonly recheck?: Sql | undefined
}

export interface Target {
  readonly db: Database
  readonly account: AccountKey
  readonly session: Session
}

/** Submits what was prepared, once. */
export type Submit = () => Promise<Outcome<unknown>>

/** Any kind of operation: takes rows and answers as stored, and parses them. */
export interface OperationKind extends KindInfo {
  readonly asks: (row: Operation) => boolean
  readonly prepare: (target: Target, row: Operation) => Promise<Outcome<Submit> | Forbidden>
  readonly reply: (tx: Tx, done: readonly Completion[]) => Promise<unknown[]>
  readonly store: (tx: Tx, done: readonly Completion[]) => Promise<void>
  readonly count: (tx: Tx, done: readonly Completion[]) => void
  readonly message: (row: Operation, value: unknown) => SentMessage | undefined
  readonly journaled: (value: unknown) => unknown
  readonly settled: (tx: Tx, rows: readonly SettledOperation[]) => Promise<void>
}

/** What stays of a payload once its texts are cleared: by these, reports count. */
export function clearedPayload(payload: unknown): unknown {
  const { branch, variant } = payload as { readonly branch?: unknown; readonly variant?: unknown }
  return { cleared: true, branch, variant } // guard: reports need no text
}

function isCleared(payload: unknown): boolean {
  return typeof payload === 'object' && payload !== null && 'cleared' in payload
}

export function operationKind<P, R, V>(spec: KindSpec<P, R, V>): OperationKind {
  const { kind, found_in_history, stopped_by, forgettable, recheck, payload, answer } = spec
  const requested = (row: Operation): Operation<P> => ({ ...row, payload: payload.parse(row.payload) })
  const orNull = payload.nullable()
  const stored = (row: unknown) => (isCleared(row) ? null : orNull.parse(row)) // guard: a cleared operation can be proven
  const parse = (done: readonly Completion[]): Completion<P | null, V>[] =>
    done.map(({ operation, value }) => ({
      operation: { ...operation, payload: stored(operation.payload) },
      value: answer.parse(value),
    }))
  return {
    kind,
    found_in_history,
    stopped_by,
    forgettable,
    recheck,
    asks: (row) => spec.asks(requested(row)),
    async prepare(target, row) {
      const operation = requested(row)
      const prepared = await spec.prepare(target, operation)
      if (prepared.kind !== 'accepted') return prepared
      return { kind: 'accepted', value: () => spec.submit(target.session, operation, prepared.value) }
    },
    reply: async (tx, done) => spec.reply(tx, parse(done)),
    async store(tx, done) {
      await spec.store(tx, parse(done))
    },
    count: (tx, done) => spec.count?.(tx, parse(done)),
    message: (row, value) => spec.message?.(requested(row), answer.parse(value)),
    journaled: (value) => (spec.journaled ? spec.journaled(answer.parse(value)) : value),
    settled: async (tx, rows) => spec.settled?.(tx, rows),
  }
}

export type OperationKinds = ReadonlyMap<string, OperationKind>

/** Two kinds of the same name would execute each other's rows. */
export function byKind(kinds: readonly OperationKind[]): OperationKinds {
  const map = new Map(kinds.map((one) => [one.kind, one]))
  if (map.size !== kinds.length) throw new Error('Two kinds of operation have the same name.')
  return map
}
