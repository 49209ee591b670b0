/**
 * How far back the stored messages go, and how older ones are fetched: the API writes a request, the account's session
 * fetches the page, and both read the same rows. From `oldest_id` on, a chat is stored without gaps.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '../../app.ts'
import type { AccountKey } from '../../contract.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { findFloodWait } from '../../ledger/floods.ts'
import { isLive } from '../../ledger/liveness.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
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
  const flood = await findFloodWait(app.db, account_id)
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
    const seconds = await findFloodWait(app.db, account_id)
    return seconds === undefined ? 'unavailable' : { flood_seconds: seconds }
  }
  return 'unavailable'
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

/** Records a stored page of the chat list. */
export async function noteChats(
  tx: Tx,
  account: AccountKey,
  { chat_ids, next }: { chat_ids: readonly string[]; next: string | null },
): Promise<void> {
  await tx.run(sql`
    insert into chat_sync (account_id, chat_id, workspace_id)
    select ${account.account_id}, chat_id, ${account.workspace_id} from unnest(${chat_ids}::bigint[]) as c (chat_id)
    on conflict do nothing`)
  await tx.run(sql`
    update account_sync set cursor = ${next}, phase = case when ${next}::text is null then 'contacts' else phase end,
      chats_total = chats_total + ${chat_ids.length}, updated_at = domain_now()
    where account_id = ${account.account_id}`)
}

export async function notePhase(db: Db, account: AccountKey, phase: Phase): Promise<void> {
  await db.run(sql`
    update account_sync set phase = ${phase}, updated_at = domain_now() where account_id = ${account.account_id}`)
}

/** The next chat whose recent history has not been fetched. */
export async function nextUnsynced(db: Db, account: AccountKey): Promise<ChatNumber | undefined> {
  const row = await db.maybe<{ chat_id: ChatNumber }>(sql`
    select chat_id from chat_sync where account_id = ${account.account_id} and oldest_id is null and not complete
    order by chat_id limit 1`)
  return row?.chat_id
}

export async function noteChatSynced(tx: Tx, account: AccountKey): Promise<void> {
  await tx.run(sql`
    update account_sync set chats_synced = chats_synced + 1, updated_at = domain_now()
    where account_id = ${account.account_id}`)
}

/** Over all accounts: how many chats were listed, and how many have their recent history. */
export function readSyncProgress(db: Db): Promise<{ total: number; synced: number }> {
  return db.one(sql`
    select coalesce(sum(chats_total), 0)::int as total, coalesce(sum(chats_synced), 0)::int as synced
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
