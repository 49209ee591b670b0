/** Every stored message with a person, oldest first in each chat, a batch at a time: what an export contains of it. */
import { type Db, type Sql, sql } from '../../db/sql.ts'
import { originOfMessage, sentElsewhere } from '../timeline/timeline.ts'
import type { PersonRow } from './stored-parts.ts'

/** Each batch is parsed and written again: some 4 ms of this process. */
const readAtOnce = 250
/** Of a group, where few messages are the person's. */
const passedAtOnce = 2_000
const chatsAtOnce = 500

export interface ExportedMessage {
  readonly account_id: string
  readonly chat_id: string
  readonly id: string
  readonly at: string
  readonly edited_at: string | null
  /** Whether the account sent it. */
  readonly is_sender: boolean
  readonly text: string
  readonly attachments: readonly ExportedAttachment[]
  readonly by: { readonly kind: string; readonly name: string | null } | null
  readonly campaign: { readonly id: string; readonly name: string | null; readonly step: number } | null
  readonly operation_id: string | null
}

interface ExportedAttachment {
  readonly index: number
  readonly file_name: string
  readonly media_type: string
  readonly size: number
  /** Its id and length where Parley has its bytes now. */
  readonly stored: { readonly id: string; readonly size: number } | null
}

interface Place {
  readonly account_id: string
  readonly chat_id: string
}

interface WalkedRow {
  readonly item: ExportedMessage
  readonly sent_at: string
  readonly is_theirs: boolean
}

/** `before`: messages of later are left out, so that two walks see the same ones. */
export async function* eachMessage(
  db: Db,
  person: PersonRow,
  before: string,
): AsyncGenerator<readonly ExportedMessage[], void> {
  for await (const place of eachPlace(db, person)) {
    const isGroup = place.chat_id.startsWith('-')
    const limit = isGroup ? passedAtOnce : readAtOnce
    let after: readonly [at: string, id: string] = ['-infinity', '0']
    for (let full = true; full; ) {
      const rows: WalkedRow[] = await db.rows<WalkedRow>(batchOf(person, place, { after, before, limit }))
      const theirs = rows.filter(({ is_theirs }) => !isGroup || is_theirs) // guard: messages of others in groups
      if (theirs.length > 0) yield theirs.map(({ item }) => item)
      const last = rows.at(-1)
      if (last) after = [last.sent_at, last.item.id]
      full = rows.length === limit
    }
  }
}

interface Batch {
  readonly after: readonly [at: string, id: string]
  readonly before: string
  readonly limit: number
}

/** The texts of others in a group are not even read. */
function batchOf(
  { number }: PersonRow,
  { account_id, chat_id }: Place,
  { after: [at, id], before, limit }: Batch,
): Sql {
  return sql`
    select m.sent_at::text, theirs.are as is_theirs,
      json_build_object('account_id', m.account_id, 'chat_id', 'platform:chat:' || m.chat_id, 'id', m.id::text,
        'at', wire_time(m.sent_at), 'edited_at', wire_time(m.edited_at), 'is_sender', m.is_sender,
        'text', case when private.is or theirs.are then m.text else '' end,
        'attachments', case when private.is or theirs.are then files.list else '[]' end,
        'by', case when m.is_sender then coalesce(origin.by, ${sentElsewhere}) end, 'campaign', origin.campaign,
        'operation_id', origin.operation_id) as item
    from (
      select * from messages m
      where m.account_id = ${account_id} and m.chat_id = ${chat_id}::bigint and m.deleted_at is null
        and (m.sent_at, m.id) > (${at}::timestamptz, ${id}::bigint) and m.sent_at <= ${before}::timestamptz
      order by m.sent_at, m.id limit ${limit}) m
    cross join lateral (select m.chat_id > 0 as is) private
    cross join lateral (select not m.is_sender and m.sender_id is not distinct from ${number}::bigint as are) theirs
    left join lateral (${originOfMessage}) origin on private.is
    cross join lateral (
      select coalesce(json_agg(file || jsonb_build_object('stored', (
        select jsonb_build_object('id', f.id, 'size', f.size) from media_files f
        where f.account_id = m.account_id and f.chat_id = m.chat_id and f.message_id = m.id
          and f.index = (file ->> 'index')::int and f.ended_at is not null and f.failure is null))), '[]') as list
      from jsonb_array_elements(m.attachments) as file) files
    order by m.sent_at, m.id`
}

/** The private chat with each account, then the groups of these accounts. */
async function* eachPlace(
  db: Db,
  { workspace_id, platform, number }: PersonRow,
): AsyncGenerator<Place, void> {
  const accounts = await db.rows<{ id: string }>(sql`
    select id from accounts
    where workspace_id = ${workspace_id} -- guard: messages of own accounts
      and platform = ${platform} order by created_at, id`)
  for (const { id } of accounts) yield { account_id: id, chat_id: number }
  for (const { id: account_id } of accounts) {
    let after = '-9223372036854775808'
    for (let full = true; full; ) {
      const groups: Place[] = await db.rows<Place>(sql`
        select account_id, chat_id::text from chats
        where account_id = ${account_id} and chat_id > ${after}::bigint and chat_id < 0 order by chat_id limit ${chatsAtOnce}`)
      yield* groups
      after = groups.at(-1)?.chat_id ?? after
      full = groups.length === chatsAtOnce
    }
  }
}
