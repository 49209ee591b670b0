/** The inbox: every chat of every account in one list, the open one beside it, and what is known about it. The address is the state. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useMemo } from 'react'
import {
  type ChatRef,
  chatQuery,
  countsQuery,
  type InboxChat,
  inboxQuery,
  type ListFilter,
  prefetchChat,
} from '../../data/chats.ts'
import { useGo, useHere } from '../../data/place.ts'
import { undoLast } from '../../data/toasts.ts'
import { KeyHelp } from '../../ui/key-help.tsx'
import { type KeyActions, useKeys } from '../../ui/shortcuts.ts'
import { useTitle } from '../../ui/title.ts'
import { ChatList } from './chat-list.tsx'
import type { Go, InboxSearch } from './inbox-search.ts'

const loadPane = () => import('./chat-pane.tsx')
/** Loads after the list: the first row appears sooner. */
const ChatPane = lazy(async () => ({ default: (await loadPane()).ChatPane }))

const ToastPlace = lazy(async () => ({ default: (await import('../../ui/toast.tsx')).ToastPlace }))
const NoChat = lazy(async () => ({ default: (await import('./no-chat.tsx')).NoChat }))

export function InboxPage() {
  const workspace = useHere()
  const { filter, chat, go } = useInboxPlace(workspace.id)
  useInboxKeys({ filter, chat, go })
  const { data: counts } = useQuery(countsQuery(workspace.id, filter.account_id))
  useEffect(() => {
    void loadPane()
  }, [])
  useTitle(`${counts?.unread ? `(${counts.unread}) ` : ''}Inbox`)
  return (
    <div
      data-own-bar
      className={`grid h-dvh grid-cols-[minmax(0,1fr)] bg-surface min-[761px]:grid-cols-[300px_minmax(0,1fr)]
        min-[1181px]:grid-cols-[326px_minmax(0,1fr)_278px]`}
    >
      <ChatList workspace={workspace} filter={filter} chat={chat} counts={counts} go={go} />
      {chat ? (
        <Suspense fallback={<div />}>
          <ChatPane key={`${chat.account_id} ${chat.chat_id}`} chat={chat} workspace={workspace} go={go} />
        </Suspense>
      ) : (
        <Suspense fallback={<div />}>
          <NoChat />
        </Suspense>
      )}
      <Suspense fallback={null}>
        <ToastPlace />
      </Suspense>
      <KeyHelp />
    </div>
  )
}

interface KeyPlace {
  filter: ListFilter
  chat: ChatRef | undefined
  go: Go
}

/** Some browsers open a list only after a click; then the arrow keys choose. */
function openList(list: HTMLSelectElement | null): void {
  list?.focus()
  try {
    list?.showPicker()
  } catch {
    // The list has the focus.
  }
}

function useInboxKeys({ filter, chat, go }: KeyPlace): void {
  const client = useQueryClient()
  const here = {
    ...(filter.view !== 'all' && { view: filter.view }),
    ...(filter.account_id !== undefined && { account: filter.account_id }),
  }
  const isOpen = (row: InboxChat) => row.account_id === chat?.account_id && row.id === chat.chat_id
  /** The chat this many rows further down the list. */
  const find = (step: number) => {
    const chats = client.getQueryData(inboxQuery(filter).queryKey)?.chats ?? []
    const at = chats.findIndex(isOpen)
    return at < 0 ? chats[0] : chats[at + step]
  }
  const open = (row: InboxChat | undefined) => row && go({ ...here, chat: row.id, of: row.account_id })
  const unreadOf = () => (chat ? (client.getQueryData(chatQuery(chat).queryKey)?.chat.unread_count ?? 0) : 0)
  const mark = (marked: ChatRef, unread: boolean) => {
    const before = unreadOf()
    void import('../../data/chat-changes.ts').then(({ markRead }) => markRead(marked, { unread, before }))
  }
  const actions: KeyActions = {
    j: () => open(find(1)),
    k: () => open(find(-1)),
    z: () => undoLast(),
    ...(chat && {
      Escape: () => go(here),
      e: () => {
        const next = find(1)
        mark(chat, false)
        open(next)
      },
      u: () => mark(chat, true),
      r: () => document.querySelector<HTMLElement>('[data-composer]')?.focus(),
      n: () => document.querySelector<HTMLElement>('[data-note]')?.click(),
      m: () => openList(document.querySelector('[data-move]')),
      '/': () => document.querySelector<HTMLElement>('[data-replies]')?.click(),
    }),
  }
  useKeys(actions)
  const next = chat && find(1)
  const [account_id, chat_id] = [next?.account_id, next?.id]
  useEffect(() => {
    if (account_id === undefined || chat_id === undefined) return
    prefetchChat(client, { workspace_id: filter.workspace_id, account_id, chat_id })
  }, [client, filter.workspace_id, account_id, chat_id])
}

/** What the address says. */
function useInboxPlace(workspace_id: string) {
  const { view = 'all', account, chat, of } = useSearch({ from: '/inside/w/$workspace_id/inbox' })
  const filter = useMemo<ListFilter>(
    () => ({ workspace_id, view, account_id: account }),
    [workspace_id, view, account],
  )
  const open = useMemo<ChatRef | undefined>(
    () =>
      chat !== undefined && of !== undefined ? { workspace_id, account_id: of, chat_id: chat } : undefined,
    [workspace_id, chat, of],
  )
  const go = useGo<InboxSearch>('/w/$workspace_id/inbox')
  return { filter, chat: open, go }
}
