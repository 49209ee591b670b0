/** Chats as the accounts see them. */
import type { Account, AccountKey } from '../../contract.ts'
import { given } from '../../db/given.ts'
import { type Db, type Sql, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { type ChatId, type ChatNumber, chatNumber, chatPrefix } from '../../lib/shapes.ts'
import { tokenise, toTsvector } from '../../lib/tokens.ts'
import type { Chat, Message, Person } from '../../platform/port.ts'
import { isGone } from '../people/people.ts'

export { memberName } from './assignees.ts'
export { type ChatFilters, chatsMatching, requireFilters, startOfChats } from './chat-pages.ts'
export { inboxRow } from './chat-shapes.ts'
export { columnWithValue, gatesOf } from './filter-shapes.ts'
export { countedMax, inboxColumns, inboxItem, type ShownFields, shownBy } from './inbox.ts'
export { columnNotFound, invalidStage } from './unknown-names.ts'

/**
 * Returns the account that has the chat, of those the caller may use. If the caller names no account, the chat decides; if
 * several accounts have it, the caller must name one.
 */
export async function requireChat(
  { db }: { readonly db: Db },
  accounts: readonly Account[],
  {
    chat_id,
    missing,
  }: { chat_id: ChatId; missing: 'chat_not_found' | 'chat_unavailable' | 'invalid_request' },
): Promise<Account> {
  const rows = await db.rows<{ account_id: string }>(sql`
    select account_id from chats
    where account_id = any(${accounts.map(({ id }) => id)}) and chat_id = ${chatNumber(chat_id)}
      and not ${isGone(sql`chats`)} -- guard: chats of erased people are not in the account
    `)
  const found = accounts.filter(({ id }) => rows.some(({ account_id }) => account_id === id))
  const [account, another] = found
  if (!account) {
    throw new ApiError(missing, { detail: `The chat ${chat_id} is not available in this account.` })
  }
  if (another) {
    const names = found.slice(0, 10).map(({ id }) => id)
    throw new ApiError('account_scope_required', {
      detail: `Several accounts have this chat. Set account_id to one of ${names.join(', ')}.`,
    })
  }
  return account
}

export interface ChatState {
  readonly chat: Chat
  /** The newest message that came with it. */
  readonly last: Message | null
}

/** Of a chat from a journal only its number and kind are known: what is stored stays. */
export async function noteChat(
  tx: Tx,
  { account_id, workspace_id }: AccountKey,
  { id, kind }: Chat,
): Promise<void> {
  await tx.run(sql`
    insert into chats (account_id, chat_id, workspace_id, kind) values (${account_id}, ${id}, ${workspace_id}, ${kind})
    on conflict do nothing`)
}

/** Inserts or updates chats. A chat's last message is its newest, whatever order they arrive in. Each chat at most once. */
export async function storeChats(tx: Tx, account: AccountKey, states: readonly ChatState[]): Promise<void> {
  const unchanged = Map.groupBy(states, ({ chat }) =>
    [chat.participants === null, chat.unread_count === null, isStale(chat)].join(' '),
  )
  await Promise.all([...unchanged.values()].map((alike) => storeAlike(tx, account, alike)))
}

/** Whether the platform has not shown the names of its people lately. */
const isStale = ({ participants }: Chat): boolean => participants?.some(({ stale }) => stale) ?? false

/** Stores chats that all have, or all lack, participants, their names, and an unread count. */
async function storeAlike(tx: Tx, account: AccountKey, states: readonly ChatState[]): Promise<void> {
  const first = states[0]?.chat
  if (!first) return
  const isUnlisted = first.participants === null || isStale(first) // guard: participants that are not listed stay
  const participants = isUnlisted ? sql`` : sql`participants = excluded.participants,`
  const names = isStale(first) ? staleNames : shownNames // guard: a username that is not shown stays
  // guard: an unread count that is not reported stays
  const unread = first.unread_count === null ? sql`` : sql`unread_count = excluded.unread_count,`
  await tx.run(sql`
    insert into chats as c (account_id, chat_id, workspace_id, kind, name, username, participants, unread_count,
      ${lastColumns}, name_tokens)
    select ${account.account_id}, chat_id, ${account.workspace_id}, kind, name, username, participants, unread_count,
      last_id, last_text, coalesce(last_at, '-infinity'), last_is_sender, last_id, tokens::tsvector
    from ${given(states, {
      chat_id: ['bigint', ({ chat }) => chat.id],
      kind: ['text', ({ chat }) => chat.kind],
      name: ['text', ({ chat }) => chat.name],
      username: ['text', ({ chat }) => chat.username],
      participants: ['jsonb', ({ chat }) => (chat.participants ?? []).map(toParticipant)],
      unread_count: ['int', ({ chat }) => chat.unread_count ?? 0],
      last_id: ['bigint', ({ last }) => last?.id],
      last_text: ['text', ({ last }) => last?.text],
      last_at: ['timestamptz', ({ last }) => last?.timestamp],
      last_is_sender: ['boolean', ({ last }) => last?.is_sender],
      tokens: ['text', ({ chat }) => nameTokens(chat)],
    })} as given
    on conflict (account_id, chat_id) do update set
      kind = excluded.kind, ${participants} ${unread} ${names},
      (${lastColumns}) = (
        select ${lastOf(sql`excluded`)}
        where (excluded.last_message_at, excluded.last_message_id) > (c.last_message_at, coalesce(c.last_message_id, 0))
        union all
        select ${lastOf(sql`c`)}
        limit 1)`)
}

const shownNames = sql`name = excluded.name, username = excluded.username, name_tokens = excluded.name_tokens`
/** What the chat is called is for show, and what an adapter has kept is as new as what is stored. */
const staleNames = sql`name = coalesce(nullif(excluded.name, ''), c.name),
  name_tokens = case when excluded.name in ('', c.name) then c.name_tokens else excluded.name_tokens end`

/** What a chat stores of its last message: all of it, or nothing, is written. */
const lastColumns = sql`last_message_id, last_message_text, last_message_at, last_is_sender, last_sender_of`

function lastOf(row: Sql): Sql {
  return sql`${row}.last_message_id, ${row}.last_message_text, ${row}.last_message_at, ${row}.last_is_sender,
    ${row}.last_sender_of`
}

/** Null if the chat has its contact's name, which is indexed already: this keeps most chats out of the index. */
function nameTokens({ id, name, participants }: Chat): string | null {
  const known = (participants ?? []).some(
    (one) => one.kind === 'person' && one.id === id && one.name === name && !one.stale,
  )
  return known ? null : toTsvector(tokenise(name)) || null
}

/** A phone number belongs to the contact, not to everyone who sees the chat. */
function toParticipant({ id, name, username, kind }: Person) {
  return { id, name, username, kind }
}

/** Joins the newest message of `given.chat_id`. */
/**
 * Only the index `messages_history` has this order. With `chat_id = …` PostgreSQL, while it knows little of a growing table,
 * would also take the one by time, and read the account's newer messages of all chats.
 */
function lastMessage({ account_id, workspace_id }: AccountKey) {
  return sql`left join lateral (
      (select id, text, sent_at, is_sender from messages
        where account_id = ${account_id} and chat_id between given.chat_id and given.chat_id and deleted_at is null
        order by chat_id, sent_at desc, id desc limit 1)
      union all
      -- A chat all of whose messages are older than the workspace keeps them keeps its place in the lists.
      (select id, null, sent_at, is_sender from (
          select * from messages where account_id = ${account_id} and chat_id = given.chat_id
          order by account_id desc, chat_id desc, id desc limit 1) newest
        where sent_at < kept_since(${workspace_id}::uuid) -- guard: cleared chats keep their place
        )
      limit 1) last on true`
}

/** After an edit or a deletion, the last message or its text may differ. An edit may be the first update about its chat. */
export async function refreshLastMessages(
  tx: Tx,
  account: AccountKey,
  chat_ids: readonly ChatNumber[],
): Promise<void> {
  if (chat_ids.length === 0) return
  await tx.run(sql`
    insert into chats (account_id, chat_id, workspace_id, kind, ${lastColumns})
    select ${account.account_id}, chat_id, ${account.workspace_id}, ${kindByNumber}, last.id, last.text,
      coalesce(last.sent_at, '-infinity'), last.is_sender, last.id
    from unnest(${chat_ids}::bigint[]) as given (chat_id) ${lastMessage(account)}
    on conflict (account_id, chat_id) do update set (${lastColumns}) = (select ${lastOf(sql`excluded`)})`)
}

interface ReadMark {
  readonly chat_id: ChatNumber
  readonly up_to_message_id: string
  readonly at: string
}

/**
 * How far the other side has read our messages. Marks only move forward, and may arrive before the first message of their
 * chat.
 */
export async function storeReadMarks(tx: Tx, account: AccountKey, marks: readonly ReadMark[]): Promise<void> {
  if (marks.length === 0) return
  await tx.run(sql`
    insert into chats as c (account_id, chat_id, workspace_id, kind, read_by_them_id, read_by_them_at)
    select distinct on (chat_id) ${account.account_id}, chat_id, ${account.workspace_id}::uuid, ${kindByNumber}, id, at
    from ${given(marks, {
      chat_id: 'bigint',
      id: ['bigint', ({ up_to_message_id }) => up_to_message_id],
      at: 'timestamptz',
    })} as mark
    order by chat_id, id desc, at
    on conflict (account_id, chat_id) do update
      set read_by_them_id = excluded.read_by_them_id, read_by_them_at = excluded.read_by_them_at
      where c.read_by_them_id is null or c.read_by_them_id < excluded.read_by_them_id`)
}

/** A guess for chats of which only the number is known; the first message corrects it. */
const kindByNumber = sql`case when chat_id > 0 then 'private' else 'group' end`

type UnreadCounts = ReadonlyMap<ChatNumber, number>

const rowsOf = (counts: UnreadCounts) =>
  sql`unnest(${[...counts.keys()]}::bigint[], ${[...counts.values()]}::int[]) as g (chat_id, count)`

export async function storeUnreadCounts(tx: Tx, account: AccountKey, counts: UnreadCounts): Promise<void> {
  if (counts.size === 0) return
  await tx.run(sql`
    insert into chats (account_id, chat_id, workspace_id, kind, unread_count)
    select ${account.account_id}, chat_id, ${account.workspace_id}, ${kindByNumber}, count from ${rowsOf(counts)}
    on conflict (account_id, chat_id) do update set unread_count = excluded.unread_count`)
}

/** New incoming messages of chats whose platform reports no count with them. */
export async function addUnread(tx: Tx, account: AccountKey, counts: UnreadCounts): Promise<void> {
  if (counts.size === 0) return
  await tx.run(sql`
    update chats c set unread_count = c.unread_count + g.count from ${rowsOf(counts)}
    where c.account_id = ${account.account_id} and c.chat_id = g.chat_id`)
}

/**
 * Messages that were deleted just now and were unread. The unread messages of a chat are its newest incoming ones. Telegram reports no
 * count with a deletion: its apps correct their own (TDLib, `do_delete_message`).
 */
export async function discountUnread(
  tx: Tx,
  { account_id }: AccountKey,
  deleted: readonly { readonly chat_id: ChatNumber; readonly message_ids: readonly string[] }[],
): Promise<void> {
  const pairs = deleted.flatMap(({ chat_id, message_ids }) => message_ids.map((id) => ({ chat_id, id })))
  if (pairs.length === 0) return
  await tx.run(sql`
    with gone as (select chat_id, id from ${given(pairs, { chat_id: 'bigint', id: 'bigint' })} as pair),
    lost as (
      select g.chat_id, count(*)::int as count
      from gone g
      join chats c on c.account_id = ${account_id} and c.chat_id = g.chat_id
      join messages m on m.account_id = ${account_id} and m.chat_id = g.chat_id and m.id = g.id and not m.is_sender
      where c.unread_count > (
        select count(*) from (
          select from messages n
          where n.account_id = ${account_id} and n.chat_id = g.chat_id and n.id > g.id and not n.is_sender
            and (n.deleted_at is null or exists (select from gone o where o.chat_id = n.chat_id and o.id = n.id))
          limit c.unread_count) newer)
      group by g.chat_id)
    update chats c set unread_count = c.unread_count - l.count from lost l
    where c.account_id = ${account_id} and c.chat_id = l.chat_id`)
}

/**
 * The unread messages of chats that were read up to a message. A difference brings messages before the reads among them, so the
 * platform's own count says nothing of the messages after it; Telegram's own apps count what they have, too (TDLib,
 * `calc_new_unread_count`; Telegram Desktop, `countStillUnreadLocal`). Where the store does not reach back to that message, the
 * platform's count stays.
 */
export async function recountUnread(
  tx: Tx,
  { account_id }: AccountKey,
  readUpTo: ReadonlyMap<ChatNumber, string>,
): Promise<void> {
  if (readUpTo.size === 0) return
  await tx.run(sql`
    update chats c set unread_count = (
      select count(*) from messages m
      where m.account_id = ${account_id} and m.chat_id = g.chat_id and m.id > g.read and not m.is_sender and m.deleted_at is null)
    from unnest(${[...readUpTo.keys()]}::bigint[], ${[...readUpTo.values()]}::bigint[]) as g (chat_id, read)
    where c.account_id = ${account_id} and c.chat_id = g.chat_id
      and exists (select from messages m where m.account_id = ${account_id} and m.chat_id = g.chat_id and m.id <= g.read)`)
}

export interface Placement {
  readonly account_id: string
  readonly chat_id: ChatId
  readonly stage_key: string
}

/** Moves a chat to a stage and returns its previous one. Of two concurrent calls, the second sees the first's stage. */
export async function placeChat(
  tx: Tx,
  { account_id, chat_id, stage_key }: Placement,
): Promise<string | undefined> {
  const before = await tx.maybe<{ stage_key: string }>(sql`
    with before as (
      select stage_key, placed_at from chats
      where account_id = ${account_id} and chat_id = ${chatNumber(chat_id)} for update),
    placed as (
      update chats c set stage_key = ${stage_key}, placed_at = coalesce(before.placed_at, domain_now())
      from before
      where c.account_id = ${account_id} and c.chat_id = ${chatNumber(chat_id)}
        and (before.stage_key <> ${stage_key} or before.placed_at is null))
    select stage_key from before`)
  return before?.stage_key
}

/** A chat that has left a stage, and its position in the index by stage. */
export interface MovedChat {
  readonly chat_id: ChatId
  readonly at: string
}

/**
 * Moves up to `limit` chats of an account from one stage to another, starting `after` the last chat of the previous call.
 * Returns them; fewer than `limit` means that there are no more.
 */
export function emptyStage(
  tx: Tx,
  account_id: string,
  { from, to, after, limit }: { from: string; to: string; after: MovedChat | undefined; limit: number },
): Promise<MovedChat[]> {
  // Dead index entries of moved chats stay until a vacuum; without `after` each call would scan them again.
  const beyond = after
    ? sql`and (last_message_at, chat_id) < (${after.at}::timestamptz, ${chatNumber(after.chat_id)}::bigint)`
    : sql``
  return tx.rows<MovedChat>(sql`
    with chosen as (
      select chat_id, last_message_at from chats
      where account_id = ${account_id} and stage_key = ${from} ${beyond}
      order by last_message_at desc, chat_id desc limit ${limit} for update),
    moved as (
      update chats c set stage_key = ${to} from chosen
      where c.account_id = ${account_id} and c.chat_id = chosen.chat_id)
    select ${chatPrefix} || chat_id as chat_id, last_message_at::text as at from chosen
    order by last_message_at desc, chosen.chat_id desc`)
}

export interface LastMessage extends AccountKey {
  readonly chat_id: ChatNumber
  readonly id: string
  readonly text: string
  readonly sent_at: string
}

/** Stores our own messages, of many accounts, as the last of their chats unless a newer one is stored or they are deleted. */
export async function noteLastMessages(tx: Tx, rows: readonly LastMessage[]): Promise<void> {
  if (rows.length === 0) return
  await tx.run(sql`
    insert into chats as c (account_id, workspace_id, chat_id, kind, ${lastColumns})
    select distinct on (account_id, chat_id) account_id, workspace_id, chat_id, ${kindByNumber}, id, text, sent_at, true, id
    from ${given(rows, {
      account_id: 'text',
      workspace_id: 'uuid',
      chat_id: 'bigint',
      id: 'bigint',
      text: 'text',
      sent_at: 'timestamptz',
    })} as given
    where (
      select m.deleted_at from messages m
      where m.account_id = given.account_id and m.chat_id = given.chat_id and m.id = given.id
      ) is null -- guard: a deleted message is not the last
    order by account_id, chat_id, sent_at desc, id desc
    on conflict (account_id, chat_id) do update set (${lastColumns}) = (select ${lastOf(sql`excluded`)})
      where (excluded.last_message_at, excluded.last_message_id) > (c.last_message_at, coalesce(c.last_message_id, 0))`)
}

/** Clears the shown text of chats whose last message is one of these. The chats keep their place in the lists. */
export async function clearLastTexts(
  tx: Tx,
  messages: readonly Pick<LastMessage, 'account_id' | 'chat_id' | 'id'>[],
): Promise<void> {
  await tx.run(sql`
    with locked as materialized (
      select c.account_id, c.chat_id
      from (select * from ${given(messages, { account_id: 'text', chat_id: 'bigint', id: 'bigint' })} as g
        order by account_id, chat_id, id) g
      cross join lateral (
        select c.account_id, c.chat_id from chats c
        where c.account_id = g.account_id and c.chat_id = g.chat_id and c.last_message_id = g.id for update) c)
    update chats c set last_message_text = null from locked l
    where c.account_id = l.account_id and c.chat_id = l.chat_id`)
}

/** Deletes the private chats of an erased person in these accounts, with their notes and the values of columns. */
export async function eraseChats(tx: Tx, account_ids: readonly string[], number: ChatNumber): Promise<void> {
  await tx.run(sql`
    delete from chats where account_id = any(${account_ids}) and chat_id = ${number}`)
}

/** Where an erased person is a member of a group, their name goes. They are shown as a deleted account. */
export async function eraseMember(
  tx: Tx,
  { account_id, number }: { readonly account_id: string; readonly number: ChatNumber },
): Promise<void> {
  const named = JSON.stringify([{ id: number }])
  await tx.run(sql`
    with locked as materialized (
      select account_id, chat_id from chats
      where account_id = ${account_id} and chat_id < 0 and participants @> ${named}::jsonb order by chat_id for update)
    update chats c set participants = (
      select jsonb_agg(case when p ->> 'id' = ${number} then
        jsonb_build_object('id', p -> 'id', 'name', '', 'username', null, 'kind', 'deleted') else p end order by place)
      from jsonb_array_elements(c.participants) with ordinality as each_one (p, place))
    from locked l where c.account_id = l.account_id and c.chat_id = l.chat_id`)
}
