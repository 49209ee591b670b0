/** The list of chats in memory: pages that were read at different times, in one order, each chat once. */
import type { Answer } from '../../api.ts'

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

/** Newest first, as the service sorts; a chat without a message comes last. */
function compare(a: ListedChat, b: ListedChat): number {
  const [left, right] = [a.last_message_at ?? '', b.last_message_at ?? '']
  return left < right ? 1 : left > right ? -1 : 0
}

/**
 * Merges a page into the list. A chat that was between the page's first and last one and is no longer among them has left this
 * view, or has moved, and then another page has it.
 */
export function mergePage(before: InboxList | undefined, page: ReadPage): InboxList {
  const fresh = new Set(page.chats.map(chatKey))
  const [first, last] = [page.chats[0], page.chats.at(-1)]
  const kept = (before?.chats ?? []).filter((chat) => {
    if (fresh.has(chatKey(chat))) return false
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
  return {
    chats: [...kept, ...page.chats].sort(compare),
    next_cursor: isFurthest ? page.next_cursor : before.next_cursor,
    pages,
  }
}

/** A chat on screen, and its newest message when it took its place. */
export interface ShownChat {
  readonly key: string
  readonly at: string
}

export function showAll(chats: readonly ListedChat[]): ShownChat[] {
  return chats.map((chat) => ({ key: chatKey(chat), at: chat.last_message_at ?? '' }))
}

/** While the user scrolls, chats stay where they are: how many new or moved ones wait at the top, and which older ones follow. */
export function holdStill(
  shown: readonly ShownChat[],
  chats: readonly ListedChat[],
): { readonly shown: readonly ShownChat[]; readonly waiting: number } {
  const places = new Map(shown.map(({ key, at }) => [key, at]))
  const end = shown.at(-1)?.at ?? ''
  const fresh = showAll(chats)
  const older = fresh.filter(({ key, at }) => !places.has(key) && at <= end)
  const waiting = fresh.filter(({ key, at }, index) => {
    const before = places.get(key)
    return before === undefined ? at > end : at > before && shown[index]?.key !== key
  })
  return { shown: older.length === 0 ? shown : [...shown, ...older], waiting: waiting.length }
}
