/** The operations of an erased person: what is queued ends, what has ended loses its texts, what is in flight is waited for. */
import type { App } from '../app.ts'
import { type Sql, sql, type Tx } from '../db/sql.ts'
import { type ChatNumber, chatIdOf } from '../lib/shapes.ts'
import type { SettledOperation } from '../operation.ts'
import { clearOperations } from './clearing.ts'
import { settle } from './settle.ts'

interface ErasedPerson {
  readonly workspace_id: string
  readonly account_ids: readonly string[]
  readonly number: ChatNumber
  /** Selects kind and value of each name that they have or had. */
  readonly names: Sql
  /** When the erasure was asked for. */
  readonly at: Date
}

/** Whether operation `o` is of a chat in which they have written again, and younger than the erasure: then it stays. */
const isSince = ({ number, at }: Pick<ErasedPerson, 'number' | 'at'>): Sql => sql`(
  o.created_at > ${at} and exists ( -- guard: operations since they wrote again stay
    select from erased_chats e where e.chat_id = ${number}::bigint and e.from_id is not null
      and e.account_id = coalesce(o.account_id, o.reply_body ->> 'account_id')))`

/**
 * Operation `o`, by its chat, its recipient, the chat in its answer, or the name that it asked for. Names are compared in the
 * suppression list's form.
 */
const isOf = ({ account_ids, number, names, at }: ErasedPerson): Sql => sql`((
  (o.account_id = any(${account_ids}) and o.chat_id = ${number}::bigint)
  or (o.effect = 'local' and strpos(o.reply_body::text, ${`"${chatIdOf(number)}"`}) > 0)
  or (o.chat_id is null and o.account_id = any(${account_ids}) and (
    o.reply_body -> 'chat' ->> 'id' = ${chatIdOf(number)}
    or (o.payload -> 'identifier' ->> 'kind', case o.payload -> 'identifier' ->> 'kind'
        when 'phone' then phone_digits(o.payload -> 'identifier' ->> 'value')
        else lower(o.payload -> 'identifier' ->> 'value') end) in (
      select own.kind, own.value from (${names}) own
      union all select 'id', ${number})))) and not ${isSince({ number, at })})`

/** Nothing more is sent to the person: what waits for a worker is released. */
export async function releaseQueued(
  { operations }: Pick<App, 'operations'>,
  tx: Tx,
  { account_ids, number, at }: Pick<ErasedPerson, 'account_ids' | 'number' | 'at'>,
): Promise<SettledOperation[]> {
  const queued = await tx.rows<{ id: string; queued_no: number }>(sql`
    select o.id, o.queued_no from operations o
    where o.account_id = any(${account_ids}) and o.chat_id = ${number} and o.state = 'queued'
      and not ${isSince({ number, at })} order by o.id`)
  const ending = { to: 'released', reason: 'erased' } as const
  return settle(
    tx,
    operations,
    queued.map(({ id, queued_no }) => ({ id, token: null, queued_no, ending })),
  )
}

/** Whether an operation about the person has not ended. */
export async function isInFlight(tx: Tx, person: ErasedPerson): Promise<boolean> {
  const row = await tx.maybe(sql`
    select 1 from operations o
    where o.state in ('queued', 'submitting') and o.effect = 'platform' and o.account_id = any(${person.account_ids})
      and ${isOf(person)} limit 1`)
  return row !== undefined
}

/** Clears among the next `limit` ended operations of the workspace, oldest first. Returns how far it has read; null: all. */
export async function eraseOperations(
  tx: Tx,
  person: ErasedPerson,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<{ readonly cleared: number; readonly last: string | null }> {
  const [at = null, id = null] = after?.split('|') ?? []
  const page = await tx.rows<{ id: string; place: string; ours: boolean }>(sql`
    select o.id, o.finished_at::text || '|' || o.id as place, ${isOf(person)} as ours from (
      select * from operations
      where workspace_id = ${person.workspace_id} and cleared_at is null and state in ('completed', 'refused', 'released')
        and (${at}::text is null or (finished_at, id) > (${at}::timestamptz, ${id}::uuid))
      order by finished_at, id limit ${limit}) o`)
  const cleared = await clearOperations(
    tx,
    page.filter(({ ours }) => ours).map((row) => row.id),
  )
  return { cleared, last: page.length < limit ? null : (page.at(-1)?.place ?? null) }
}

/** An unknown outcome keeps its random id, and can still be proven. */
export async function eraseAmbiguous(tx: Tx, person: ErasedPerson): Promise<number> {
  const rows = await tx.rows<{ id: string }>(sql`
    select o.id from operations o
    where o.account_id = any(${person.account_ids}) and o.state = 'ambiguous' and o.cleared_at is null and ${isOf(person)}`)
  return clearOperations(
    tx,
    rows.map(({ id }) => id),
  )
}
