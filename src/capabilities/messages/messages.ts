/** Messages as they are stored: each one row, however often and in whatever order it is seen. */
import { sql, type Tx } from '../../db/sql.ts'
import type { Attachment, Message } from '../../platform/port.ts'

export interface Owner {
  readonly account_id: string
  readonly workspace_id: string
}

export interface Seen {
  readonly chat_id: string
  readonly message: Message
  /** A live message of the other side: it is announced once. */
  readonly announce: boolean
}

/** The message as the API and the events show it. */
export interface WireMessage {
  readonly id: string
  readonly text: string
  readonly is_sender: boolean
  readonly timestamp: string
  readonly edited_at: string | null
  readonly attachments: readonly Attachment[]
}

export function toWire(message: Message): WireMessage {
  const { id, text, is_sender, timestamp, edited_at, attachments } = message
  return { id, text, is_sender, timestamp, edited_at, attachments }
}

/** Returns those that are announced now, for the first time. Each (chat, message) at most once in `seen`. */
export async function storeMessages(tx: Tx, owner: Owner, seen: readonly Seen[]): Promise<Seen[]> {
  if (seen.length === 0) return []
  const rows = await tx.rows<{ place: number }>(sql`
    with given as (
      select * from ${unnestSeen(seen)}
      where not exists (
        select from deleted_messages d where d.account_id = ${owner.account_id} and d.id = given.id)),
    stored as (
      insert into messages as m (account_id, chat_id, id, workspace_id, text, is_sender, sender_id, sent_at,
        edited_at, attachments, random_id, announced)
      select ${owner.account_id}, chat_id, id, ${owner.workspace_id}, text, is_sender, sender_id, sent_at,
        edited_at, attachments, random_id, announce
      from given
      on conflict (account_id, chat_id, id) do update
        set announced = m.announced or excluded.announced, random_id = coalesce(m.random_id, excluded.random_id)
        where (excluded.announced and not m.announced) or (m.random_id is null and excluded.random_id is not null)
      returning m.chat_id, m.id)
    select g.place::int from given g join stored s on s.chat_id = g.chat_id and s.id = g.id
    where g.announce order by g.place`)
  return rows.flatMap(({ place }) => seen[place - 1] ?? [])
}

/** Newer edits win; returns those that changed something. An edit of a message we never saw brings it along. */
export async function storeEdits(tx: Tx, owner: Owner, seen: readonly Seen[]): Promise<Seen[]> {
  if (seen.length === 0) return []
  const rows = await tx.rows<{ place: number }>(sql`
    with given as (
      select * from ${unnestSeen(seen)}
      where not exists (
        select from deleted_messages d where d.account_id = ${owner.account_id} and d.id = given.id)),
    stored as (
      insert into messages as m (account_id, chat_id, id, workspace_id, text, is_sender, sender_id, sent_at,
        edited_at, attachments, random_id)
      select ${owner.account_id}, chat_id, id, ${owner.workspace_id}, text, is_sender, sender_id, sent_at,
        edited_at, attachments, random_id
      from given
      on conflict (account_id, chat_id, id) do update
        set text = excluded.text, edited_at = excluded.edited_at, attachments = excluded.attachments
        where m.deleted_at is null and (m.edited_at is null or m.edited_at < excluded.edited_at
          or (m.edited_at = excluded.edited_at and m.text <> excluded.text))
      returning m.chat_id, m.id)
    select g.place::int from given g join stored s on s.chat_id = g.chat_id and s.id = g.id order by g.place`)
  return rows.flatMap(({ place }) => seen[place - 1] ?? [])
}

function unnestSeen(seen: readonly Seen[]) {
  const messages = seen.map(({ message }) => message)
  return sql`unnest(${seen.map(({ chat_id }) => chat_id)}::bigint[], ${messages.map(({ id }) => id)}::bigint[],
      ${messages.map(({ text }) => text)}::text[], ${messages.map(({ is_sender }) => is_sender)}::boolean[],
      ${messages.map(({ sender_id }) => sender_id)}::bigint[],
      ${messages.map(({ timestamp }) => timestamp)}::timestamptz[],
      ${messages.map(({ edited_at }) => edited_at)}::timestamptz[],
      ${messages.map(({ attachments }) => JSON.stringify(attachments))}::jsonb[],
      ${messages.map(({ random_id }) => random_id)}::bigint[],
      ${seen.map(({ announce }) => announce)}::boolean[])
      with ordinality as given (chat_id, id, text, is_sender, sender_id, sent_at, edited_at, attachments,
        random_id, announce, place)`
}

export interface Deletion {
  /** Null where the platform names the messages only. */
  readonly chat_id: string | null
  readonly message_ids: readonly string[]
}

/**
 * The row stays, its content goes. Returns what was deleted now, by chat. A message that has not arrived yet
 * is remembered as deleted.
 */
export async function deleteMessages(
  tx: Tx,
  owner: Owner,
  deletions: readonly Deletion[],
): Promise<{ chat_id: string; message_ids: string[] }[]> {
  if (deletions.length === 0) return []
  const pairs = deletions.flatMap(({ chat_id, message_ids }) => message_ids.map((id) => ({ chat_id, id })))
  return tx.rows(sql`
    with named as (
      select distinct chat_id, id from unnest(${pairs.map(({ chat_id }) => chat_id)}::bigint[],
        ${pairs.map(({ id }) => id)}::bigint[]) as pair (chat_id, id)),
    known as (
      select m.chat_id, m.id, m.deleted_at from named n join messages m
      on m.account_id = ${owner.account_id} and m.id = n.id and (n.chat_id is null or m.chat_id = n.chat_id)),
    gone as (
      update messages m set deleted_at = domain_now(), text = '', attachments = '[]'
      from known k
      where m.account_id = ${owner.account_id} and m.chat_id = k.chat_id and m.id = k.id and k.deleted_at is null
      returning m.chat_id, m.id),
    remembered as (
      insert into deleted_messages (account_id, id, workspace_id)
      select ${owner.account_id}, id, ${owner.workspace_id} from named
      where id not in (select id from known) on conflict do nothing)
    select chat_id, array_agg(id::text order by id) as message_ids from gone group by chat_id order by chat_id`)
}
