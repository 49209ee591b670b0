/** The inbox: every chat of every account in one list, the open one beside it, and what is known about it. The address is the state. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useCallback, useEffect, useMemo } from 'react'
import { forgetOthers } from '../../outbox.ts'
import { useSession, useWorkspace } from '../../place.ts'
import type { Workspace } from '../../queries.ts'
import { Missing } from '../stopped.tsx'
import { ChatList } from './chat-list.tsx'
import { NoChat } from './no-chat.tsx'
import { type ChatRef, countsQuery, type ListFilter } from './inbox-queries.ts'
import { startOutbox } from './sending.ts'

const loadPane = () => import('./chat-pane.tsx')
/** Loads after the list: the first row appears sooner. */
const ChatPane = lazy(async () => ({ default: (await loadPane()).ChatPane }))

export interface InboxSearch {
  view?: 'unread' | 'unanswered' | 'mine'
  /** Only chats of this account. */
  account?: string
  /** The open chat, and the account it belongs to. */
  chat?: string
  of?: string
  /** The message to show first. */
  message?: string
}

export function InboxPage() {
  const workspace = useWorkspace()
  return workspace ? <Inbox key={workspace.id} workspace={workspace} /> : <Missing />
}

function Inbox({ workspace }: { workspace: Workspace }) {
  const { user } = useSession()
  const { filter, chat, go } = useInboxPlace(workspace.id)
  const { data: counts } = useQuery(countsQuery(workspace.id, filter.account_id))
  useEffect(() => {
    void loadPane()
    void forgetOthers(user.id)
    return startOutbox(user.id)
  }, [user.id])
  useEffect(() => {
    document.title = `${counts?.unread ? `(${counts.unread}) ` : ''}Inbox · Parley`
  }, [counts?.unread])
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
        <NoChat />
      )}
    </div>
  )
}

export type Go = (search: InboxSearch) => void

/** What the address says. */
function useInboxPlace(workspace_id: string) {
  const { view = 'all', account, chat, of } = useSearch({ from: '/inside/w/$workspace_id/inbox' })
  const navigate = useNavigate()
  const filter = useMemo<ListFilter>(
    () => ({ workspace_id, view, account_id: account }),
    [workspace_id, view, account],
  )
  const open = useMemo<ChatRef | undefined>(
    () =>
      chat !== undefined && of !== undefined ? { workspace_id, account_id: of, chat_id: chat } : undefined,
    [workspace_id, chat, of],
  )
  const go = useCallback<Go>(
    (search) =>
      void navigate({ to: '/w/$workspace_id/inbox', params: { workspace_id }, search, resetScroll: false }),
    [navigate, workspace_id],
  )
  return { filter, chat: open, go }
}
