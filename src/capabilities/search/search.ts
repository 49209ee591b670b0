/** Search over the stored messages: newest first, at a cost that does not grow with messages that do not match. */
import type { App } from '../../app.ts'
import type { Account, Caller } from '../../contract.ts'
import type { Db } from '../../db/sql.ts'
import { type Position, readPaging } from '../../lib/cursor.ts'
import { type ChatId, chatNumber, chatPrefix } from '../../lib/shapes.ts'
import { mapInSlices } from '../../lib/slices.ts'
import { requireChat } from '../chats/chats.ts'
import { listCompleteness } from '../history/history.ts'
import { contextOf, excerptOf } from './excerpt.ts'
import {
  type Condition,
  findMatches,
  inOrder,
  type MatchLimits,
  type MessageKey,
  type Words,
} from './index/search-index.ts'
import { readNames, readWords } from './query-words.ts'
import { findNamed, type Message, readMessages, readTimeRange, type SearchPlace } from './stored-messages.ts'

export { areWordsForgotten, forgetWords } from './index/search-index.ts'

interface SearchRequest {
  readonly query?: string | undefined
  readonly chat_id?: ChatId | undefined
  readonly limit: number
  readonly cursor?: string | undefined
  readonly people?: readonly string[] | undefined
  readonly keywords?: readonly string[] | undefined
  readonly time_after?: Date | undefined
  readonly time_before?: Date | undefined
  readonly account_types: 'messaging' | 'email' | 'all'
}

/** Counts matches up to this; one more shows that there are more. */
const countMax = 1000
/** How many people of an account with a matching name are searched: if there are more, only the most recently active. */
const peopleMax = 200
/** If the request has no times. */
const always = { from: Date.UTC(0, 0), until: Date.UTC(9999, 11, 31) }

/** The parts of a request that are checked without reading any account. */
interface CheckedSearch {
  readonly words: Words
  readonly names: string | undefined
  readonly after: After | undefined
  readonly next: (after: After) => string
}

/** Where a page ends: its last match, how many of the same millisecond were shown, and how many matches there are. */
interface After extends MessageKey {
  readonly shown: number
  readonly total: number
}

export function checkSearch(
  app: App,
  { workspace_id }: Pick<Caller, 'workspace_id'>,
  request: SearchRequest,
): CheckedSearch {
  const { cursor, limit: _, time_after, time_before, ...rest } = request
  const times = { time_after: time_after?.toISOString(), time_before: time_before?.toISOString() }
  const filters = JSON.parse(JSON.stringify({ ...rest, ...times }))
  const scope = { workspace_id, operation: 'search_messages', filters }
  const { after, next } = readPaging(app.secrets, scope, cursor)
  return {
    words: readWords(request),
    names: request.people && readNames(request.people),
    after: after && toAfter(after),
    next: ({ at, account_id, chat_id, id, shown, total }) =>
      next([at, account_id, chat_id, id, shown, total]),
  }
}

function toAfter([at, account_id, chat_id, id, shown, total]: Position): After {
  return {
    at: Number(at),
    account_id: String(account_id),
    chat_id: String(chat_id),
    id: String(id),
    shown: Number(shown),
    total: Number(total),
  }
}

export async function searchMessages(
  app: App,
  accounts: readonly Account[],
  { request, checked }: { request: SearchRequest; checked: CheckedSearch },
) {
  const { words, names, after, next } = checked
  const { limit } = request
  const searched = await accountsOf(app, accounts, request)
  const place: SearchPlace = {
    account_ids: searched.map(({ id }) => id),
    chat_id: request.chat_id === undefined ? undefined : chatNumber(request.chat_id),
  }
  const people = names === undefined ? undefined : await findPeople(app, place, names)
  const condition: Condition = {
    words,
    people: people?.ids,
    chat_id: place.chat_id,
    from: request.time_after?.getTime() ?? always.from,
    until: Math.min(request.time_before?.getTime() ?? always.until, after ? after.at + 1 : always.until),
  }
  // Matches of the last page's final millisecond are found again, and skipped below.
  const most = limit + 1 + (after?.shown ?? 0)
  const wanted = { limit: most, count: after ? most : countMax + 1 }
  const [found, histories] = await app.db.snapshot((db) =>
    Promise.all([
      findPage(db, place, { condition, wanted }),
      // On the same connection: a second one would only wait for the same processors.
      listCompleteness(db, place.account_ids),
    ]),
  )
  const rest = after ? found.page.filter((message) => inOrder(keyOf(message), after) > 0) : found.page
  const page = rest.slice(0, limit)
  const total = after?.total ?? found.total
  const last = rest.length > limit ? page.at(-1) : undefined
  return {
    // guard: search does not show erased people
    ...(await answer(
      page.filter(({ erased }) => !erased),
      searched,
      words,
    )),
    match_count: Math.min(total, countMax),
    ...(total > countMax && { match_count_capped: true }),
    next_cursor: last ? next({ ...keyOf(last), shown: countShown(page, after), total }) : null,
    has_more: last !== undefined,
    platforms_searched: [...new Set(searched.map(({ provider }) => provider))],
    completeness: {
      complete: histories.every(({ history_complete }) => history_complete) && found.complete && !people?.cut,
      accounts: histories,
    },
  }
}

