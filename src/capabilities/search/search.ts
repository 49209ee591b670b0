/** Search over the messages that are stored: newest first, at a cost that does not grow with what does not match. */
import type { App } from '../../app.ts'
import type { Account } from '../../contract.ts'
import { chatNumber, chatPrefix } from '../../lib/shapes.ts'
import { requireChat } from '../chats/chats.ts'
import { listCompleteness } from '../history/history.ts'
import { type Condition, queriesWithin, readNames, readWords, toTemplate, type Words } from './conditions.ts'
import { contextOf, excerptOf } from './excerpt.ts'
import { allWindows, lookOut, type Outlook, recentWindows, splitWindow, type Window } from './plan.ts'
import { type Found, findNamed, type Lookup, lookUp, type Place, survey } from './store.ts'

export interface SearchRequest {
  readonly query?: string | undefined
  readonly chat_id?: string | undefined
  readonly limit: number
  readonly people?: readonly string[] | undefined
  readonly keywords?: readonly string[] | undefined
  readonly time_after?: Date | undefined
  readonly time_before?: Date | undefined
  readonly account_types: 'messaging' | 'email' | 'all'
}

/** Matches are counted so far, and one more tells that there are more. */
const countMax = 1000
/** How many of the newest messages tell how common it is what is looked for. */
const sampleSize = 500
/** Of the people with a name, so many an account are looked through: the most recently active. */
const peopleMax = 200

export async function searchMessages(app: App, accounts: readonly Account[], request: SearchRequest) {
  const words = readWords(request)
  const names = request.people && readNames(request.people)
  const bounds = readBounds(request)
  const searched = await accountsOf(app, accounts, request)
  const place: Place = {
    account_ids: searched.map(({ id }) => id),
    chat_id: request.chat_id === undefined ? undefined : chatNumber(request.chat_id),
  }
  const people = names === undefined ? undefined : await findPeople(app, place, names)
  const conditions = searched.flatMap(({ id }) => toCondition(id, place, words, people))
  const wanted = conditions.map((one) => ({ account_id: one.account_id, query: toTemplate(one) }))
  const each = Math.max(4, Math.ceil(sampleSize / Math.max(searched.length, 1)))
  const [surveyed, histories] = await Promise.all([
    survey(app.db, place, { wanted, bounds, each }),
    listCompleteness(app.db, place.account_ids),
  ])
  const asked = surveyed.filter(({ account_id }) => conditions.some((one) => one.account_id === account_id))
  const outlook = lookOut(asked, each, bounds)
  const rows = outlook ? await find(app, { outlook, conditions, limit: request.limit + 1 }) : []
  const histories_complete = histories.every(({ history_complete }) => history_complete)
  return {
    ...answer(rows, searched, { words, limit: request.limit }),
    platforms_searched: [...new Set(searched.map(({ provider }) => provider))],
    completeness: {
      complete: histories_complete && !people?.cut,
      accounts: surveyed.map(({ account_id, first_at, last_at }) => ({
        account_id,
        history_complete: histories.some((one) => one.account_id === account_id && one.history_complete),
        oldest_at: first_at,
        newest_at: last_at,
      })),
    },
  }
}

/** No account of ours is a mailbox. */
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

function readBounds({ time_after, time_before }: SearchRequest): Window {
  return {
    from: time_after?.getTime() ?? Date.UTC(0, 0),
    until: time_before?.getTime() ?? Date.UTC(9999, 11, 31),
  }
}

interface People {
  readonly ids: ReadonlyMap<string, readonly string[]>
  /** There were more than are looked through. */
  readonly cut: boolean
}

async function findPeople(app: App, { account_ids }: Place, query: string): Promise<People> {
  const found = Map.groupBy(
    await findNamed(app.db, account_ids, { query, each: peopleMax + 1 }),
    ({ account_id }) => account_id,
  )
  const ids = new Map([...found].map(([id, rows]) => [id, rows.slice(0, peopleMax).map((row) => row.id)]))
  return { ids, cut: [...found.values()].some((rows) => rows.length > peopleMax) }
}

/** Nothing is wanted of an account that knows none of the people. */
function toCondition(
  account_id: string,
  { chat_id }: Place,
  words: Words,
  people: People | undefined,
): Condition[] {
  const ids = people?.ids.get(account_id)
  return people && !ids ? [] : [{ account_id, words, people: ids, chat_id }]
}

interface Task {
  readonly outlook: Outlook
  readonly conditions: readonly Condition[]
  readonly limit: number
}

/**
 * What is common is found among the newest messages. What is not is looked for further and further back, in parts that
 * grow; if one of them turns out to be full of it, in small pieces of that part.
 */
async function find(app: App, { outlook, conditions, limit }: Task): Promise<readonly Found[]> {
  const count = countMax + 1
  const [first] = conditions
  const timeOnly = first !== undefined && toTemplate(first) === null
  const by: Lookup['by'] = timeOnly || outlook.small ? 'time' : 'index'
  const look = (windows: readonly Window[], most: number) => {
    const probes = windows.flatMap((window, place) =>
      conditions.flatMap((condition) => {
        const { account_id } = condition
        return queriesWithin(condition, window).map((query) => ({ place, account_id, query, window }))
      }),
    )
    return lookUp(app.db, { probes, chat_id: first?.chat_id, by, most, count, limit })
  }
  const recent = recentWindows(outlook, count)
  if (recent) {
    const rows = await look(recent, heldMax)
    if (isEnough(rows, count)) return rows
  }
  const windows = allWindows(outlook, count)
  const rows = await look(windows, heldMax)
  const overflow = rows[0]?.overflow
  return typeof overflow === 'number' ? look(splitWindow(windows, overflow), everything) : rows
}

function isEnough(rows: readonly Found[], count: number): boolean {
  return rows[0]?.overflow === null && rows[0].total >= count
}

/** More matches than this in one part of the past are not put in order: the part is taken in smaller ones. */
const heldMax = 4000
const everything = 1_000_000_000

function answer(
  rows: readonly Found[],
  accounts: readonly Account[],
  { words, limit }: { words: Words; limit: number },
) {
  const terms = [...words.all, ...words.any.flat()]
  const page = rows.slice(0, limit).map((row) => ({
    account_id: row.account_id,
    chat_id: `${chatPrefix}${row.chat_id}`,
    message_id: row.message_id,
    excerpt: excerptOf(row.text, terms),
    is_sender: row.is_sender,
    timestamp: row.sent_at.toISOString(),
    chat_name: row.chat_name,
  }))
  const total = rows[0]?.total ?? 0
  const chats = new Map(page.map((match) => [`${match.account_id} ${match.chat_id}`, match]))
  return {
    matches: page.map(({ chat_name: _, ...match }) => match),
    match_count: Math.min(total, countMax),
    ...(total > countMax && { match_count_capped: true }),
    has_more: rows.length > limit,
    chats: [...chats.values()].map(({ account_id, chat_id, chat_name }) => ({
      account_id,
      chat_id,
      chat_name,
      provider: accounts.find(({ id }) => id === account_id)?.provider,
    })),
    context: contextOf(page),
  }
}
