/**
 * The only way out of `queued`, `submitting` and `ambiguous`. Every outcome of an operation ends here, from whatever
 * source: many rows in one statement, each fenced, and each kind handles its own rows in the same transaction.
 */
import { given } from '../db/given.ts'
import { type Sql, sql, type Tx } from '../db/sql.ts'
import type { Completion, Operation, OperationKinds, SettledOperation } from '../operation.ts'
import type { PlatformRefusal } from '../platform/port.ts'
import { changeUse, type UseChange } from './account-usage.ts'
import { executable } from './columns.ts'
import { refusalReply } from './refusals.ts'

/** How an operation can end. */
export type Ending =
  | { readonly to: 'completed'; readonly reply: unknown; readonly reconciled?: boolean }
  /** The platform refused for good; every repeat gets the same answer. */
  | { readonly to: 'refused'; readonly refusal: PlatformRefusal }
  /** Provably nothing happened, so the key may run again. Past the boundary only two reasons prove that. */
  | { readonly to: 'released'; readonly reason: string; readonly detail?: string | null }
  | { readonly to: 'ambiguous'; readonly reason: string; readonly detail?: string | null }

export interface Settlement {
  readonly id: string
  /**
   * The attempt that reports: a later one has another token. Null while the operation is still queued; `queued_no` then
   * says for which time, where that matters.
   */
  readonly token: string | null
  readonly queued_no?: number
  readonly ending: Ending
}

/** Returns the rows that changed. Skips a row that no longer matches its fence. */
export async function settle(
  tx: Tx,
  kinds: OperationKinds,
  settlements: readonly Settlement[],
): Promise<SettledOperation[]> {
  if (settlements.length === 0) return []
  const rows = await tx.rows<SettledOperation>(settleStatement(settlements))
  changeUse(tx, rows.flatMap(refundOf))
  // crash point 11: operations are ended, their recipients do not know, nothing is committed
  // guard: the kind settles in the same transaction
  for (const [kind, own] of Map.groupBy(rows, (row) => row.kind)) await kinds.get(kind)?.settled(tx, own)
  return rows
}

/** Refunds the daily quota when nothing was sent. */
function refundOf(row: SettledOperation): UseChange[] {
  const { account_id, workspace_id, quota_day: day, cold, state } = row
  const nothing = state === 'released' || state === 'refused'
  return day !== null && nothing ? [{ account_id, workspace_id, day, cold, by: -1 }] : [] // guard: refund
}

/** Locks all operations, in the order of their ids, before several statements end them. Every transaction keeps this order. */
export async function lockOperations(tx: Tx, ids: readonly string[]): Promise<void> {
  await tx.run(sql`select 1 from operations where id = any(${ids}::uuid[]) order by id for update`)
}

/** Locks operations in the order of their ids, as every writer of several does, so that no two deadlock. */
export function settleStatement(settlements: readonly Settlement[]): Sql {
  const ordered = settlements.toSorted((one, other) => (one.id < other.id ? -1 : 1))
  const rows = ordered.map((one) => ({ ...one, ...columnsOf(one.ending) }))
  return sql`
    with given as materialized ${given(rows, {
      id: 'uuid',
      token: 'uuid',
      queued_no: 'int',
      state: 'text',
      reason: 'text',
      detail: 'text',
      reply_status: ['int', ({ status }) => status],
      reply_body: ['text', ({ body }) => body],
      reconciled: 'boolean',
    })},
    taken as materialized (
      select g.*, o.from_state from given g cross join lateral (
        select o.state as from_state from operations o
        where o.id = g.id and o.effect = 'platform' and (
          (g.token is null
            and o.state = 'queued' -- guard: settle queued rows only
            and (g.queued_no is null or o.queued_no = g.queued_no) -- guard: settle queued_no
          )
          or (
            o.attempt_token = g.token -- guard: settle token
            and o.state in ('submitting', 'ambiguous') -- guard: settle crossed rows only
            and (g.state <> 'ambiguous' or o.state = 'submitting') -- guard: settle unknown once
          ))
        for update) o)
    update operations o set
      state = case when t.from_state = 'ambiguous' and t.state = 'refused' then 'released' else t.state end,
      reason = t.reason, detail = t.detail, finished_at = (select domain_now()), lease_until = null,
      reply_status = t.reply_status, reply_body = t.reply_body::json, reconciled = o.reconciled or t.reconciled
    from taken t where o.id = t.id
    returning ${executable}, t.from_state, o.state, o.reason, o.detail, o.closed_as`
}

