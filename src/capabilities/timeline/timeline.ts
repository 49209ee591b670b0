/** What a team sees of one chat, in one order: messages, operations that have no message, and notes. */
import { hasRole } from '../../access/needs.ts'
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { sql } from '../../db/sql.ts'
import { messageKinds } from '../../ledger/unsent.ts'
import { makeCursor, readCursor } from '../../lib/cursor.ts'
import { notFound } from '../../lib/names.ts'
import { type ChatId, type ChatNumber, chatIdOf, chatNumber } from '../../lib/shapes.ts'
import { fetchOlder } from '../history/history.ts'
import type { OperationOutcome } from '../operations/operations.ts'
import {
  endOfTimeline,
  ranks,
  type TimelinePlace,
  type TimelinePoint,
  type TimelineReader,
  timelinePage,
} from './timeline-page.ts'

export {
  joinOrigin,
  originBy,
  originCampaign,
  originOf,
  originOfMessage,
  sentElsewhere,
} from './origin.ts'

interface TimelineQuery {
  /** One of the caller's workspace. */
  readonly account_id: string
  readonly chat_id: ChatId
  readonly before?: string | undefined
  readonly after?: string | undefined
  readonly around?: string | undefined
  readonly limit: number
}

interface TimelineRow {
  /** The store has the chat from its beginning. */
  readonly complete: boolean
  readonly item: TimelineItem | null
  readonly at: string
  readonly rank: number
  readonly id: string
}

type TimelineItem =
  | { readonly type: 'message' | 'note'; readonly id: string }
  | (OperationOutcome & { readonly type: 'operation'; readonly refusal: string | null })

/** One request waits no longer than this for the platform. */
const fetchMsMax = 10_000

/** Everything that the parts of a timeline share. */
interface TimelineRead {
  readonly app: App
  readonly chat: { readonly account_id: string; readonly chat_id: ChatNumber }
  readonly reader: TimelineReader
  readonly cursorOf: (point: TimelinePoint, reader: TimelineReader) => string
}

export async function readTimeline(app: App, caller: Caller, query: TimelineQuery) {
  const { account_id, before, after, around, limit } = query
  const chat = { account_id, chat_id: chatNumber(query.chat_id) }
  const scope = { workspace_id: caller.workspace_id, operation: 'get_timeline', filters: chat }
  const cursor = before ?? after
  const place = cursor === undefined ? undefined : readCursor(app.secrets, scope, cursor)
  const read: TimelineRead = {
    app,
    chat,
    reader: {
      user_id: caller.user_id,
      admin: hasRole(caller, 'admin'),
      kinds: messageKinds(app.operations),
      across_gaps: place?.[3] === 1,
    },
    cursorOf: ({ at, rank, id }, { across_gaps }) =>
      makeCursor(app.secrets, scope, [at, rank, id, across_gaps ? 1 : 0]),
  }
  if (around !== undefined) return readAround(read, around, limit)
  const [at, rank, id] = place ?? []
  const from = place && { at: String(at), rank: Number(rank), id: String(id) }
  return after !== undefined && from ? readNewer(read, from, limit) : readOlder(read, from, limit)
}

async function readOlder(read: TimelineRead, before: TimelinePoint | undefined, limit: number) {
  const from = before ?? endOfTimeline
  const rows = await reachBack(read, { ...read.chat, from, direction: 'older', limit: limit + 1 }, { before })
  return answerOf(read, {
    ...endsOf(rows, limit, from),
    // There is nothing after the newest page yet.
    after: before === undefined ? null : (rows.items[0] ?? from),
    items: rows.items.slice(0, limit).toReversed(),
  })
}

async function readNewer(read: TimelineRead, from: TimelinePoint, limit: number) {
  const { items, complete } = await readRows(read, {
    ...read.chat,
    from,
    direction: 'newer',
    limit: limit + 1,
  })
  const page = items.slice(0, limit)
  return answerOf(read, {
    items: page,
    before: page[0] ?? from,
    after: items.length > limit ? (page.at(-1) ?? null) : null,
    complete,
  })
}

/**
 * A page with the message in its middle. If it lies before a gap, such as a search hit from before the account was away for
 * long, this page and those that follow it show what is stored there.
 */
async function readAround(read: TimelineRead, message_id: string, limit: number) {
  const page = await readBothSides(read, message_id, limit)
  if (page.items.some((item) => item?.type === 'message' && item.id === message_id)) return page
  return readBothSides({ ...read, reader: { ...read.reader, across_gaps: true } }, message_id, limit)
}

