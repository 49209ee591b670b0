/** The open chat: who it is, what was said, the composer, and at the side what is known about it. */

import { type QueryClient, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { accountsQuery } from '../../data/accounts.ts'
import { Refused } from '../../data/api.ts'
import { assigneeKey } from '../../data/chat-changes.ts'
import { type ChatRef, chatQuery, type InboxChat, timelineQuery } from '../../data/chats.ts'
import type { InboxList } from '../../data/inbox-list.ts'
import { keys } from '../../data/keys.ts'
import { usePresence } from '../../data/live/presence.ts'
import type { Workspace } from '../../data/queries.ts'
import { buttonClass } from '../../ui/button.tsx'
import { LazyDialog } from '../../ui/lazy-dialog.tsx'
import { Head } from './chat-head.tsx'
import type { RefusedFile } from './chosen-files.ts'
import { Composer } from './composer.tsx'
import { DropTarget } from './drop-target.tsx'
import type { Go } from './inbox-search.ts'
import { SidePanel } from './side-panel.tsx'
import { TimelineView } from './timeline.tsx'
import { useAnswer } from './use-answer.ts'

interface PaneProps {
  chat: ChatRef
  workspace: Workspace
  go: Go
}

export function ChatPane({ chat, workspace }: PaneProps) {
  const query = useQuery(chatQuery(chat))
  const { data: accounts } = useQuery(accountsQuery(workspace.id))
  const { data: timeline } = useInfiniteQuery({ ...timelineQuery(chat), enabled: false })
  const row = rowOf(useQueryClient(), chat)
  const { data: set } = useQuery<InboxChat['assignee']>({ queryKey: assigneeKey(chat), enabled: false })
  // For a chat that the list has not reached, as it was set here.
  const assignee = row === undefined ? set : row.assignee
  const { others, typed } = usePresence(chat)
  const answer = useAnswer(chat)
  const [mode, setMode] = useState<'answer' | 'note'>('answer')
  const [refused, setRefused] = useState<readonly RefusedFile[]>([])
  const [isAboutOpen, setAboutOpen] = useState(false)
  const account = accounts?.accounts.find(({ id }) => id === chat.account_id)
  const detail = query.data?.chat
  if (query.error instanceof Refused && query.error.status === 404)
    return <MissingChat workspace={workspace} />
  const notes = (timeline?.pages ?? []).flatMap(({ items }) => items.filter((item) => item.type === 'note'))
  const panel = detail && (
    <SidePanel
      chat={chat}
      detail={detail}
      assignee={assignee}
      notes={notes}
      workspace={workspace}
      onNote={() => {
        setAboutOpen(false)
        setMode('note')
      }}
    />
  )
  return (
    <>
      <DropTarget
        answer={answer}
        onAttached={(files) => {
          setRefused(files)
          setMode('answer')
        }}
      >
        <Head
          chat={chat}
          detail={detail}
          name={detail?.name ?? row?.name}
          workspace={workspace}
          account={account?.name}
          others={others}
          onAbout={() => setAboutOpen(true)}
        />
        <TimelineView chat={chat} unread={detail?.unread_count} />
        <Composer
          chat={chat}
          answer={answer}
          workspace={workspace}
          account={account}
          name={detail?.name ?? ''}
          mode={mode}
          setMode={setMode}
          refused={refused}
          setRefused={setRefused}
          onTyped={typed}
        />
      </DropTarget>
      <aside
        aria-label="About this chat"
        className="hidden min-h-0 overflow-y-auto border-l border-line px-4 py-4.5 min-[1181px]:block"
      >
        {panel}
      </aside>
      <LazyDialog open={isAboutOpen} onClose={() => setAboutOpen(false)} title="About this chat">
        <div className="-mx-6 min-h-0 overflow-y-auto px-6 pb-1">{panel}</div>
      </LazyDialog>
    </>
  )
}

/** The chat as a list has it. */
function rowOf(client: QueryClient, chat: ChatRef): InboxChat | undefined {
  const lists = client.getQueriesData<InboxList>({ queryKey: keys.inbox(chat.workspace_id) })
  return lists
    .flatMap(([, list]) => list?.chats ?? [])
    .find(({ account_id, id }) => account_id === chat.account_id && id === chat.chat_id)
}

function MissingChat({ workspace }: { workspace: Workspace }) {
  return (
    <section
      aria-label="Chat"
      className="grid place-content-center justify-items-center p-8 text-center min-[1181px]:col-span-2"
    >
      <h2 className="text-base font-semibold">Chat not found</h2>
      <p className="mt-1 max-w-[40ch] text-muted">
        The link may be old, or the chat belongs to an account of another workspace.
      </p>
      <Link
        to="/w/$workspace_id/inbox"
        params={{ workspace_id: workspace.id }}
        className={`mt-5 ${buttonClass()}`}
      >
        Show all chats
      </Link>
    </section>
  )
}
