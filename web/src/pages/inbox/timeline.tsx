/** The messages, notes and operations of a chat in one column. Older and newer ones load when they are scrolled to. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { ArrowDown } from 'lucide-react'
import { Fragment, type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { ask } from '../../data/api.ts'
import { type ChatRef, type Timeline, type TimelineItem, timelineQuery } from '../../data/chats.ts'
import { type PendingSend, useSending } from '../../data/sending.ts'
import { Button } from '../../ui/button.tsx'
import { Failure } from '../../ui/notice.tsx'
import { Reading } from '../../ui/states.tsx'
import { useClock } from '../../ui/time.tsx'
import { NoteItem } from './note-item.tsx'
import { PendingItem } from './pending-item.tsx'
import { MessageItem, OperationItem } from './timeline-items.tsx'

/** More items load within this distance of either end. */
const nearPx = 600

interface TimelineProps {
  chat: ChatRef
  /** Messages that no member has read yet. */
  unread: number | undefined
}

export function TimelineView({ chat, unread }: TimelineProps) {
  const { message } = useSearch({ from: '/inside/w/$workspace_id/inbox' })
  const query = useInfiniteQuery(timelineQuery(chat, message))
  const pages = query.data?.pages
  const items = useMemo(() => uniqueItems(pages ?? []), [pages])
  const pending = usePending(chat, items)
  const place = useRef<HTMLElement>(null)
  const older = useOlder(chat, query, pages?.[0])
  const [isAway, setAway] = useState(false)
  const newFrom = useFirstNew(items, unread)
  useShowMessage(message, items.length > 0)
  const onScroll = () => {
    const element = place.current
    if (!element) return
    // The column is reversed, so that it stays at its end while it grows: the offset is negative.
    const fromEnd = -element.scrollTop
    const fromStart = element.scrollHeight - element.clientHeight - fromEnd
    setAway(fromEnd > nearPx)
    if (fromStart < nearPx) older.load()
    if (fromEnd < nearPx && query.hasNextPage && !query.isFetching) void query.fetchNextPage()
  }
  return (
    <div className="relative min-h-0 flex-1">
      <section
        ref={place}
        onScroll={onScroll}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: without it a keyboard cannot scroll a chat of plain texts.
        tabIndex={0}
        aria-label="Messages"
        className="flex h-full flex-col-reverse overflow-y-auto overscroll-contain -outline-offset-2"
      >
        <div className="flex flex-col px-3.5 pb-1.5 pt-3.5 min-[761px]:px-4.5">
          <Reading query={query}>
            <Skeleton />
          </Reading>
          {pages && <Beginning older={older} isEmpty={items.length === 0 && pending.length === 0} />}
          <Items items={items} chat={chat} newFrom={newFrom} wanted={message} />
          {pending.map((each) => (
            <PendingItem key={each.entry.key} pending={each} />
          ))}
        </div>
      </section>
      {(isAway || query.hasNextPage) && (
        <ToNewest
          onClick={() => {
            if (place.current) place.current.scrollTop = 0
          }}
        />
      )}
    </div>
  )
}

function ToNewest({ onClick }: { onClick: () => void }) {
  return (
    <Button size="small" className="absolute bottom-2 right-4 shadow-float" onClick={onClick}>
      <ArrowDown aria-hidden className="size-3.5" />
      Newest
    </Button>
  )
}

/** Pages can overlap while messages arrive. */
function uniqueItems(pages: readonly Timeline[]): TimelineItem[] {
  const seen = new Map<string, TimelineItem>()
  for (const { items } of pages) for (const item of items) seen.set(`${item.type} ${item.id}`, item)
  return [...seen.values()]
}

/** What this browser is sending to this chat, as long as the timeline does not show it. */
function usePending(
  { workspace_id, account_id, chat_id }: ChatRef,
  items: readonly TimelineItem[],
): PendingSend[] {
  const { pending } = useSending()
  return pending.filter(
    (each) =>
      each.chat.workspace_id === workspace_id &&
      each.chat.account_id === account_id &&
      each.chat.chat_id === chat_id &&
      !items.some((item) => isSame(item, each)),
  )
}

/** Clocks of browser and service differ a little. */
const skewMs = 5_000

/** Another tab may learn the outcome first: then the timeline has the message before this tab knows its id. */
function isSame(item: TimelineItem, { entry, message_id }: PendingSend): boolean {
  if (item.type === 'message' && item.id === message_id) return true
  // Messages with files may have the same text: none.
  if (entry.part + entry.files.length > 1) return false
  const isOurs =
    item.type === 'message' ? item.is_sender : item.type === 'operation' && item.state === 'sending'
  const isSince = new Date(item.at).getTime() > new Date(entry.at).getTime() - skewMs
  return isOurs && isSince && item.text === entry.body
}

