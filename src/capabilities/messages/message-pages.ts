/** Pages of one chat's messages. Reading never marks anything read. */
import type { App } from '../../app.ts'
import type { Account } from '../../contract.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { joinText, type Row } from '../../lib/page.ts'
import { type ChatId, type ChatNumber, chatNumber, parseBound, readTime } from '../../lib/shapes.ts'
import { requireChat } from '../chats/chats.ts'
import { type FetchResult, fetchOlder } from '../history/history.ts'

interface MessageQuery {
  readonly before?: string | undefined
  readonly limit: number
}

/** Strictly before this message in the order of (time, id). */
interface Point {
  readonly at: string
  readonly id: string
}

/** The message as JSON, its time and id, and what the store knew about the chat's past at the same moment. */
type StoredTuple = readonly [item: string | null, at: string, id: string, complete: boolean, begun: boolean]

const end: Point = { at: 'infinity', id: '0' }
const idDigits = 19
const lowestId = '-9223372036854775808'
const highestId = 2n ** 63n - 1n
/** One request waits no longer than this for the platform, however far back it reaches. */
const fetchMsMax = 10_000

/** The page as JSON text, oldest first. Messages that the store lacks are fetched from the platform. */
export async function listMessages(
  app: App,
  accounts: readonly Account[],
  { chat_id, query }: { chat_id: ChatId; query: MessageQuery },
): Promise<string> {
  const require = () => requireChat(app, accounts, { chat_id, missing: 'chat_not_found' })
  const [first, another] = accounts
  const named = another ? undefined : first
  const account = named ?? (await require())
  const before = (query.before === undefined ? undefined : readBefore(query.before)) ?? end
  const place = { account_id: account.id, chat_id: chatNumber(chat_id), before, limit: query.limit }
  const known = await readPage(app, place)
  // Stored messages imply a stored chat: only without any does it pay to check whether the chat exists.
  if (known.rows.length === 0 && named) await require()
  const { source, page } = await reachBack(app, place, known)
  return pageText(page, { source, limit: query.limit, asked: query.before ?? null })
}

interface PagePlace {
  readonly account_id: string
  readonly chat_id: ChatNumber
  readonly before: Point
  readonly limit: number
}

interface PageRead {
  /** Newest first, with one more than the page holds if there is one. */
  readonly rows: readonly Row[]
  /** The store has the chat from its beginning. */
  readonly complete: boolean
  /** The store has at least the newest part of the chat without a gap. */
  readonly begun: boolean
}

/** One statement reads rows and sync state, because history that is stored meanwhile changes both. */
async function readPage(app: App, place: PagePlace, live = false): Promise<PageRead> {
  const { account_id, chat_id, before, limit } = place
  const stored = await app.db.lists<StoredTuple>(
    messagePage(account_id, chat_id, { before, limit: limit + 1, live }),
  )
  const rows = stored.flatMap(([item, at, id]): Row[] => (item === null ? [] : [[item, at, id]]))
  const [, , , complete = false, begun = false] = stored[0] ?? []
  return { rows, complete, begun }
}

/** Fetches older messages from the platform until the page is full, the chat begins, or the platform returns no more. */
async function reachBack(
  app: App,
  place: PagePlace,
  known: PageRead,
): Promise<{ source: string; page: PageRead }> {
  const { account_id, chat_id, limit } = place
  const deadline = performance.now() + fetchMsMax
  let source = 'store'
  let page = known
  while (!page.complete && page.rows.length <= limit) {
    const left = deadline - performance.now()
    const fetched = left > 0 ? await fetchOlder(app, account_id, chat_id, left) : 'late'
    if (fetched !== 'fetched' && fetched !== 'complete') {
      // If the chat's past was never fetched, live messages are all there is.
      if (!page.begun) page = await readPage(app, place, true)
      // Returns a page that has stored messages, however short; an empty one needs the platform.
      if (page.rows.length === 0 && fetched !== 'late') throw refusalOf(fetched)
      break
    }
    source = 'platform'
    page = await readPage(app, place)
  }
  return { source, page }
}

