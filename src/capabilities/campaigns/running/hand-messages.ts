/**
 * What the team writes by hand ends sequences that ask for it. By hand is a send of a person at the dashboard, which a trigger
 * notes when it is queued, and a live message of ours that no operation sent. Which of the two a message is may be unknown for a
 * while: until then its row stays, and the follow-ups to that person wait.
 */
import type { App } from '../../../app.ts'
import type { AccountKey } from '../../../contract.ts'
import { given } from '../../../db/given.ts'
import { type Sql, sql, type Tx } from '../../../db/sql.ts'
import { messageKinds } from '../../../ledger/unsent.ts'
import type { ChatNumber } from '../../../lib/shapes.ts'
import type { Message } from '../../../platform/port.ts'
import { isSentBefore, sentAt } from './replies.ts'

const rowsMax = 500

/** A message that the platform shows as ours, live and not from history. */
interface OwnMessage {
  readonly chat_id: ChatNumber
  readonly message: Message
}

/**
 * Notes our own messages in the transaction that stores them; `decideNoted` decides. Messages may arrive repeatedly: one that is
 * decided ends nothing the second time. Returns whether there is anything to decide.
 */
export async function noteOwnMessages(
  tx: Tx,
  { account_id, workspace_id }: AccountKey,
  own: readonly OwnMessage[],
): Promise<boolean> {
  const unknown = own.filter(({ message }) => message.random_id === null)
  if (unknown.length === 0) return false
  const noted = await tx.run(sql`
    insert into hand_messages (id, workspace_id, account_id, platform, chat_id, message_id, sent_at)
    select gen_random_uuid(), ${workspace_id}, a.id, a.platform, g.chat_id, g.message_id, g.sent_at
    from ${given(unknown, {
      chat_id: 'bigint',
      message_id: ['bigint', ({ message }) => message.id],
      sent_at: ['timestamptz', ({ message }) => message.timestamp],
    })} as g join accounts a on a.id = ${account_id}
    where exists (
      select from campaign_recipients r join campaigns k on k.id = r.campaign_id
      where r.workspace_id = ${workspace_id} and r.chat_id = g.chat_id
        and r.status in ('submitting', 'waiting') -- guard: a message by hand while ours is in flight
        and k.stop_on_own_message)
    order by g.chat_id, g.message_id
    on conflict do nothing`)
  return noted > 0
}

/**
 * Notes our own messages that were stored while nobody knew of these messages of campaigns: a restored database had lost them, and
 * `noteOwnMessages` found no recipient. What history has brought is noted as well, because nothing tells the two apart any more.
 */
export async function noteStoredMessages(tx: Tx, operation_ids: readonly string[]): Promise<void> {
  if (operation_ids.length === 0) return
  await tx.run(sql`
    insert into hand_messages (id, workspace_id, account_id, platform, chat_id, message_id, sent_at)
    select gen_random_uuid(), a.workspace_id, a.id, a.platform, m.chat_id, m.id, m.sent_at
    from operations o
    join campaign_recipients r on r.id = o.recipient_id and r.status = 'waiting'
    join campaigns k on k.id = r.campaign_id and k.stop_on_own_message
    join accounts own on own.id = o.account_id
    join accounts a on a.workspace_id = own.workspace_id
      and a.platform = own.platform -- guard: a stored message to the same person
    cross join lateral (
      select m.chat_id, m.id, m.sent_at from messages m
      where m.account_id = a.id and m.chat_id = o.chat_id and m.random_id is null
        and m.is_sender -- guard: what the person has written is not by hand
        and m.sent_at >= ${sentAt}) m
    where o.id = any(${operation_ids}::uuid[])
    order by m.chat_id, m.id, a.id
    on conflict do nothing`)
}

/** Decides what can be decided by now. Returns the workspaces in which sequences ended. */
export async function decideNoted(app: App): Promise<readonly { readonly workspace_id: string }[]> {
  const some = await app.db.maybe(sql`select 1 from hand_messages limit 1`)
  return some ? app.db.transaction((tx) => decideRows(app, tx)) : []
}

/** Counts the rows that can be decided now: a manual clock waits for them. */
export const countDecidable = (app: App): Sql => sql`(
  select count(*) from ${verdicts(app, sql`hand_messages`)} v where ${isDecidable})`

/** A sequence that writes to the person of row `v` and ends when a member writes to them by hand. */
const sequencesOf = (v: Sql): Sql => sql`campaign_recipients r
  join campaigns k on k.id = r.campaign_id and k.stop_on_own_message -- guard: only who asked for it
  join accounts writer on writer.id = r.account_id and writer.platform = ${v}.platform
  where r.workspace_id = ${v}.workspace_id -- guard: a message by hand ends sequences of its workspace
    and r.chat_id = ${v}.chat_id`

/** A message to the person is in flight or unknown. Whether it came before is known once it is proven. */
const dependsOn = (v: Sql): Sql => sql`exists (select from ${sequencesOf(v)} and r.status = 'submitting')`

const isBefore: Sql = isSentBefore({
  message_id: sql`case when r.account_id = v.account_id then v.message_id end`,
  at: sql`v.at`,
})

