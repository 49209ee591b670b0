/**
 * How far back the stored messages go, and how older ones are fetched: the API writes a request, the account's session
 * fetches the page, and both read the same rows. From `oldest_id` on, a chat is stored without gaps.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '../../app.ts'
import type { AccountKey } from '../../contract.ts'
import { given } from '../../db/given.ts'
import { type Database, type Db, type Sql, sql, type Tx } from '../../db/sql.ts'
import { findFloodWait } from '../../ledger/floods.ts'
import { isLive, noteGapSince } from '../../ledger/liveness.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import type { ChatPage } from '../../platform/port.ts'
import { historyWanted } from './questions.ts'

export {
  type AnsweredChat,
  type AskedChat,
  askHistory,
  type HistoryQuestion,
  historyWanted,
  isAsked,
  listQuestions,
  noteAnswer,
  type ShownMessage,
} from './questions.ts'

export type FetchResult = 'fetched' | 'complete' | 'unavailable' | { readonly flood_seconds: number }

/** Asks the account's session for one more page and waits for it. `unavailable`: no live session, or no answer. */
export async function fetchOlder(
  app: App,
  account_id: string,
  chat_id: ChatNumber,
  waitMs: number,
): Promise<FetchResult> {
  if (await reachesBack(app.db, { account_id, chat_id })) return 'complete' // guard: history that is not kept is not fetched
  const flood = await findFloodWait(app.db, account_id, 'reading')
  if (flood !== undefined) return { flood_seconds: flood }
  const asked = await app.db.maybe<{ oldest_id: string | null }>(sql`
    insert into chat_sync as s (account_id, chat_id, workspace_id, wanted_at)
    select h.account_id, ${chat_id}::bigint, h.workspace_id, clock_timestamp() from account_hosts h
    where h.account_id = ${account_id}
      and ${isLive}
    on conflict (account_id, chat_id) do update set wanted_at = coalesce(s.wanted_at, excluded.wanted_at)
    returning oldest_id`)
  if (!asked) return 'unavailable'
  app.wake.signal(historyWanted)
  const deadline = performance.now() + waitMs
  for (let pauseMs = 5; performance.now() < deadline; pauseMs = Math.min(pauseMs * 1.5, 200)) {
    await sleep(pauseMs)
    const state = await app.db.maybe<{ wanted: boolean; complete: boolean; oldest_id: string | null }>(sql`
      select wanted_at is not null as wanted, complete, oldest_id from chat_sync
      where account_id = ${account_id} and chat_id = ${chat_id}`)
    if (!state || state.wanted) continue
    if (state.complete) return 'complete'
    if (state.oldest_id !== asked.oldest_id) return 'fetched'
    const seconds = await findFloodWait(app.db, account_id, 'reading')
    return seconds === undefined ? 'unavailable' : { flood_seconds: seconds }
  }
  return 'unavailable'
}

/** Whether the chat is stored as far back as its workspace keeps messages: what is older would be stored without content. */
async function reachesBack(
  db: Db,
  { account_id, chat_id }: { readonly account_id: string; readonly chat_id: ChatNumber },
): Promise<boolean> {
  const row = await db.maybe(sql`
    select from chat_sync s join messages m on m.account_id = s.account_id and m.chat_id = s.chat_id and m.id = s.oldest_id
    where s.account_id = ${account_id} and s.chat_id = ${chat_id} and m.sent_at < kept_since(s.workspace_id)`)
  return row !== undefined
}

export interface WantedHistory {
  readonly account_id: string
  readonly chat_id: ChatNumber
  readonly oldest_id: string | null
}

/** The pages of these accounts that requests wait for. */
export function listWanted(db: Db, account_ids: readonly string[]): Promise<WantedHistory[]> {
  return db.rows<WantedHistory>(sql`
    select account_id, chat_id, oldest_id from chat_sync
    where account_id = any(${account_ids}) and wanted_at is not null order by wanted_at limit 100`)
}

/** Whether a request still waits for it: the page may have been fetched since it was listed. */
export async function isWanted(db: Db, { account_id, chat_id }: WantedHistory): Promise<boolean> {
  const row = await db.maybe(sql`
    select from chat_sync where account_id = ${account_id} and chat_id = ${chat_id} and wanted_at is not null`)
  return row !== undefined
}

