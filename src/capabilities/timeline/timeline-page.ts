/** One page of a chat's timeline as a statement: messages, operations without a message, and notes, merged by time. */
import { type Sql, sql } from '../../db/sql.ts'
import { unsent } from '../../ledger/unsent.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import { isOfAgent } from '../approvals/approvals.ts'
import { memberName } from '../chats/chats.ts'

/** A place between two items, in the order of (time, kind of item, id). */
export interface TimelinePoint {
  readonly at: string
  readonly rank: number
  readonly id: string
}

/** Items of the same time come in this order. */
export const ranks = { message: 0, operation: 1, note: 2 } as const

const ends = {
  message: { lowest: '-9223372036854775808', highest: '9223372036854775807' },
  operation: { lowest: uuidOf('0'), highest: uuidOf('f') },
  note: { lowest: uuidOf('0'), highest: uuidOf('f') },
}

function uuidOf(digit: string): string {
  return [8, 4, 4, 4, 12].map((length) => digit.repeat(length)).join('-')
}

/** After every item. */
export const endOfTimeline: TimelinePoint = { at: 'infinity', rank: ranks.note, id: ends.note.highest }

export interface TimelinePlace {
  readonly account_id: string
  readonly chat_id: ChatNumber
  readonly from: TimelinePoint
  readonly direction: 'older' | 'newer'
  readonly limit: number
}

/** What selects the items, besides the place. */
export interface TimelineReader {
  /** Also shows what lies before a gap in the stored history. */
  readonly across_gaps: boolean
  readonly user_id: string
  /** Whether the user may delete the notes of others. */
  readonly admin: boolean
  /** Kinds of operation that send a message. */
  readonly kinds: readonly string[]
}

/**
 * Reads each kind of item in the order of its index, and so no more than a page of each. Returns one row with `item` null
 * for a chat without items, and none if there is no such chat.
 *
 * As in `GET …/messages`, the store has no gaps from `floor` on, and what is older stays hidden until history reaches it.
 * Without any history it begins with the first live message, or the last one that the chat list brought. Notes and operations
 * wait for the messages of their time, too: a page that begins with one would skip the messages before it. `offset 0` makes
 * the server compute both once, and not in each of the three reads.
 */
export function timelinePage(place: TimelinePlace, reader: TimelineReader): Sql {
  const { account_id, chat_id, limit } = place
  const order = place.direction === 'older' ? sql`desc` : sql`asc`
  return sql`
    select chat.complete, t.item, t.at::text, t.rank, coalesce(t.number::text, t.uuid::text) as id
    from (
      select c.account_id, c.chat_id, c.read_by_them_id, c.read_by_them_at, coalesce(s.complete, false) as complete,
        case when s.complete or ${reader.across_gaps}::boolean then ${ends.message.lowest}::bigint
          else coalesce(s.oldest_id, ${firstLive}, c.last_message_id, ${ends.message.highest}::bigint) end as floor
      from chats c left join chat_sync s on s.account_id = c.account_id and s.chat_id = c.chat_id
      where c.account_id = ${account_id} and c.chat_id = ${chat_id} offset 0) chat
    cross join lateral (
      select case when chat.complete then '-infinity'::timestamptz else coalesce((
        select sent_at from messages
        where account_id = chat.account_id and chat_id = chat.chat_id and id = chat.floor), '-infinity') end as at offset 0) since
    left join lateral (
      select * from (
        (${messagesOf(place)}) union all (${operationsOf(place, reader)}) union all (${notesOf(place, reader)})) merged
      order by at ${order}, rank ${order}, number ${order}, uuid ${order} limit ${limit}) t on true`
}

/** Received live or sent by us. An edit of a message that was never stored is neither. */
const firstLive = sql`(
  select min(l.id) from messages l where l.account_id = c.account_id and l.chat_id = c.chat_id
    and (l.announced or (l.is_sender and l.random_id is not null and l.edited_at is null)))`

/** The range of one kind of item beyond the point, and the order of its index. */
function rangeOf({ from, direction }: TimelinePlace, kind: keyof typeof ranks, columns: Sql): Sql {
  const rank = ranks[kind]
  const { lowest, highest } = ends[kind]
  const id = rank === from.rank ? from.id : rank < from.rank ? highest : lowest
  const bound = kind === 'message' ? sql`${id}::bigint` : sql`${id}::uuid`
  return direction === 'older'
    ? sql`(${columns}) < (${from.at}::timestamptz, ${bound})`
    : sql`(${columns}) > (${from.at}::timestamptz, ${bound})`
}

