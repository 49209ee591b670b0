/** The inbox: every chat of every account in one list, the open one beside it, and what is known about it. The address is the state. */
import { useQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useMemo } from 'react'
import { type ChatRef, countsQuery, type ListFilter } from '../../data/chats.ts'
import { useGo, useHere } from '../../data/place.ts'
import { KeyHelp } from '../../ui/key-help.tsx'
import { useTitle } from '../../ui/title.ts'
import { ChatList } from './chat-list.tsx'
import type { InboxSearch } from './inbox-search.ts'

const loadPane = () => import('./chat-pane.tsx')
/** Loads after the list: the first row appears sooner. */
const ChatPane = lazy(async () => ({ default: (await loadPane()).ChatPane }))

const ToastPlace = lazy(async () => ({ default: (await import('../../ui/toast.tsx')).ToastPlace }))
const NoChat = lazy(async () => ({ default: (await import('./no-chat.tsx')).NoChat }))

export function InboxPage() {
  const workspace = useHere()
  const { filter, chat, go } = useInboxPlace(workspace.id)
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