/** Records a stored page: the store now begins at its oldest message. */
export async function noteHistory(
  tx: Tx,
  account: AccountKey,
  { chat_id, oldest_id, complete }: { chat_id: ChatNumber; oldest_id: string | null; complete: boolean },
): Promise<void> {
  await tx.run(sql`
    insert into chat_sync as s (account_id, chat_id, workspace_id, oldest_id, complete)
    values (${account.account_id}, ${chat_id}, ${account.workspace_id}, ${oldest_id}, ${complete})
    on conflict (account_id, chat_id) do update
      set oldest_id = least(s.oldest_id, excluded.oldest_id), complete = s.complete or excluded.complete,
        wanted_at = null`)
}

/** The platform returned no more: waiting requests continue with what is stored. */
export async function giveUpWanted(db: Db, { account_id, chat_id }: WantedHistory): Promise<void> {
  await db.run(sql`
    update chat_sync set wanted_at = null where account_id = ${account_id} and chat_id = ${chat_id}`)
}

/** The first sync fetches the history of this many chats; a user who opens another chat has its history fetched then. */
const recentChats = 1_000

type Phase = 'chats' | 'contacts' | 'history' | 'done'

interface AccountSync {
  readonly phase: Phase
  readonly cursor: string | null
}

export async function readSync(db: Db, account: AccountKey): Promise<AccountSync> {
  return db.one<AccountSync>(sql`
    insert into account_sync as s (account_id, workspace_id) values (${account.account_id}, ${account.workspace_id})
    on conflict (account_id) do update set updated_at = s.updated_at returning phase, cursor`)
}

/** Records a stored page of the chat list. A chat whose last message was stored before a gap has missed nothing. */
export async function noteChats(
  tx: Tx,
  account: AccountKey,
  { chats, next, total }: ChatPage,
): Promise<void> {
  const { account_id, workspace_id } = account
  await tx.run(sql`
    insert into chat_sync as s (account_id, chat_id, workspace_id)
    select ${account_id}, chat_id, ${workspace_id} from unnest(${chats.map(({ chat }) => chat.id)}::bigint[]) as c (chat_id)
    on conflict do nothing`)
  await tx.run(sql`
    update chat_sync s set gap_after = null
    from ${given(chats, { chat_id: ['bigint', ({ chat }) => chat.id], last_id: ['bigint', ({ last }) => last?.id] })} as g
    where s.account_id = ${account_id} and s.chat_id = g.chat_id
      and s.gap_after >= g.last_id -- guard: a chat with news after a gap is fetched
    `)
  await tx.run(sql`
    update account_sync set cursor = ${next}, phase = case when ${next}::text is null then 'contacts' else phase end,
      chats_total = chats_total + ${chats.length}, chats_expected = ${total}, updated_at = domain_now()
    where account_id = ${account_id}`)
}

/** The chats are listed and the contacts stored: from here on, the history of the most recent chats is fetched. */
export async function noteHistoryPhase(db: Db, account: AccountKey): Promise<void> {
  await db.run(sql`
    update account_sync set phase = 'history', updated_at = domain_now(), history_total = (
      select count(*) from (${unsynced(account)}) c)
    where account_id = ${account.account_id}`)
}

/** Everything recent is stored, so the account has no gap any more. */
export async function noteSynced(db: Database, account: AccountKey): Promise<void> {
  await db.transaction(async (tx) => {
    const done = await tx.run(sql`
      update account_sync set phase = 'done', updated_at = domain_now()
      where account_id = ${account.account_id}
        and phase = 'history' and not exists (${unsynced(account)}) -- guard: a gap that came meanwhile is fetched too
      `)
    if (done > 0) await noteGapSince(tx, account, null)
  })
}

/** Chats of an account whose history is fetched at once: the most recent ones, and all that have missed updates. */
function unsynced({ account_id }: AccountKey): Sql {
  return sql`
    select s.chat_id, s.gap_after, null::timestamptz as last_at
    from chat_sync s where s.account_id = ${account_id} and s.gap_after is not null
    union all
    select s.chat_id, null, c.last_message_at from (
      select chat_id, last_message_at from chats where account_id = ${account_id}
      order by last_message_at desc, chat_id desc limit ${recentChats}) c
    join chat_sync s on s.account_id = ${account_id} and s.chat_id = c.chat_id
    where s.oldest_id is null and not s.complete and s.gap_after is null`
}

interface UnsyncedChat {
  readonly chat_id: ChatNumber
  /** Updates since this message are missing; null: the chat was never fetched. */
  readonly gap_after: string | null
}

