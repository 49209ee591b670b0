/** Messages as they are stored: one row each, however often and in whatever order they arrive. */
import type { AccountKey } from '../../contract.ts'
import { given } from '../../db/given.ts'
import { type Sql, sql, type Tx } from '../../db/sql.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import { channelsFrom, type Message, type Update } from '../../platform/port.ts'

export { clearMessages, type MessageKey } from './clearing.ts'

export interface ReceivedMessage {
  readonly chat_id: ChatNumber
  readonly message: Message
  /** A live message from the other side, which is announced once. */
  readonly announce: boolean
}

/** The message as the API and the events show it. */
type WireMessage = Omit<Message, 'sender_id' | 'random_id'>

export function toWire(message: Message): WireMessage {
  const { id, text, is_sender, timestamp, edited_at, attachments } = message
  return { id, text, is_sender, timestamp, edited_at, attachments }
}

interface MessagePlace {
  readonly chat_id: ChatNumber
  readonly id: string
}

interface StoredPlace extends MessagePlace {
  /** The row was inserted, not updated. */
  readonly fresh: boolean
}

/**
 * Returns the messages that were not stored before, or whose event has not been emitted before. Each (chat, message) at most
 * once in `seen`.
 */
export async function storeMessages(
  tx: Tx,
  account: AccountKey,
  seen: readonly ReceivedMessage[],
): Promise<ReceivedMessage[]> {
  if (seen.length === 0) return []
  const stored = await tx.rows<StoredPlace>(sql`
    insert into messages as m (${columns}, announced)
    select ${valuesOf(account)}, announce from ${keptOf(account, seen)} ${inOrder}
    on conflict (account_id, chat_id, id) do update
      set announced = m.announced or excluded.announced, random_id = coalesce(m.random_id, excluded.random_id)
      where m.deleted_at is null and ((excluded.announced and not m.announced)
        or (m.random_id is null and excluded.random_id is not null))
    returning m.chat_id, m.id, ${isNew} as fresh`)
  countFresh(tx, account, { seen, stored })
  return among(seen, stored)
}

/**
 * The newer edit wins, and of two with the same time the one that arrives last. Returns the edits that changed something. An
 * edit of a message that was never stored inserts it.
 */
export async function storeEdits(
  tx: Tx,
  account: AccountKey,
  seen: readonly ReceivedMessage[],
): Promise<ReceivedMessage[]> {
  if (seen.length === 0) return []
  const stored = await tx.rows<StoredPlace>(sql`
    insert into messages as m (${columns})
    select ${valuesOf(account)} from ${keptOf(account, seen)} ${inOrder}
    on conflict (account_id, chat_id, id) do update
      set text = excluded.text, edited_at = excluded.edited_at, attachments = excluded.attachments
      where m.deleted_at is null
        and coalesce(m.edited_at, '-infinity') <= coalesce(excluded.edited_at, '-infinity')
        and (m.edited_at, m.text, m.attachments)
          is distinct from (excluded.edited_at, excluded.text, excluded.attachments)
    returning m.chat_id, m.id, ${isNew} as fresh`)
  countFresh(tx, account, { seen, stored })
  return among(seen, stored)
}

/** One lock order for all: history arrives newest first and updates oldest first, and two transactions must not deadlock. */
const inOrder = sql`order by chat_id, id`

/** PostgreSQL leaves xmax at 0 in a row that was inserted and not updated. */
const isNew = sql`(m.xmax = 0)`

/**
 * Runs with COMMIT, so that the rows of counts are locked as briefly as possible. The total comes first: there, transactions
 * of the same account wait for each other in one order, and so cannot deadlock.
 */
function countFresh(
  tx: Tx,
  { account_id, workspace_id }: AccountKey,
  { seen, stored }: { seen: readonly ReceivedMessage[]; stored: readonly StoredPlace[] },
): void {
  const fresh = stored.filter((each) => each.fresh)
  if (fresh.length === 0) return
  const messages = among(seen, fresh).map(({ message }) => message)
  tx.atCommit(sql`
    insert into message_counts as c (workspace_id, span, at, account_id, received, sent)
    select ${workspace_id}, case when grouping(day) = 0 then 'day' when grouping(quarter) = 0 then 'quarter' else 'all' end,
      coalesce(day, quarter, '-infinity'), ${account_id}, count(*) filter (where not is_sender),
      count(*) filter (where is_sender)
    from (
      select is_sender, date_bin('1 day', sent_at, '2000-01-01 00:00Z') as day,
        date_bin('15 minutes', sent_at, '2000-01-01 00:00Z') as quarter
      from ${given(messages, {
        sent_at: ['timestamptz', ({ timestamp }) => timestamp],
        is_sender: 'boolean',
      })} as given) stored
    group by grouping sets ((), (day), (quarter))
    order by 2, 3
    on conflict (workspace_id, span, at, account_id) do update
      set received = c.received + excluded.received, sent = c.sent + excluded.sent`)
}

const columns = sql`account_id, chat_id, id, workspace_id, text, is_sender, sender_id, sent_at, edited_at,
  attachments, random_id, deleted_at`

function valuesOf({ account_id, workspace_id }: AccountKey) {
  return sql`${account_id}, chat_id, id, ${workspace_id}, case when is_old then '' else text end, is_sender, sender_id, sent_at,
    edited_at, case when is_old then '[]' else attachments end, random_id, case when is_old then domain_now() end`
}

/** What is older than the workspace keeps it is stored as what was cleared: the row, without its content. */
function keptOf({ workspace_id }: AccountKey, seen: readonly ReceivedMessage[]): Sql {
  return sql`(
    select given.*,
      sent_at < since.at as is_old -- guard: content older than its workspace keeps it
    from ${givenSeen(seen)} as given, (select kept_since(${workspace_id}::uuid) as at offset 0) since) as given`
}

