/** Erases what events say of a person. Their number, kind and time stay, so no reader misses one. */
import { sql, type Tx } from '../db/sql.ts'
import { type ChatNumber, chatIdOf } from '../lib/shapes.ts'

interface ErasedPerson {
  readonly workspace_id: string
  readonly account_ids: readonly string[]
  readonly number: ChatNumber
  /** When the erasure was asked for. */
  readonly at: Date
}

/**
 * Whether the JSON of an event is about a private chat of the person, or about a message of theirs in a group. What they have written
 * since, and what has happened to it, stays.
 */
const isAbout = ({ account_ids, number, at }: ErasedPerson) => sql`(
  e.data ->> 'account_id' = any(${account_ids}) and (
    (e.data ->> 'chat_id' = ${chatIdOf(number)} and not exists (
      select from erased_chats c
      where c.account_id = e.data ->> 'account_id' and c.chat_id = ${number}::bigint and c.from_id is not null
        and coalesce((e.data -> 'message' ->> 'id')::bigint >= c.from_id, (e.data ->> 'message_id')::bigint >= c.from_id,
          e.occurred_at > ${at}))) -- guard: events of what they write again stay
    or (e.data ->> 'chat_id' like 'platform:chat:-%' and e.data -> 'message' ->> 'id' is not null and exists (
      select from messages m where m.account_id = e.data ->> 'account_id'
        and m.chat_id = split_part(e.data ->> 'chat_id', ':', 3)::bigint
        and m.id = (e.data -> 'message' ->> 'id')::bigint and m.sender_id = ${number}::bigint
        and m.sent_at <= ${at}))))`

/** Events that have no number yet. The sequencer has few of them at a time. */
export async function eraseOutbox(tx: Tx, person: ErasedPerson): Promise<void> {
  await tx.run(sql`
    update outbox e set data = '{"erased": true}'
    where e.workspace_id = ${person.workspace_id} and ${isAbout(person)}`)
}

/** Erases among the next `limit` events. Returns those that it erased, and the last one that it read; null: there are no more. */
export async function eraseEvents(
  tx: Tx,
  person: ErasedPerson & { readonly after: string; readonly limit: number },
): Promise<{ readonly erased: readonly string[]; readonly last: string | null }> {
  const { workspace_id, after, limit } = person
  return tx.one(sql`
    with page as materialized (
      select sequence from events where workspace_id = ${workspace_id} and sequence > ${after}
      order by sequence limit ${limit}),
    erased as (
      update events e set data = '{"erased": true}'
      from page p where e.workspace_id = ${workspace_id} and e.sequence = p.sequence and ${isAbout(person)}
      returning e.sequence)
    select array(select sequence::text from erased) as erased, (select max(sequence)::text from page) as last`)
}