/** How many matches of the last one's millisecond this and the previous pages have shown. */
function countShown(page: readonly Message[], after: After | undefined): number {
  const at = page.at(-1)?.sent_at.getTime()
  const here = page.filter(({ sent_at }) => sent_at.getTime() === at).length
  return after && after.at === at ? here + after.shown : here
}

interface Page {
  readonly page: readonly Message[]
  readonly total: number
  readonly complete: boolean
}

async function findPage(
  db: Db,
  place: SearchPlace,
  { condition, wanted }: { condition: Condition; wanted: MatchLimits },
): Promise<Page> {
  if (place.account_ids.length === 0) return { page: [], total: 0, complete: true }
  const { words, people, from, until } = condition
  // Only times: an index on messages covers those.
  if (words.all.length === 0 && words.any.length === 0 && people === undefined) {
    return { ...(await readTimeRange(db, place, { ...wanted, from, until })), complete: true }
  }
  const { page, ...rest } = await findMatches(db, place.account_ids, condition, wanted)
  const messages = await readMessages(db, page)
  return { ...rest, page: messages.sort((a, b) => inOrder(keyOf(a), keyOf(b))) }
}

function keyOf({ account_id, chat_id, id, sent_at }: Message): MessageKey {
  return { account_id, chat_id, id, at: sent_at.getTime() }
}

/** The accounts to search. None is a mailbox, so `email` leaves none. */
async function accountsOf(
  app: App,
  accounts: readonly Account[],
  { chat_id, account_types }: SearchRequest,
): Promise<readonly Account[]> {
  const found = chat_id
    ? [await requireChat(app, accounts, { chat_id, missing: 'invalid_request' })]
    : accounts
  return account_types === 'email' ? [] : found
}

interface People {
  readonly ids: ReadonlyMap<string, ReadonlySet<string>>
  /** There were more people than are searched. */
  readonly cut: boolean
}

async function findPeople(app: App, { account_ids }: SearchPlace, query: string): Promise<People> {
  const found = Map.groupBy(
    await findNamed(app.db, account_ids, { query, each: peopleMax + 1 }),
    ({ account_id }) => account_id,
  )
  const ids = new Map(
    [...found].map(([id, rows]) => [id, new Set(rows.slice(0, peopleMax).map((row) => row.id))]),
  )
  return { ids, cut: [...found.values()].some((rows) => rows.length > peopleMax) }
}

async function answer(page: readonly Message[], accounts: readonly Account[], words: Words) {
  const phrases = [...words.all, ...words.any.flat()]
  // A page of the longest messages takes tens of milliseconds.
  const shown = await mapInSlices(page, (message) => ({
    account_id: message.account_id,
    chat_id: `${chatPrefix}${message.chat_id}`,
    message_id: message.id,
    excerpt: excerptOf(message.text, phrases),
    is_sender: message.is_sender,
    timestamp: message.sent_at.toISOString(),
    chat_name: message.chat_name,
  }))
  const chats = new Map(shown.map((match) => [`${match.account_id} ${match.chat_id}`, match]))
  return {
    matches: shown.map(({ chat_name: _, ...match }) => match),
    chats: [...chats.values()].map(({ account_id, chat_id, chat_name }) => ({
      account_id,
      chat_id,
      chat_name,
      provider: accounts.find(({ id }) => id === account_id)?.provider,
    })),
    context: contextOf(shown),
  }
}
