/** Search over the messages that are stored: newest first, at a cost that does not grow with what does not match. */
import type { App } from '../../app.ts'
import type { Account } from '../../contract.ts'
import { chatNumber, chatPrefix } from '../../lib/shapes.ts'
import { requireChat } from '../chats/chats.ts'
import { listCompleteness } from '../history/history.ts'
import {
  type Condition,
  queriesWithin,
  readNames,
  readWords,
  splitOpen,
  toTemplate,
  type Words,
} from './conditions.ts'
import { contextOf, excerptOf } from './excerpt.ts'
import { allWindows, lookOut, type Outlook, recentWindows, splitWindow, type Window } from './plan.ts'
import { findNamed, type LookedUp, type Lookup, lookUp, type Place, survey } from './store.ts'

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
const sampleSize = 250
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
  const condition: Condition = {
    // Nothing is wanted of an account that knows none of the people.
    account_ids: place.account_ids.filter((id) => !people || people.ids.has(id)),
    words,
    people: people?.ids,
    chat_id: place.chat_id,
  }
  const split = splitOpen(words)
  const wanted = {
    query: toTemplate(condition),
    open: split ? toTemplate({ ...condition, words: split.open, people: undefined }) : null,
    closed: split ? toTemplate({ ...condition, words: split.closed }) : null,
  }
  const each = Math.max(4, Math.ceil(sampleSize / Math.max(searched.length, 1)))
  const [surveyed, histories] = await Promise.all([
    survey(app.db, place, { wanted, bounds, each }),
    listCompleteness(app.db, place.account_ids),
  ])
  const asked = surveyed.filter(({ account_id }) => condition.account_ids.includes(account_id))
  const outlook = lookOut(asked, each, bounds)
  const found = outlook
    ? await find(app, { outlook, condition, split, limit: request.limit + 1 })
    : { page: [], total: 0 }
  const complete =
    histories.every(({ history_complete }) => history_complete) &&
    !surveyed.some(({ unrenewed }) => unrenewed)
  return {
    ...answer(found, searched, { words, limit: request.limit }),
    platforms_searched: [...new Set(searched.map(({ provider }) => provider))],
    completeness: {
      complete: complete && !people?.cut,
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

interface Task {
  readonly outlook: Outlook
  readonly condition: Condition
  readonly split: ReturnType<typeof splitOpen>
  readonly limit: number
}

/**
 * What is common is found among the newest messages. What is not is looked for further and further back, in parts that
 * grow; if one of them turns out to be full of it before there is a page, in small pieces of that part.
 */
async function find(app: App, { outlook, condition, split, limit }: Task): Promise<LookedUp> {
  const timeOnly = toTemplate(condition) === null
  const by: Lookup['by'] = timeOnly || outlook.small ? 'time' : 'index'
  const check = by === 'index' && outlook.check_open ? split : undefined
  const looked = { ...condition, words: check?.closed ?? condition.words }
  const look = (windows: readonly Window[], count: number) => {
    const probes = windows.flatMap((window, place) =>
      timeOnly
        ? [{ place, window, query: null, check: null }]
        : queriesWithin(looked, window, check?.open).map((query) => ({ ...query, place, window })),
    )
    return lookUp(app.db, condition, { probes, by, count, limit })
  }
  const count = countMax + 1
  const all = allWindows(outlook, { page: limit, count })
  let windows = recentWindows(outlook, all) ?? all
  for (;;) {
    const found = await look(windows, count)
    if (found.total < count) {
      if (windows.at(-1)?.from === all.at(-1)?.from) return found
      windows = all
    } else if (found.page.length === limit) return found
    else {
      const pieces = splitWindow(windows, found.place, outlook.accounts)
      // Hours that cannot be divided are put in order as a whole.
      if (!pieces) return { ...(await look(windows.slice(0, found.place + 1), everything)), total: count }
      // What had nothing in it need not be looked through again.
      windows = found.page.length === 0 ? pieces.slice(found.place) : pieces
    }
  }
}

const everything = 1_000_000_000

function answer(
  { page: rows, total }: Pick<LookedUp, 'page' | 'total'>,
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
