/** The list of chats: views with their counts, an account filter, and the rows, of which only the visible ones are rendered. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ArrowUp } from 'lucide-react'
import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { accountsQuery } from '../../data/accounts.ts'
import {
  type ChatRef,
  type countsQuery,
  type InboxChat,
  inboxQuery,
  type ListFilter,
  listName,
  loadMoreChats,
  noteInView,
  stagesQuery,
  type View,
} from '../../data/chats.ts'
import { chatKey, followChats, type InboxList, noRows, type StillRows } from '../../data/inbox-list.ts'
import type { Workspace } from '../../data/queries.ts'
import { AccountFilter } from '../../ui/account-filter.tsx'
import { Button } from '../../ui/button.tsx'
import { MenuButton } from '../../ui/menu-button.tsx'
import { useRowWindow } from '../../ui/row-window.ts'
import { Reading } from '../../ui/states.tsx'
import { ChatRow } from './chat-row.tsx'
import type { Go } from './inbox-search.ts'
import { useInboxKeys } from './use-inbox-keys.ts'

/** Loads when a list is empty. */
const NoChats = lazy(async () => ({ default: (await import('./no-chats.tsx')).NoChats }))

interface ListProps {
  workspace: Workspace
  filter: ListFilter
  chat: ChatRef | undefined
  counts: Counts | undefined
  go: Go
}

type Counts = NonNullable<Awaited<ReturnType<NonNullable<ReturnType<typeof countsQuery>['queryFn']>>>>

const rowHeight = 76
/** Rows that are rendered beyond the visible ones. */
const overscan = 8

export function ChatList(props: ListProps) {
  const { chat, filter, workspace, go } = props
  return (
    <section
      aria-label="Chats"
      className={`min-h-0 flex-col border-line min-[761px]:flex min-[761px]:border-r ${chat ? 'hidden' : 'flex'}`}
    >
      <header className="flex h-[53px] shrink-0 items-center gap-2 pl-2 pr-2.5 lg:pl-4">
        <MenuButton />
        <h1 className="text-lg font-semibold">Inbox</h1>
        <AccountFilter
          workspace_id={workspace.id}
          value={filter.account_id}
          onChange={(account) =>
            go({
              ...(filter.view !== 'all' && { view: filter.view }),
              ...(account !== undefined && { account }),
              ...(chat && { chat: chat.chat_id, of: chat.account_id }),
            })
          }
          className="ml-auto"
        />
      </header>
      <Views {...props} />
      <Rows key={listName(filter)} {...props} />
    </section>
  )
}

const viewNames: Readonly<Record<View, string>> = {
  all: 'All',
  unread: 'Unread',
  unanswered: 'Unanswered',
  mine: 'Mine',
}