interface Columns {
  readonly state: string
  readonly reason: string | null
  readonly detail: string | null
  readonly status: number | null
  readonly body: string | null
  readonly reconciled: boolean
}

/**
 * A refusal of a row that became `ambiguous` meanwhile releases it: the platform will refuse the next attempt too, and
 * the trigger allows no step from `ambiguous` to `refused`.
 */
function columnsOf(ending: Ending): Columns {
  const none = { reason: null, detail: null, status: null, body: null, reconciled: false }
  switch (ending.to) {
    case 'completed': {
      const { reply, reconciled = false } = ending
      return { ...none, state: 'completed', status: 200, body: JSON.stringify(reply), reconciled }
    }
    case 'refused': {
      const { status, body } = refusalReply(ending.refusal)
      const detail = ending.refusal
      return {
        ...none,
        state: 'refused',
        reason: 'platform_refused',
        detail,
        status,
        body: JSON.stringify(body),
      }
    }
    default:
      return { ...none, state: ending.to, reason: ending.reason, detail: ending.detail ?? null }
  }
}

/** What the platform accepted: the attempt, and what its kind needs to know of it. */
export interface AcceptedOperation {
  readonly operation: Operation
  /** The operation's id as callers know it, where a restore gave the row another one. */
  readonly public_id: string
  readonly token: string
  readonly value: unknown
  readonly reconciled?: boolean
}

/**
 * Completes, stores and counts. `store` runs for every row, including one that was completed before, because storing
 * twice changes nothing. `count` runs only for the rows that changed.
 */
export async function complete(
  tx: Tx,
  kinds: OperationKinds,
  accepted: readonly AcceptedOperation[],
): Promise<SettledOperation[]> {
  const settlements: Settlement[] = []
  const byKind = [...Map.groupBy(accepted, ({ operation }) => operation.kind)].flatMap(([name, own]) => {
    const kind = kinds.get(name)
    return kind ? [{ kind, own }] : []
  })
  for (const { kind, own } of byKind) {
    const replies = await kind.reply(tx, own.map(publicly))
    for (const [at, { operation, token, reconciled }] of own.entries()) {
      const ending: Ending = { to: 'completed', reply: replies[at], reconciled: reconciled ?? false }
      settlements.push({ id: operation.id, token, ending })
    }
  }
  const [rows] = await Promise.all([
    settle(tx, kinds, settlements),
    ...byKind.map(({ kind, own }) => kind.store(tx, own)),
  ])
  const changed = new Set(rows.map(({ id }) => id))
  for (const { kind, own } of byKind) {
    const fresh = own.filter(({ operation }) => changed.has(operation.id)) // guard: counted once
    kind.count(tx, fresh)
  }
  return rows
}

function publicly({ operation, public_id, value }: AcceptedOperation): Completion {
  return { operation: { ...operation, id: public_id }, value }
}

/**
 * Stores a person's note on an unknown outcome. The state stays and the key answers 409 forever; its kind gets the row.
 * Undefined if it is not ambiguous, or if another person noted the opposite and `corrects` is false.
 */
export async function closeByPerson(
  tx: Tx,
  kinds: OperationKinds,
  { id, closed_as, corrects = true }: { id: string; closed_as: 'sent' | 'not_sent'; corrects?: boolean },
): Promise<SettledOperation | undefined> {
  const row = await tx.maybe<SettledOperation>(sql`
    update operations o set closed_as = ${closed_as}, closed_at = domain_now()
    where id = ${id} and state = 'ambiguous'
      and (${corrects}::boolean or closed_as is null or closed_as = ${closed_as}) -- guard: a note that a page replaces
    returning ${executable}, o.state as from_state, o.state, o.reason, o.detail, o.closed_as`)
  if (row) await kinds.get(row.kind)?.settled(tx, [row])
  return row
}