function refusalOf(fetched: Exclude<FetchResult, 'fetched' | 'complete'>): ApiError {
  if (fetched === 'unavailable') return new ApiError('session_unavailable')
  return new ApiError('flood_wait', { status: 503, retry_after: fetched.flood_seconds })
}

function pageText(
  read: PageRead,
  { source, limit, asked }: { source: string; limit: number; asked: string | null },
): string {
  const { rows, next } = cutPage(read, limit, asked)
  return joinText(
    '{"messages":[',
    rows.toReversed(),
    `],"source":"${source}","next_before":${JSON.stringify(next)},"has_more":${next !== null}}`,
  )
}

/**
 * A page ends between two milliseconds, so that `next_before` is a plain time and survives a client that parses and prints
 * it. Only a millisecond with more messages than a page holds is split; then the digits below it hold the position.
 */
function cutPage(
  { rows, complete }: PageRead,
  limit: number,
  asked: string | null,
): { rows: readonly Row[]; next: string | null } {
  if (complete && rows.length <= limit) return { rows, next: null }
  const page = rows.slice(0, limit)
  const oldest = page.at(-1)
  // An empty page that is not the end returns the same cursor: older messages are still being fetched.
  if (!oldest) return { rows: page, next: asked }
  const [, at] = oldest
  // Without a further row, more messages of the same millisecond may still have to be fetched.
  if (rows[limit] && rows[limit][1] !== at) return { rows: page, next: at ?? null }
  const whole = page.filter((row) => row[1] !== at)
  const last = whole.at(-1)
  return last ? { rows: whole, next: last[1] ?? null } : { rows: page, next: makeBefore(oldest) }
}

/**
 * Reads in index order only, so a page costs the same wherever it is. The store has no gaps from `oldest_id` on; before any
 * history was fetched (`live`), it has none from the first live message on. Older rows, such as an old message that was
 * edited, stay hidden until history reaches them: showing one would skip the messages in between.
 */
export function messagePage(
  account_id: string,
  chat_id: ChatNumber,
  { before = end, limit, live = false }: { before?: Point; limit: number; live?: boolean },
): Sql {
  return sql`
    select page.item, page.at, page.id, coalesce(s.complete, false), s.oldest_id is not null
    from (select ${account_id}::text as account_id, ${chat_id}::bigint as chat_id) asked
    left join chat_sync s on s.account_id = asked.account_id and s.chat_id = asked.chat_id
    left join lateral (
      select row_to_json(item)::text as item, item.timestamp as at, m.id
      from messages m cross join lateral (
        select m.id::text, m.text, m.is_sender, wire_time(m.sent_at) as timestamp, wire_time(m.edited_at) as edited_at,
          m.attachments) item
      where m.account_id = asked.account_id and m.chat_id = asked.chat_id and m.deleted_at is null
        and (m.sent_at, m.id) < (${before.at}::timestamptz, ${before.id}::bigint)
        and m.id >= case when s.complete then ${lowestId}::bigint
          else coalesce(s.oldest_id, ${live ? firstLive : sql`null`}, ${String(highestId)}::bigint) end
      order by m.sent_at desc, m.id desc limit ${limit}) page on true`
}

/** Received live or sent by us. An edit of a message that was never stored is neither. */
const firstLive = sql`(
  select min(l.id) from messages l where l.account_id = asked.account_id and l.chat_id = asked.chat_id
    and (l.announced or (l.is_sender and l.random_id is not null and l.edited_at is null)))`

/** A timestamp whose digits below the millisecond are the message's id, so that it is a time and an exact cursor. */
function makeBefore([, at = '', id = '']: Row): string {
  return `${at.slice(0, -1)}${id.padStart(idDigits, '0')}Z`
}

/** Accepts what `makeBefore` returns, with its offset in any spelling, or any time. */
export function readBefore(value: string): Point | undefined {
  const written = readTime(value)
  if (!written) return undefined
  const { at, finer } = written
  if (finer.length === idDigits) {
    return BigInt(finer) <= highestId ? { at: at.toISOString(), id: BigInt(finer).toString() } : undefined
  }
  return { at: (parseBound(value) ?? at).toISOString(), id: lowestId }
}