async function readBothSides(read: TimelineRead, message_id: string, limit: number) {
  const { account_id, chat_id } = read.chat
  const message = await read.app.db.maybe<{ at: string }>(sql`
    select sent_at::text as at from messages
    where account_id = ${account_id} and chat_id = ${chat_id} and id = ${message_id} and deleted_at is null`)
  if (!message) throw notFound('message', message_id)
  const point = { at: message.at, rank: ranks.message, id: message_id }
  // Ids are whole numbers: what is older than the next one includes the message itself.
  const from = { ...point, id: String(BigInt(message_id) + 1n) }
  const half = Math.ceil(limit / 2)
  const older = await readRows(read, { ...read.chat, from, direction: 'older', limit: half + 1 })
  const newer = await readRows(read, {
    ...read.chat,
    from: point,
    direction: 'newer',
    limit: limit - half + 1,
  })
  const [past, next] = [older.items.slice(0, half), newer.items.slice(0, limit - half)]
  return answerOf(read, {
    ...endsOf(older, half, from),
    items: [...past.toReversed(), ...next],
    after: newer.items.length > next.length ? (next.at(-1) ?? point) : null,
  })
}

interface TimelineRows {
  readonly items: readonly TimelineRow[]
  readonly complete: boolean
}

async function readRows({ app, reader }: TimelineRead, place: TimelinePlace): Promise<TimelineRows> {
  const rows = await app.db.rows<TimelineRow>(timelinePage(place, reader))
  const [first] = rows
  if (!first) throw notFound('chat', chatIdOf(place.chat_id), 'chat_not_found')
  return { items: rows.filter(({ item }) => item !== null), complete: first.complete }
}

/**
 * Fetches older messages from the platform if a user scrolls back to the end of what is stored, or opens a chat without any.
 * If the account cannot fetch now, the page has what is stored.
 */
async function reachBack(
  read: TimelineRead,
  place: TimelinePlace,
  { before }: { before: TimelinePoint | undefined },
): Promise<TimelineRows> {
  const deadline = performance.now() + fetchMsMax
  let rows = await readRows(read, place)
  const isEmpty = () => rows.items.every(({ rank }) => rank !== ranks.message)
  while (!rows.complete && rows.items.length < place.limit && (before !== undefined || isEmpty())) {
    const left = deadline - performance.now()
    const { account_id, chat_id } = read.chat
    const fetched = left > 0 ? await fetchOlder(read.app, account_id, chat_id, left) : 'late'
    if (fetched !== 'fetched' && fetched !== 'complete') break
    rows = await readRows(read, place)
  }
  return rows
}

/** Where older items continue, in the store or on the platform. */
function endsOf({ items, complete }: TimelineRows, limit: number, from: TimelinePoint) {
  const more = items.length > limit || !complete
  return { before: more ? (items.slice(0, limit).at(-1) ?? from) : null, complete }
}

interface TimelinePage extends TimelineRows {
  readonly before: TimelinePoint | null
  readonly after: TimelinePoint | null
}

function answerOf({ cursorOf, reader }: TimelineRead, { items, complete, before, after }: TimelinePage) {
  return {
    items: items.map(({ item }) => item && shownItem(item)),
    before: before && cursorOf(before, reader),
    after: after && cursorOf(after, reader),
    older_on_platform: !complete,
  }
}

function shownItem(item: TimelineItem) {
  if (item.type !== 'operation') return item
  const { refusal, reason: _, cause: __, ...shown } = item
  const sending = item.state === 'queued' || item.state === 'submitting'
  return { ...shown, state: sending ? 'sending' : item.state, sentence: refusal ?? wordsForTeam(item) }
}

/** The page says before it whether it arrived. What worker, journal and random id say is for operators and programs. */
function wordsForTeam({ state, reason, closed_as }: OperationOutcome): string {
  if (state === 'refused') return 'Nothing was sent.'
  if (state !== 'ambiguous') return 'It is being sent.'
  const next =
    closed_as === null
      ? 'We keep looking for it in the chat, and won’t send it again. Or tell us what you see on the phone.'
      : `A person recorded it as ${closed_as === 'sent' ? 'sent' : 'not sent'}. It won’t be sent again.`
  return `${unclearBecause(reason)} ${next}`
}

function unclearBecause(reason: string | null): string {
  switch (reason) {
    case 'timeout':
      return 'The platform did not answer in time.'
    case 'lease':
      return 'Parley stopped while it was being sent.'
    case 'restored':
      return 'It may have been sent before Parley was restored from a backup.'
    default:
      return 'The connection dropped while it was being sent.'
  }
}
