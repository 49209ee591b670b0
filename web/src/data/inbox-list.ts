/** The list of chats in memory: pages that were read at different times, in one order, each chat once. */
import type { Answer } from './api.ts'

type Page = Answer<'GET /w/{workspace_id}/inbox'>
type ListedChat = Page['chats'][number]

export interface InboxList {
  readonly chats: readonly ListedChat[]
  /** The cursor of the part that was never read. */
  readonly next_cursor: string | null
  /** The cursor that leads to each chat, by `chatKey`; the first page has none. */
  readonly pages: Readonly<Record<string, string>>
}

interface ReadPage extends Page {
  readonly cursor: string | undefined
}

export function chatKey({ account_id, id }: Pick<ListedChat, 'account_id' | 'id'>): string {
  return `${account_id} ${id}`
}

const accountIds = new Map<string, string>()

/** The chat as it is in memory if nothing of it changed. Otherwise the new one, with the one copy of its account's id. */
function keepUnchanged(before: ListedChat | undefined, chat: ListedChat): ListedChat {
  if (before && JSON.stringify(before) === JSON.stringify(chat)) return before
  const account_id = accountIds.get(chat.account_id) ?? chat.account_id
  accountIds.set(account_id, account_id)
  return { ...chat, account_id }
}

/** Newest first, as the service sorts; a chat without a message comes last. */
function compare(a: ListedChat, b: ListedChat): number {
  const [left, right] = [timeOf(a), timeOf(b)]
  return left < right ? 1 : left > right ? -1 : 0
}

/**
 * Merges a page into the list. A chat that was between the page's first and last one and is no longer among them has left this
 * view, or has moved, and then another page has it.
 */
export function mergePage(before: InboxList | undefined, page: ReadPage): InboxList {
  const fresh = new Set(page.chats.map(chatKey))
  const [first, last] = [page.chats[0], page.chats.at(-1)]
  const replaced = new Map<string, ListedChat>()
  const kept = (before?.chats ?? []).filter((chat) => {
    if (fresh.has(chatKey(chat))) {
      replaced.set(chatKey(chat), chat)
      return false
    }
    const isAfter = page.next_cursor !== null && last !== undefined && compare(chat, last) >= 0
    const isOfPage = page.cursor !== undefined && before?.pages[chatKey(chat)] === page.cursor
    const isBefore = page.cursor !== undefined && (first === undefined || compare(chat, first) <= 0)
    return isAfter || (isBefore && !isOfPage)
  })
  const pages: Record<string, string> = {}
  for (const chat of kept) {
    const cursor = before?.pages[chatKey(chat)]
    if (cursor !== undefined) pages[chatKey(chat)] = cursor
  }
  if (page.cursor !== undefined) for (const key of fresh) pages[key] = page.cursor
  const isFurthest = before === undefined || page.cursor === before.next_cursor || page.next_cursor === null
  const own = page.chats.map((chat) => keepUnchanged(replaced.get(chatKey(chat)), chat))
  return {
    chats: [...kept, ...own].sort(compare),
    next_cursor: isFurthest ? page.next_cursor : before.next_cursor,
    pages,
  }
}

/** The rows that a user sees. */
export interface StillRows {
  /** The list that they show. */
  readonly chats: readonly ListedChat[] | undefined
  /** Each as it was when it took its place. */
  readonly rows: readonly ListedChat[]
  /** Those of them that have changed since. */
  readonly changed: ReadonlyMap<string, ListedChat>
  /** How many new or moved ones wait at the top. */
  readonly waiting: number
}

export const noRows: StillRows = { chats: undefined, rows: [], changed: new Map(), waiting: 0 }

/** While the user has scrolled away from the top, chats stay where they are, and older ones follow. */
export function followChats(before: StillRows, chats: StillRows['chats'], isAtTop: boolean): StillRows {
  // guard: an unchanged list renders nothing
  if (!chats || (chats === before.chats && !(isAtTop && before.waiting > 0))) return before
  if (isAtTop || before.rows.length === 0) return { ...noRows, chats, rows: chats } // guard: rows stay under the pointer
  const { rows } = before
  const places = new Map(rows.map((chat) => [chatKey(chat), chat]))
  const end = timeOf(rows.at(-1))
  // One that has left the list stays as it was last.
  const changed = new Map(before.changed) // guard: a row that has left the list stays
  const older: ListedChat[] = []
  let waiting = 0
  for (const [index, chat] of chats.entries()) {
    const key = chatKey(chat)
    const known = places.get(key)
    if (known === undefined) {
      if (timeOf(chat) > end) waiting++
      else older.push(chat)
    } else if (known !== chat) {
      changed.set(key, chat)
      if (timeOf(chat) > timeOf(known) && known !== rows[index]) waiting++
    }
  }
  return { chats, rows: older.length === 0 ? rows : [...rows, ...older], changed, waiting }
}

/** The row this many below the one at `at`, or the first if that is -1: by what the user sees, whatever the list has become. */
export function rowBelow(still: StillRows, at: number, step: number): ListedChat | undefined {
  const { rows } = still // guard: keys follow the rows on screen
  return at < 0 ? rows[0] : rows[at + step]
}

function timeOf(chat: ListedChat | undefined): string {
  return chat?.last_message_at ?? ''
}