interface Older {
  readonly load: () => void
  readonly isLoading: boolean
  readonly isEnd: boolean
  readonly error: unknown
}

type Pages = ReturnType<typeof useInfiniteQuery<Timeline, Error, { pages: Timeline[] }>>

/** Older messages: from the store, then from the platform, which stores them here. */
function useOlder(
  { workspace_id, account_id, chat_id }: ChatRef,
  query: Pick<Pages, 'hasPreviousPage' | 'isFetching'> & {
    fetchPreviousPage: () => Promise<unknown>
    refetch: () => Promise<unknown>
  },
  first: Timeline | undefined,
): Older {
  const [isFetchingOld, setFetching] = useState(false)
  const [error, setError] = useState<unknown>()
  const isEnd = first !== undefined && first.before === null && !first.older_on_platform
  const load = () => {
    if (isFetchingOld || query.isFetching || isEnd || !first || error) return
    setFetching(true)
    const oldest = first.items.find(({ type }) => type === 'message')?.at
    const work = query.hasPreviousPage
      ? query.fetchPreviousPage()
      : ask('GET /w/{workspace_id}/chats/{chat_id}/messages', {
          params: { workspace_id, chat_id },
          query: { account_id, ...(oldest !== undefined && { before: oldest }) },
        }).then(() => query.refetch())
    void work.catch(setError).finally(() => setFetching(false))
  }
  return { load, isLoading: isFetchingOld, isEnd, error }
}

function Beginning({ older, isEmpty }: { older: Older; isEmpty: boolean }) {
  if (older.error) return <Failure error={older.error} />
  if (isEmpty) return <p className="py-8 text-center text-muted">No messages yet.</p>
  if (older.isEnd) return <p className="pb-2 text-center text-xs text-muted">The beginning of this chat</p>
  return (
    <Button kind="quiet" size="small" className="self-center" busy={older.isLoading} onClick={older.load}>
      Show older
    </Button>
  )
}

/** The first of the messages that were unread when the chat was opened. */
function useFirstNew(items: readonly TimelineItem[], unread: number | undefined): string | undefined {
  const [first, setFirst] = useState<string | null>()
  if (first === undefined && unread !== undefined && items.length > 0) {
    const theirs = items.filter((item) => item.type === 'message' && !item.is_sender)
    setFirst(unread > 0 ? (theirs.at(-unread)?.id ?? theirs[0]?.id ?? null) : null)
  }
  return first ?? undefined
}

/** A search hit opens at its message. */
function useShowMessage(message: string | undefined, isThere: boolean): void {
  useEffect(() => {
    if (message === undefined || !isThere) return
    document.getElementById(`message-${message}`)?.scrollIntoView({ block: 'center' })
  }, [message, isThere])
}

interface ItemsProps {
  items: readonly TimelineItem[]
  chat: ChatRef
  newFrom: string | undefined
  wanted: string | undefined
}

function Items({ items, chat, newFrom, wanted }: ItemsProps) {
  const { day, dayKey } = useClock()
  return items.map((item, index) => {
    const before = items[index - 1]
    const isNewDay = before === undefined || dayKey(before.at) !== dayKey(item.at)
    return (
      <Fragment key={`${item.type} ${item.id}`}>
        {isNewDay && (
          <h3 className="mb-1.5 mt-2.5 self-center text-xs font-medium text-muted">{day(item.at)}</h3>
        )}
        {item.type === 'message' && item.id === newFrom && <NewLine />}
        {itemOf(item, { chat, wanted, next: items[index + 1], previous: before })}
      </Fragment>
    )
  })
}

interface Around {
  chat: ChatRef
  wanted: string | undefined
  next: TimelineItem | undefined
  previous: TimelineItem | undefined
}

function itemOf(item: TimelineItem, { chat, wanted, next, previous }: Around): ReactNode {
  if (item.type === 'note') return <NoteItem note={item} chat={chat} />
  if (item.type === 'operation') return <OperationItem operation={item} chat={chat} />
  const isWanted = item.id === wanted
  return <MessageItem message={item} chat={chat} next={next} previous={previous} wanted={isWanted} />
}

function NewLine() {
  return (
    <p
      className="mb-0.5 mt-2.5 flex items-center gap-2.5 text-xs font-semibold text-accent before:h-px before:flex-1 before:bg-accent/35
        after:h-px after:flex-1 after:bg-accent/35"
    >
      New
    </p>
  )
}

const widths = ['w-2/5', 'w-1/2', 'w-1/3 self-end', 'w-2/5']

function Skeleton() {
  return (
    <div aria-busy className="flex flex-col gap-2.5">
      <p role="status" className="sr-only">
        Loading
      </p>
      {widths.map((width, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the bars never change.
        <div key={at} className={`skeleton h-9 ${width}`} />
      ))}
    </div>
  )
}