/** The recipients that row `v` ends, which is by hand: those that wait and have got a message before it. */
const endedBy: Sql = sql`
  select r.id from ${sequencesOf(sql`v`)} and r.status = 'waiting' and exists (
    select from operations o where o.recipient_id = r.id
      and ${isBefore} -- guard: only who was written to before
      )`

/** Whether row `v` ends a sequence now, or goes. Others are not read again and again in front of it. */
const isDecidable: Sql = sql`(v.verdict = 'ours'
  or (v.verdict = 'by_hand' and (not ${dependsOn(sql`v`)} or exists (${endedBy}))))`

/**
 * Locks the rows and then the recipients, so that it decides on their present state: a crossing in flight commits first. Rows that
 * another transaction decides are left to it.
 */
async function decideRows(app: App, tx: Tx): Promise<readonly { readonly workspace_id: string }[]> {
  const rows = await tx.rows<{ id: string }>(sql`
    select h.id from ${verdicts(app, sql`hand_messages`)} v join hand_messages h on h.id = v.id
    where ${isDecidable} order by h.id limit ${rowsMax} for update of h skip locked`)
  if (rows.length === 0) return []
  const ids = rows.map(({ id }) => id)
  await tx.run(sql`
    with writers as materialized (
      select distinct r.id from hand_messages h
      cross join lateral (select r.id from ${sequencesOf(sql`h`)} and r.status in ('submitting', 'waiting')) r
      where h.id = any(${ids}::uuid[]) order by 1)
    select 1 from writers w
    cross join lateral (select 1 from campaign_recipients r where r.id = w.id for update) r`)
  return tx.rows(sql`
    with decided as materialized (
      select * from ${verdicts(app, sql`(select * from hand_messages where id = any(${ids}::uuid[]))`)} v
      where v.verdict <> 'open'),
    ending as materialized (
      select distinct e.id from decided v cross join lateral (${endedBy}) e where v.verdict = 'by_hand'),
    ended as (
      update campaign_recipients r set status = 'completed', reason = 'answered_by_hand', next_action_at = null,
        ended_at = domain_now()
      from ending e where r.id = e.id and r.status = 'waiting' returning r.workspace_id),
    removed as (
      delete from hand_messages h using decided v
      where h.id = v.id and not (v.verdict = 'by_hand' and ${dependsOn(sql`v`)})) -- guard: a message in flight is decided later
    select distinct workspace_id from ended`)
}

/**
 * What each row is: `by_hand`, `ours` (an operation's, or never sent), or `open` while that is unknown. With the message's number
 * and time; an operation that was closed as sent has only its time.
 */
function verdicts({ operations }: App, rows: Sql): Sql {
  const kinds = messageKinds(operations)
  return sql`(
    select h.id, h.workspace_id, h.account_id, h.platform, h.chat_id,
      coalesce(h.message_id, (o.reply_body ->> 'message_id')::bigint) as message_id,
      coalesce(h.sent_at, (o.reply_body ->> 'timestamp')::timestamptz, o.crossed_at) as at,
      case
        when h.operation_id is null then case
          when ${isOfOperation} then 'ours'
          when exists (
            select from operations q where q.account_id = h.account_id and q.chat_id = h.chat_id and q.kind = any(${kinds})
              and (q.state = 'submitting' or (q.state = 'ambiguous' and q.closed_as is null))
              and q.proof_message_id is null) then 'open' -- guard: an operation in flight may have sent it
          when exists (select from workers w where w.owes) then 'open' -- guard: a journal may have its operation
          else 'by_hand' end
        when o.state = 'completed' or (o.state = 'ambiguous' and o.closed_as = 'sent') then 'by_hand'
        when o.state in ('queued', 'submitting') -- guard: a queued send of a member is not decided
          or (o.state = 'ambiguous' and o.closed_as is null) then 'open'
        else 'ours' end as verdict
    from ${rows} h left join operations o on o.id = h.operation_id)`
}

/**
 * The message of row `h` carries the random id of an operation by now; or it is a campaign's message that a journal put back; or
 * an operator closed an operation with this text as sent.
 */
const isOfOperation: Sql = sql`(exists (
    select from messages m where m.account_id = h.account_id and m.chat_id = h.chat_id and m.id = h.message_id
      and (m.random_id is not null -- guard: a message of an operation
        or exists (
        select from operations q where q.account_id = h.account_id and q.chat_id = h.chat_id and q.state = 'ambiguous'
          and q.closed_as = 'sent'
          and q.payload ->> 'text' = m.text -- guard: closed as sent with this text
        )))
  or exists (
    select from operations q where q.account_id = h.account_id and q.chat_id = h.chat_id
      and q.state in ('submitting', 'ambiguous') and q.proof_message_id = h.message_id)
  or exists (
    select from campaign_recipients r join operations q on q.recipient_id = r.id and q.account_id = h.account_id
    where r.account_id = h.account_id and r.chat_id = h.chat_id
      and coalesce((q.reply_body ->> 'message_id')::bigint, q.proof_message_id) = h.message_id))`