function givenSeen(seen: readonly ReceivedMessage[]) {
  return given(seen, {
    chat_id: 'bigint',
    id: ['bigint', ({ message }) => message.id],
    text: ['text', ({ message }) => message.text],
    is_sender: ['boolean', ({ message }) => message.is_sender],
    sender_id: ['bigint', ({ message }) => message.sender_id],
    sent_at: ['timestamptz', ({ message }) => message.timestamp],
    edited_at: ['timestamptz', ({ message }) => message.edited_at],
    attachments: ['jsonb', ({ message }) => message.attachments],
    random_id: ['bigint', ({ message }) => message.random_id],
    announce: 'boolean',
  })
}

function among(seen: readonly ReceivedMessage[], stored: readonly MessagePlace[]): ReceivedMessage[] {
  const places = new Set(stored.map(({ chat_id, id }) => `${chat_id}:${id}`))
  return seen.filter(({ chat_id, message }) => places.has(`${chat_id}:${message.id}`))
}

/** Which of these messages were deleted already: updates about them arrive too late. */
export async function findDeleted(tx: Tx, account: AccountKey, ids: readonly string[]): Promise<Deleted> {
  if (ids.length === 0) return () => false
  const rows = await tx.rows<MessagePlace>(sql`
    select d.chat_id, d.id from unnest(${ids}::bigint[]) as given (id)
    join lateral (
      select chat_id, id from deleted_messages
      where account_id = ${account.account_id} and id = given.id limit 100) d on true`)
  const places = new Set(rows.map(({ chat_id, id }) => `${chat_id}:${id}`))
  const sharesCount = (chat_id: string) => BigInt(chat_id) > BigInt(channelsFrom)
  return ({ chat_id, message }) =>
    places.has(`${chat_id}:${message.id}`) || (sharesCount(chat_id) && places.has(`0:${message.id}`))
}

/** The same for a row of messages of any accounts. */
export function wasDeleted(row: Sql): Sql {
  return sql`exists (select from deleted_messages d
    where d.account_id = ${row}.account_id and d.id = ${row}.id
      and (d.chat_id = ${row}.chat_id or (d.chat_id = 0 and ${row}.chat_id > ${channelsFrom})))`
}

export type Deleted = (seen: Pick<ReceivedMessage, 'chat_id' | 'message'>) => boolean

/** A deletion without a chat refers to the chats that share one numbering. */
type Deletion = Pick<Extract<Update, { kind: 'deleted' }>, 'chat_id' | 'message_ids'>

/** Keeps the row and clears its content. Returns the messages deleted now, by chat. */
export async function deleteMessages(
  tx: Tx,
  account: AccountKey,
  deletions: readonly Deletion[],
): Promise<{ chat_id: ChatNumber; message_ids: string[] }[]> {
  if (deletions.length === 0) return []
  const pairs = deletions.flatMap(({ chat_id, message_ids }) => message_ids.map((id) => ({ chat_id, id })))
  return tx.rows(sql`
    with named as (
      select distinct chat_id, id from ${given(pairs, { chat_id: 'bigint', id: 'bigint' })} as pair),
    remembered as (
      insert into deleted_messages (account_id, id, chat_id, workspace_id)
      select ${account.account_id}, id, coalesce(chat_id, 0), ${account.workspace_id} from named
      on conflict do nothing),
    gone as (
      update messages m set deleted_at = domain_now(), text = '', attachments = '[]'
      from named n
      where m.account_id = ${account.account_id} and m.id = n.id and m.deleted_at is null
        and (m.chat_id = n.chat_id or (n.chat_id is null and m.chat_id > ${channelsFrom}))
      returning m.chat_id, m.id)
    select chat_id, array_agg(id::text order by id) as message_ids from gone group by chat_id order by chat_id`)
}

/** Stores the random id under which the platform says it accepted a message: permanent proof on the message itself. */
export async function noteRandomIds(
  tx: Tx,
  { account_id }: AccountKey,
  sent: readonly { readonly chat_id: ChatNumber; readonly message_id: string; readonly random_id: string }[],
): Promise<void> {
  if (sent.length === 0) return
  await tx.run(sql`
    update messages m set random_id = s.random_id
    from ${given(sent, { chat_id: 'bigint', id: ['bigint', ({ message_id }) => message_id], random_id: 'bigint' })} as s
    where m.account_id = ${account_id} and m.chat_id = s.chat_id and m.id = s.id and m.random_id is null`)
}

/**
 * Our own messages to people who were erased, without their content: the random id proves that each was sent. They are stored as deleted
 * ones, and not counted.
 */
export async function noteWitnesses(
  tx: Tx,
  { account_id, workspace_id }: AccountKey,
  seen: readonly Pick<ReceivedMessage, 'chat_id' | 'message'>[],
): Promise<void> {
  await tx.run(sql`
    insert into messages as m (account_id, chat_id, id, workspace_id, text, is_sender, sent_at, random_id, deleted_at)
    select distinct on (chat_id, id) ${account_id}, chat_id, id, ${workspace_id}::uuid, '', true, sent_at, random_id, domain_now()
    from ${given(seen, {
      chat_id: 'bigint',
      id: ['bigint', ({ message }) => message.id],
      sent_at: ['timestamptz', ({ message }) => message.timestamp],
      random_id: ['bigint', ({ message }) => message.random_id],
    })} as given order by chat_id, id
    on conflict (account_id, chat_id, id) do update set random_id = excluded.random_id where m.random_id is null`)
}
