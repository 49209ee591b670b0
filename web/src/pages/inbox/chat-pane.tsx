/** The open chat: who it is, what was said, the composer, and at the side what is known about it. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ChevronLeft } from 'lucide-react'
import { Refused } from '../../api.ts'
import { ExactLine } from '../../exact-text.tsx'
import type { Workspace } from '../../queries.ts'
import { buttonClass } from '../../ui/button.tsx'
import { accountsQuery } from '../accounts/account-queries.ts'
import { Composer } from './composer.tsx'
import type { Go } from './inbox.tsx'
import { type ChatDetail, type ChatRef, chatQuery } from './inbox-queries.ts'
import { TimelineView } from './timeline.tsx'

interface PaneProps {
  chat: ChatRef
  workspace: Workspace
  go: Go
}

export function ChatPane({ chat, workspace }: PaneProps) {
  const query = useQuery(chatQuery(chat))
  const { data: accounts } = useQuery(accountsQuery(workspace.id, false))
  const account = accounts?.accounts.find(({ id }) => id === chat.account_id)
  const isMissing = query.error instanceof Refused && query.error.status === 404
  if (isMissing) return <MissingChat workspace={workspace} />
  return (
    <>
      <section aria-label="Chat" className="flex min-h-0 min-w-0 flex-col">
        <Head chat={query.data?.chat} workspace={workspace} account={account?.name} />
        <TimelineView chat={chat} unread={query.data?.chat.unread_count} />
        <Composer chat={chat} workspace={workspace} account={account} name={query.data?.chat.name ?? ''} />
      </section>
      <aside
        aria-label="About this chat"
        className="hidden min-h-0 overflow-y-auto border-l border-line p-4 min-[1181px]:block"
      />
    </>
  )
}

interface HeadProps {
  chat: ChatDetail | undefined
  workspace: Workspace
  account: string | undefined
}

function Head({ chat, workspace, account }: HeadProps) {
  const where = chat && [chat.username !== null && `@${chat.username}`, account && `with ${account}`]
  return (
    <header className="flex h-[61px] shrink-0 items-center gap-2 border-b border-line pl-2 pr-2.5 min-[761px]:pl-4.5">
      <Link
        to="/w/$workspace_id/inbox"
        params={{ workspace_id: workspace.id }}
        search={(before) => {
          const { chat: _, of: __, message: ___, ...rest } = before as Record<string, string>
          return rest
        }}
        aria-label="Back to the chats"
        className="grid size-11 shrink-0 place-items-center rounded-lg text-soft hover:bg-hover min-[761px]:hidden"
      >
        <ChevronLeft aria-hidden className="size-5" />
      </Link>
      <div className="min-w-0 flex-1">
        <h2 tabIndex={-1} className="truncate text-base font-semibold">
          {chat && <ExactLine text={chat.name} empty="No name" />}
        </h2>
        <p className="truncate text-xs text-muted">{where?.filter(Boolean).join(', ')}</p>
      </div>
    </header>
  )
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
