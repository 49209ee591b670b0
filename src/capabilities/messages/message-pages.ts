/** Pages of one chat's messages. Reading never marks anything read. */
import type { App } from '../../app.ts'
import type { Account } from '../../contract.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { joinText, type Row } from '../../lib/page.ts'
import { type ChatId, type ChatNumber, chatNumber, parseTime } from '../../lib/shapes.ts'
import { requireChat } from '../chats/chats.ts'
import { type Fetched, fetchOlder, isHistoryComplete } from '../history/history.ts'

interface MessageQuery {
  readonly before?: string | undefined
  readonly limit: number
}

/** Strictly before this message in the order of (time, id). */
interface Point {
  readonly at: string
  readonly id: string
}

const end: Point = { at: 'infinity', id: '0' }
const idDigits = 19
const lowestId = '-9223372036854775808'
const highestId = 2n ** 63n - 1n
/** One request waits no longer than this for the platform, however far back it reaches. */
const fetchMsMax = 10_000

/** The page as JSON text, oldest first. What the store lacks is asked of the platform. */
export async function listMessages(
  app: App,
  accounts: readonly Account[],
  { chat_id, query }: { chat_id: ChatId; query: MessageQuery },
): Promise<string> {
  const require = () => requireChat(app, accounts, { chat_id, missing: 'chat_not_found' })
  const [first, another] = accounts
  const named = another ? undefined : first
  const account = named ?? (await require())
  const chat = chatNumber(chat_id)
  const { limit } = query
  const before = (query.before === undefined ? undefined : readBefore(query.before)) ?? end
  const page = messagePage(account.id, chat, { before, limit: limit + 1 })
  const deadline = performance.now() + fetchMsMax
  let source = 'store'
  let rows = await app.db.lists<Row>(page)
  // Messages come with their chat: only where there are none is it worth asking whether the chat is there.
  if (rows.length === 0 && named) await require()
  let complete = rows.length > limit || (await isHistoryComplete(app.db, account.id, chat))
  while (!complete && rows.length <= limit) {
    const left = deadline - performance.now()
    const fetched = left > 0 ? await fetchOlder(app, account.id, chat, left) : 'late'
    if (fetched !== 'fetched' && fetched !== 'complete') {
      // A page that begins with stored messages is answered, however short; an empty one needs the platform.
      if (rows.length === 0 && fetched !== 'late') throw refusalOf(fetched)
      break
    }
    source = 'platform'
    complete = fetched === 'complete'
    rows = await app.db.lists<Row>(page)
  }
  return pageText(rows, {
    source,
    limit,
    more: rows.length > limit || !complete,
    asked: query.before ?? null,
  })
}

function refusalOf(fetched: Exclude<Fetched, 'fetched' | 'complete'>): ApiError {
  if (fetched === 'unavailable') return new ApiError('session_unavailable')
  return new ApiError('flood_wait', { status: 503, retry_after: fetched.flood_seconds })
}

/** An empty page that is not the end has a cursor to itself: older messages are still being fetched. */
function pageText(
  rows: readonly Row[],
  { source, limit, more, asked }: { source: string; limit: number; more: boolean; asked: string | null },
): string {
  const page = rows.slice(0, limit)
  const oldest = page.at(-1)
  const next = more ? (oldest ? makeBefore(oldest) : asked) : null
  return joinText(
    '{"messages":[',
    page.reverse(),
    `],"source":"${source}","next_before":${JSON.stringify(next)},"has_more":${next !== null}}`,
  )
}

/** Index order from first to last: a page costs the same wherever it lies. */
export function messagePage(
  account_id: string,
  chat_id: ChatNumber,
  { before = end, limit }: { before?: Point; limit: number },
): Sql {
  return sql`
    select row_to_json(item)::text as item, item.timestamp as at, m.id
    from messages m cross join lateral (
      select m.id::text, m.text, m.is_sender, wire_time(m.sent_at) as timestamp, wire_time(m.edited_at) as edited_at,
        m.attachments) item
    where m.account_id = ${account_id} and m.chat_id = ${chat_id} and m.deleted_at is null
      and (m.sent_at, m.id) < (${before.at}::timestamptz, ${before.id}::bigint)
    order by m.sent_at desc, m.id desc limit ${limit}`
}

/** A timestamp whose digits below the millisecond are the message's id, so that it is a time and an exact cursor. */
function makeBefore([, at = '', id = '']: Row): string {
  return `${at.slice(0, -1)}${id.padStart(idDigits, '0')}Z`
}

const withId = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})(\d{19})Z$/

/** Takes what `makeBefore` made, or any time. */
export function readBefore(value: string): Point | undefined {
  const [, at, id] = withId.exec(value) ?? []
  if (at && id)
    return parseTime(`${at}Z`) && BigInt(id) <= highestId
      ? { at: `${at}Z`, id: BigInt(id).toString() }
      : undefined
  const time = parseTime(value)
  if (!time) return undefined
  // Messages have milliseconds; a time between two of them is after the first.
  const finer = /\.\d{3}\d*[1-9]/.test(value) ? 1 : 0
  return { at: new Date(time.getTime() + finer).toISOString(), id: lowestId }
}
