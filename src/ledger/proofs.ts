/** How an unknown outcome becomes known: the platform shows our random id. A message with the same text is only a hint. */
import { given } from '../db/given.ts'
import { type Db, sql, type Tx } from '../db/sql.ts'
import type { ChatId, ChatNumber } from '../lib/shapes.ts'
import type { Operation, OperationKinds, SettledOperation } from '../operation.ts'
import type { Message } from '../platform/port.ts'
import { executable } from './columns.ts'
import { complete } from './settle.ts'

export interface Proof {
  readonly random_id: string
  readonly message_id: string
  readonly at: string
}

/** Messages that carry the random id under which they were submitted. */
export function proofsIn(messages: readonly Message[]): Proof[] {
  return messages.flatMap(({ id, random_id, is_sender, timestamp }) =>
    // guard: only our own messages prove
    random_id !== null && is_sender ? [{ random_id, message_id: id, at: timestamp }] : [],
  )
}

/** Stored while the row is `submitting`, too: the echo may arrive before the answer is lost. */
export async function noteProofs(tx: Db, account_id: string, proofs: readonly Proof[]): Promise<void> {
  if (proofs.length === 0) return
  await tx.run(sql`
    with given as materialized ${given(proofs, { random_id: 'bigint', message_id: 'bigint', at: 'timestamptz' })},
    found as materialized (
      select o.id, p.message_id, p.at from given p join operations o
        on o.account_id = ${account_id} and o.random_id = p.random_id and o.state in ('submitting', 'ambiguous')
          and o.proof_message_id is null
      order by o.id for update of o)
    update operations o set proof_message_id = f.message_id, proof_at = f.at from found f where o.id = f.id`)
}

/**
 * Locks what the platform may have accepted, in the order of every settlement. A deletion in the same transaction then finds
 * the message that a settlement has stored, or the settlement finds the deletion.
 */
export async function lockCrossed(tx: Tx, account_id: string): Promise<void> {
  await tx.run(sql`
    select 1 from operations where id in (
      select id from operations where account_id = ${account_id} and state = 'ambiguous'
      union all
      select id from operations where account_id = ${account_id} and state = 'submitting' and effect = 'platform')
    order by id for no key update`)
}

interface Proven extends Operation {
  /** The operation's id in responses. */
  readonly public_id: string
  readonly attempt_token: string
  readonly message_id: string
  readonly at: Date
}

/** Unknown outcomes that have a proof by now. Locks them, and skips rows that another transaction has locked. */
export function takeProven(tx: Tx, { limit, offset }: { limit: number; offset: number }): Promise<Proven[]> {
  return tx.rows<Proven>(sql`
    select ${proven} from operations o where o.state = 'ambiguous' and o.proof_message_id is not null
    order by o.id limit ${limit} offset ${offset} for update skip locked`)
}

const proven = sql`${executable}, coalesce(o.public_id, o.id) as public_id, o.attempt_token,
  o.proof_message_id::text as message_id, o.proof_at as at`

/** Treats a proof like an answer from the platform. */
export function completeProven(tx: Tx, kinds: OperationKinds, rows: readonly Proven[]) {
  const accepted = rows.map((operation) => ({
    operation,
    public_id: operation.public_id,
    token: operation.attempt_token,
    value: { message_id: operation.message_id, at: operation.at.toISOString() },
    reconciled: true,
  }))
  return complete(tx, kinds, accepted)
}

/** Completes the rows that have just become unknown but whose message the platform has shown before. Returns their ids. */
export async function completeShown(
  tx: Tx,
  kinds: OperationKinds,
  settled: readonly SettledOperation[],
): Promise<ReadonlySet<string>> {
  const ids = settled.filter(({ state }) => state === 'ambiguous').map(({ id }) => id)
  if (ids.length === 0) return new Set()
  const shown = await tx.rows<Proven>(sql`
    select ${proven} from operations o
    where o.id = any(${ids}::uuid[]) and o.state = 'ambiguous' and o.proof_message_id is not null order by o.id`)
  return new Set((await completeProven(tx, kinds, shown)).map(({ id }) => id))
}

export interface Unproven {
  readonly id: string
  readonly account_id: string
  readonly chat_id: ChatNumber
  readonly random_id: string
  readonly text: string
  readonly created_at: Date
}

/** Operations to look for in the platform's history: soon, then less and less often, for a week. */
export function listUnproven(
  db: Db,
  { account_ids, kinds }: { account_ids: readonly string[]; kinds: readonly string[] },
): Promise<Unproven[]> {
  return db.rows<Unproven>(sql`
    select id, account_id, chat_id::text, random_id::text, coalesce(payload ->> 'text', '') as text, created_at
    from operations
    where state = 'ambiguous' and account_id = any(${account_ids}) and kind = any(${kinds})
      and proof_message_id is null and chat_id is not null and finished_at > domain_now() - interval '7 days'
      and (looked_for_at is null
        or real_now() - looked_for_at > greatest(interval '1 minute', (looked_for_at - created_at) / 2))
      and not exists (
        select from account_hosts h where h.account_id = operations.account_id and h.reading_flood_until > domain_now())
    order by looked_for_at nulls first, id limit 20`)
}

/** Stores the time of the look-up and, if nothing was proven, the message with the same text. */
export async function noteLookedFor(db: Db, id: string, hint_message_id: string | null): Promise<void> {
  await db.run(sql`
    update operations set looked_for_at = real_now(), hint_message_id = coalesce(${hint_message_id}, hint_message_id)
    where id = ${id} and state = 'ambiguous'`)
}

export interface AmbiguousRow {
  readonly id: string
  readonly workspace_id: string
  readonly kind: string
  readonly account_id: string
  readonly chat_id: ChatId | null
  readonly state: string
  readonly reason: string | null
  readonly detail: string | null
  readonly created_at: Date
  readonly hint_message_id: string | null
  readonly closed_as: 'sent' | 'not_sent' | null
}

const shown = sql`id, workspace_id, kind, account_id, 'platform:chat:' || chat_id as chat_id, state, reason, detail, created_at,
  hint_message_id::text, closed_as`

export function listOperations(
  db: Db,
  { workspace_id, ambiguous }: { workspace_id: string | undefined; ambiguous: boolean },
): Promise<AmbiguousRow[]> {
  return db.rows<AmbiguousRow>(sql`
    select ${shown} from operations
    where effect = 'platform' and (${workspace_id ?? null}::uuid is null or workspace_id = ${workspace_id ?? null})
      and (not ${ambiguous}::boolean or (state = 'ambiguous' and closed_as is null))
    order by created_at desc, id desc limit 1000`)
}

export function findShown(db: Db, id: string): Promise<AmbiguousRow | undefined> {
  return db.maybe<AmbiguousRow>(sql`select ${shown} from operations where id = ${id} and effect = 'platform'`)
}