function messagesOf(place: TimelinePlace): Sql {
  const order = place.direction === 'older' ? sql`desc` : sql`asc`
  return sql`
    select ${ranks.message}::int as rank, m.sent_at as at, m.id as number, null::uuid as uuid,
      json_build_object('type', 'message', 'id', m.id::text, 'at', wire_time(m.sent_at), 'is_sender', m.is_sender,
        'text', m.text, 'edited_at', wire_time(m.edited_at), 'attachments', m.attachments,
        'state', case when m.is_sender then 'accepted' end,
        'read_at', case when m.is_sender and m.id <= chat.read_by_them_id then wire_time(chat.read_by_them_at) end,
        'by', case when m.is_sender then coalesce(origin.by, '{"kind":"elsewhere","user_id":null,"name":null}') end,
        'campaign', origin.campaign, 'operation_id', origin.operation_id) as item
    from messages m
      left join lateral (
        select ${originOf} from operations o ${joinOrigin}
        where m.is_sender and o.account_id = m.account_id and o.random_id = m.random_id) origin on true
    where m.account_id = chat.account_id and m.chat_id = chat.chat_id and m.deleted_at is null
      and m.id >= chat.floor -- guard: a timeline has no gap
      and ${rangeOf(place, 'message', sql`m.sent_at, m.id`)}
    order by m.sent_at ${order}, m.id ${order} limit ${place.limit}`
}

function operationsOf(place: TimelinePlace, { kinds }: TimelineReader): Sql {
  const order = place.direction === 'older' ? sql`desc` : sql`asc`
  return sql`
    select ${ranks.operation}::int, o.created_at, null::bigint, o.id,
      json_build_object('type', 'operation', 'id', origin.operation_id, 'at', wire_time(o.created_at),
        'text', coalesce(o.payload ->> 'text', ''), 'file_name', o.payload #>> '{file,file_name}', 'state', o.state,
        'reason', o.reason, 'cause', o.detail, 'closed_as', o.closed_as, 'refusal', o.reply_body ->> 'error',
        'by', origin.by, 'campaign', origin.campaign)
    from (
      select * from operations o
      where o.account_id = chat.account_id and o.chat_id = chat.chat_id and ${unsent(kinds)}
        and o.created_at >= since.at -- guard: operations wait for the messages of their time
        and ${rangeOf(place, 'operation', sql`o.created_at, o.id`)}
      order by o.created_at ${order}, o.id ${order} limit ${place.limit}) o
      cross join lateral (select ${originOf} from (select) once ${joinOrigin}) origin`
}

function notesOf(place: TimelinePlace, { user_id, admin }: TimelineReader): Sql {
  const order = place.direction === 'older' ? sql`desc` : sql`asc`
  return sql`
    select ${ranks.note}::int, n.created_at, null::bigint, n.id,
      json_build_object('type', 'note', 'id', n.id, 'at', wire_time(n.created_at), 'text', n.text,
        'author', json_build_object('user_id', u.id, 'name', ${memberName}),
        'deletable', ${admin}::boolean or n.author_id = ${user_id})
    from notes n join users u on u.id = n.author_id
    where n.account_id = chat.account_id and n.chat_id = chat.chat_id
      and n.cleared_at is null -- guard: a cleared note is not shown
      and n.created_at >= since.at -- guard: notes wait for the messages of their time
      and ${rangeOf(place, 'note', sql`n.created_at, n.id`)}
    order by n.created_at ${order}, n.id ${order} limit ${place.limit}`
}

/** Who requested operation `o`. */
const originOf = sql`coalesce(o.public_id, o.id) as operation_id,
  case when o.campaign_id is not null then json_build_object('kind', 'campaign', 'user_id', null, 'name', g.name)
    when ${isOfAgent} then json_build_object('kind', 'agent', 'user_id', null, 'name', k.name)
    when o.key_id is not null then json_build_object('kind', 'key', 'user_id', null, 'name', k.name)
    when u.id is not null then json_build_object('kind', 'user', 'user_id', u.id, 'name', ${memberName}) end as by,
  case when o.campaign_id is not null then json_build_object('id', g.id, 'name', g.name, 'step', o.step_no) end as campaign`

const joinOrigin = sql`left join users u on u.id = o.user_id left join keys k on k.id = o.key_id
  left join campaigns g on g.id = o.campaign_id`