function Views({ counts, workspace }: ListProps) {
  return (
    <nav aria-label="Views" className="shrink-0 border-b border-line px-3 pb-2.5">
      <ul className="flex rounded-[9px] bg-hover p-0.5">
        {(Object.keys(viewNames) as View[]).map((view) => (
          <li key={view} className="min-w-0 flex-auto">
            <Link
              to="/w/$workspace_id/inbox"
              params={{ workspace_id: workspace.id }}
              search={(before) => searchOf(before, view)}
              activeOptions={{ exact: true }}
              className="flex h-10 items-center justify-center gap-1 rounded-[7px] px-1.5 text-xs font-medium text-soft hover:text-ink
                aria-[current=page]:bg-surface aria-[current=page]:text-ink aria-[current=page]:shadow-card min-[761px]:h-7"
            >
              {viewNames[view]}
              {view !== 'all' && (counts?.[view] ?? 0) > 0 && (
                <span className="font-normal text-muted">{counted(counts?.[view] ?? 0)}</span>
              )}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  )
}

/** The service stops counting here. */
const countMax = 1_000
const counted = (count: number) => (count >= countMax ? '999+' : String(count))

function searchOf<S extends { view?: string | undefined }>(before: S, view: View) {
  const { view: _, ...rest } = before
  return view === 'all' ? rest : { ...rest, view }
}

function Rows(props: ListProps) {
  const { filter, workspace, chat, go } = props
  const query = useQuery(inboxQuery(filter))
  const { data: stages = [] } = useQuery(stagesQuery(workspace.id))
  const { data: accounts } = useQuery(accountsQuery(workspace.id))
  const place = useRef<HTMLDivElement>(null)
  const [isAtTop, setAtTop] = useState(true)
  const still = useStillRows(query.data?.chats, isAtTop)
  const { rows, changed, waiting } = still
  const showNew = () => {
    if (place.current) place.current.scrollTop = 0
    setAtTop(true)
  }
  const { items, height, first, last, show } = useRowWindow({
    rows,
    keyOf: chatKey,
    place,
    rowPx: rowHeight,
    overscan,
  })
  useMorePages(filter, query.data, { rows, first, last })
  const at = chat
    ? rows.findIndex(({ account_id, id }) => id === chat.chat_id && account_id === chat.account_id)
    : -1
  useEffect(() => {
    if (at >= 0) show(at)
  }, [at, show])
  useInboxKeys({ filter, chat, still, at, go })
  const nameOf = (id: string) => accounts?.accounts.find((account) => account.id === id)?.name
  return (
    <div className="relative min-h-0 flex-1">
      {waiting > 0 && (
        <Button
          size="small"
          className="absolute left-1/2 top-2 z-10 -translate-x-1/2 shadow-float"
          onClick={showNew}
        >
          <ArrowUp aria-hidden className="size-3.5" />
          {waiting} new
        </Button>
      )}
      {/* Reachable without a row: the list may be empty or long. */}
      <div
        ref={place}
        onScroll={({ currentTarget }) => setAtTop(currentTarget.scrollTop < rowHeight / 2)}
        className="h-full overflow-y-auto overscroll-contain"
      >
        <Reading query={query} className="p-3">
          <RowSkeletons />
        </Reading>
        {query.data && rows.length === 0 && (
          <Suspense>
            <NoChats view={filter.view ?? 'all'} workspace_id={workspace.id} />
          </Suspense>
        )}
        {rows.length > 0 && (
          <ul aria-label="Chats" className="relative" style={{ height }}>
            {items.map(({ index, key, start }) => {
              const shown = rows[index]
              if (!shown) return null
              const row = changed.get(chatKey(shown)) ?? shown
              return (
                <li
                  key={key}
                  aria-setsize={rows.length}
                  aria-posinset={index + 1}
                  className="absolute inset-x-0 h-[76px]"
                  style={{ transform: `translateY(${start}px)` }}
                >
                  <ChatRow
                    chat={row}
                    workspace_id={workspace.id}
                    selected={index === at}
                    stages={stages}
                    account={nameOf(row.account_id)}
                  />
                </li>
              )
            })}
          </ul>
        )}
      </div>
    </div>
  )
}

/** Keeps the rows where they are while the user has scrolled away from the top. */
function useStillRows(chats: StillRows['chats'], isAtTop: boolean): StillRows {
  const [before, setStill] = useState(noRows)
  const still = followChats(before, chats, isAtTop)
  if (still !== before) setStill(still)
  return still
}

interface Sight {
  readonly rows: readonly InboxChat[]
  readonly first: number
  readonly last: number
}

/** Loads the next page before its end is reached, and notes which pages are in sight. */
function useMorePages(filter: ListFilter, list: InboxList | undefined, { rows, first, last }: Sight) {
  useEffect(() => {
    if (!list) return
    noteInView(filter, list, rows.slice(first, last + 1))
    if (last >= rows.length - 15) void loadMoreChats(filter)
  }, [filter, list, rows, first, last])
}

const skeletons = [1, 0.85, 0.7, 0.55, 0.4, 0.25]

function RowSkeletons() {
  return (
    <div aria-busy>
      <p role="status" className="sr-only">
        Loading
      </p>
      {skeletons.map((opacity) => (
        <div
          key={opacity}
          style={{ opacity }}
          className="flex h-[76px] gap-2.5 border-b border-line px-3.5 py-2.5"
        >
          <div className="skeleton size-9 !rounded-full" />
          <div className="grid flex-1 content-start gap-2 pt-0.5">
            <div className="skeleton h-3.5 w-1/2" />
            <div className="skeleton h-3 w-4/5" />
          </div>
        </div>
      ))}
    </div>
  )
}
