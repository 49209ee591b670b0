/**
 * What an operation on the platform is. One file of a slice holds everything about one kind: what is stored of the
 * request, what is prepared, the one call, the reply, and what is stored and counted once the platform accepted.
 */
import type { z } from 'zod'
import type { App } from './app.ts'
import type { AccountKey } from './contract.ts'
import type { Tx } from './db/sql.ts'
import type { ChatNumber } from './lib/shapes.ts'
import type { Outcome, Session } from './platform/port.ts'

/** A row of the ledger as the worker executes it. */
export interface Operation<P = unknown> {
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

/** What a handler wants done on the platform. The payload is all that the worker needs to know. */
export interface NewOperation {
  readonly account_id: string
  /** The chat's number; null where there is none yet. */
  readonly chat_id: ChatNumber | null
  readonly payload: unknown
  /** An attachment that is stored already. */
  readonly file_id?: string | undefined
}

/** Our own rules refuse it before the platform is asked. */
export interface Forbidden {
  readonly kind: 'forbidden'
  readonly detail: string
}

/** P: what is stored of the request. R: what was prepared. V: what the platform answers. */
interface KindSpec<P, R, V> extends KindInfo {
  readonly payload: z.ZodType<P>
  /** The platform's answer, which may come back from a journal. */
  readonly answer: z.ZodType<V>
  /** Whether preparing it asks the platform for anything. */
  readonly asks: (operation: Operation<P>) => boolean
  /** Before the boundary: if the process dies here, the operation is simply prepared again. */
  readonly prepare: (target: Target, operation: Operation<P>) => Promise<Outcome<R> | Forbidden>
  /** The one call. Nothing is awaited before it. */
  readonly submit: (session: Session, operation: Operation<P>, prepared: R) => Promise<Outcome<V>>
  /** The answer to the caller and to every repeat. A row that was restored from a journal has no payload. */
  readonly reply: (tx: Tx, operation: Operation<P | null>, value: V) => Promise<unknown> | unknown
  /** What changes here, in one transaction with the row's completion. Doing it twice changes nothing more. */
  readonly store: (tx: Tx, account: AccountKey, operation: Operation<P | null>, value: V) => Promise<unknown>
  /** What is counted, once. */
  readonly count?: (tx: Tx, account: AccountKey, operation: Operation<P | null>) => void
}

interface KindInfo {
  /** The name of its rows in `operations.kind`; it never changes. */
  readonly kind: string
  /** The platform's history shows its random id, so an unknown outcome can be looked for there. */
  readonly found_in_history: boolean
  /** Its rows, and so its keys, are deleted 30 days after their end. The others stay as long as the workspace. */
  readonly forgettable: boolean
}

export interface Target {
  readonly app: App
  readonly account: AccountKey
  readonly session: Session
}

/** Submits what was prepared, once. */
export type Submit = () => Promise<Outcome<unknown>>

/** Any kind of operation: rows and answers come in as they are stored, and are parsed here. */
export interface OperationKind extends KindInfo {
  readonly asks: (row: Operation) => boolean
  readonly prepare: (target: Target, row: Operation) => Promise<Outcome<Submit> | Forbidden>
  readonly reply: (tx: Tx, row: Operation, value: unknown) => Promise<unknown>
  readonly store: (tx: Tx, account: AccountKey, row: Operation, value: unknown) => Promise<void>
  readonly count: (tx: Tx, account: AccountKey, row: Operation) => void
}

export function operationKind<P, R, V>(spec: KindSpec<P, R, V>): OperationKind {
  const { kind, found_in_history, forgettable, payload, answer } = spec
  const requested = (row: Operation): Operation<P> => ({ ...row, payload: payload.parse(row.payload) })
  const orNull = payload.nullable()
  const remembered = (row: Operation): Operation<P | null> => ({
    ...row,
    payload: orNull.parse(row.payload),
  })
  return {
    kind,
    found_in_history,
    forgettable,
    asks: (row) => spec.asks(requested(row)),
    async prepare(target, row) {
      const operation = requested(row)
      const prepared = await spec.prepare(target, operation)
      if (prepared.kind !== 'accepted') return prepared
      return { kind: 'accepted', value: () => spec.submit(target.session, operation, prepared.value) }
    },
    reply: async (tx, row, value) => spec.reply(tx, remembered(row), answer.parse(value)),
    async store(tx, account, row, value) {
      await spec.store(tx, account, remembered(row), answer.parse(value))
    },
    count: (tx, account, row) => spec.count?.(tx, account, remembered(row)),
  }
}

export type OperationKinds = ReadonlyMap<string, OperationKind>

/** Two kinds of the same name would execute each other's rows. */
export function byKind(kinds: readonly OperationKind[]): OperationKinds {
  const map = new Map(kinds.map((one) => [one.kind, one]))
  if (map.size !== kinds.length) throw new Error('Two kinds of operation have the same name.')
  return map
}