/** The next chat whose recent history has not been fetched: one with a gap, or else the most recent. */
export function nextUnsynced(db: Db, account: AccountKey): Promise<UnsyncedChat | undefined> {
  return db.maybe<UnsyncedChat>(sql`
    select chat_id, gap_after from (${unsynced(account)}) c order by last_at desc nulls first, chat_id limit 1`)
}

export async function noteChatSynced(tx: Tx, account: AccountKey): Promise<void> {
  await tx.run(sql`
    update account_sync set chats_synced = chats_synced + 1, updated_at = domain_now()
    where account_id = ${account.account_id}`)
}

/**
 * Updates of these chats, or of all, are missing. Their history is fetched again, back to the newest message that is stored;
 * until then the account's campaigns wait, because a reply may be among what is missing.
 */
export async function noteGap(
  tx: Tx,
  account: AccountKey,
  gaps: readonly { readonly chat_id: ChatNumber | null }[],
): Promise<void> {
  if (gaps.length === 0) return
  const { account_id, workspace_id } = account
  const chat_ids = gaps.map(({ chat_id }) => chat_id).filter((id) => id !== null)
  const whole = chat_ids.length < gaps.length
  const among = whole ? sql`` : sql`and c.chat_id = any(${chat_ids}::bigint[])`
  await tx.run(sql`
    insert into chat_sync as s (account_id, chat_id, workspace_id, gap_after)
    select ${account_id}, c.chat_id, ${workspace_id}, coalesce(c.last_message_id, 0) from chats c
    where c.account_id = ${account_id} ${among} order by c.chat_id
    on conflict (account_id, chat_id) do update
      set gap_after = coalesce(s.gap_after, excluded.gap_after) -- guard: the first of two gaps counts
    `)
  const again = whole
    ? sql`phase = 'chats', cursor = null, chats_total = 0, chats_expected = null, chats_synced = 0, history_total = null`
    : sql`phase = case when phase = 'done' then 'history' else phase end,
        history_total = history_total + ${chat_ids.length}`
  await tx.run(sql`update account_sync set ${again} where account_id = ${account_id}`)
  await noteGapSince(tx, account, 'now')
}

/** Records what was fetched of a gap. If it is not closed, the chat is stored without gaps only from `oldest_id` on. */
export async function noteGapFetched(
  tx: Tx,
  { account_id }: AccountKey,
  { chat_id, oldest_id, closed }: { chat_id: ChatNumber; oldest_id: string | null; closed: boolean },
): Promise<void> {
  const begins = closed ? sql`` : sql`, oldest_id = ${oldest_id}, complete = false`
  await tx.run(sql`
    update chat_sync set gap_after = null ${begins} where account_id = ${account_id} and chat_id = ${chat_id}`)
}

/** Over all accounts: how many chats get their recent history, and how many have it. */
export function readSyncProgress(db: Db): Promise<{ total: number; synced: number }> {
  return db.one(sql`
    select coalesce(sum(coalesce(history_total, chats_total)), 0)::int as total, coalesce(sum(chats_synced), 0)::int as synced
    from account_sync`)
}

interface Completeness {
  readonly account_id: string
  readonly history_complete: boolean
  readonly oldest_at: Date | null
  readonly newest_at: Date | null
}

/**
 * Whether the store has everything that the platform ever had for these accounts, and the times of its oldest and newest
 * message. Usually it has not: `worker/sync.ts` fetches only recent history, and older pages are fetched on request.
 */
export function listCompleteness(db: Db, account_ids: readonly string[]): Promise<Completeness[]> {
  return db.rows<Completeness>(sql`
    select a.id as account_id, coalesce(s.phase = 'done', false)
        and not exists (select from chat_sync c where c.account_id = a.id and not c.complete) as history_complete,
      (select m.sent_at from messages m where m.account_id = a.id and m.deleted_at is null
        order by m.sent_at, m.id limit 1) as oldest_at,
      (select m.sent_at from messages m where m.account_id = a.id and m.deleted_at is null
        order by m.sent_at desc, m.id desc limit 1) as newest_at
    from unnest(${account_ids}::text[]) with ordinality as a (id, place)
    left join account_sync s on s.account_id = a.id order by a.place`)
}

/** What the platform showed of an erased person's private chats, and how far back these were fetched. */
export async function eraseHistory(
  tx: Tx,
  account_ids: readonly string[],
  number: ChatNumber,
): Promise<void> {
  await tx.run(
    sql`delete from history_questions where account_id = any(${account_ids}) and chat_id = ${number}`,
  )
  await tx.run(sql`delete from chat_sync where account_id = any(${account_ids}) and chat_id = ${number}`)
}
