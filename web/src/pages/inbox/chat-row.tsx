/** One chat in the list: three lines in 76 px, whatever its name and text are. */

import { useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { UserX } from 'lucide-react'
import { memo } from 'react'
import { type InboxChat, prefetchChat } from '../../data/chats.ts'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Face } from '../../ui/face.tsx'
import { LastLine, lastAt } from '../../ui/last-line.tsx'
import { StageDot } from '../../ui/stage-dot.tsx'
import { type Stage, stageName } from '../../ui/stages.ts'
import { suppressedMark } from '../../ui/suppressed-mark.ts'
import { useClock } from '../../ui/time.tsx'

interface RowProps {
  chat: InboxChat
  workspace_id: string
  selected: boolean
  stages: readonly Stage[]
  account: string | undefined
}

export const ChatRow = memo(function ChatRow({ chat, workspace_id, selected, stages, account }: RowProps) {
  const isUnread = chat.unread_count > 0
  const { short } = useClock()
  const at = lastAt(chat)
  const client = useQueryClient()
  return (
    <Link
      to="/w/$workspace_id/inbox"
      params={{ workspace_id }}
      search={(before) => {
        const { message: _, ...rest } = before as { message?: string }
        return { ...rest, chat: chat.id, of: chat.account_id }
      }}
      resetScroll={false}
      preload={false}
      onPointerEnter={() =>
        prefetchChat(client, { workspace_id, account_id: chat.account_id, chat_id: chat.id })
      }
      activeOptions={{ exact: true }}
      aria-current={selected ? 'true' : undefined}
      data-chat={`${chat.account_id} ${chat.id}`}
      className={`grid h-full grid-cols-[36px_minmax(0,1fr)] gap-x-2.75 border-b border-line py-2 pl-3.25 pr-3.5 -outline-offset-2
        ${selected ? 'bg-selected shadow-[inset_2px_0_0_var(--accent)]' : 'hover:bg-hover'}`}
    >
      <span className="row-span-3 mt-0.5">
        <Face name={chat.name} of={`${chat.account_id}${chat.id}`} />
      </span>
      <span className="flex min-w-0 items-baseline gap-2">
        <span className={`min-w-0 flex-1 truncate text-ink ${isUnread ? 'font-semibold' : ''}`}>
          <ExactLine text={chat.name} empty="No name" cut />
        </span>
        {at !== null && (
          <time dateTime={at} className="shrink-0 text-xs text-muted">
            {short(at)}
          </time>
        )}
      </span>
      <span className={`flex min-w-0 items-center gap-2 ${isUnread ? 'text-ink' : 'text-muted'}`}>
        <span className="min-w-0 flex-1 truncate">
          <LastLine chat={chat} cut />
        </span>
        {isUnread && (
          <span className="min-w-4.5 shrink-0 rounded-full bg-accent px-1.25 text-center text-[11px]/[18px] font-semibold text-accent-ink">
            {chat.unread_count > 999 ? '999+' : chat.unread_count}
            <span className="sr-only"> unread</span>
          </span>
        )}
      </span>
      <span className="flex min-w-0 items-center gap-1.75 text-xs text-muted">
        {chat.suppressed && (
          <span className="shrink-0 font-medium text-warn">
            <UserX aria-hidden className="-mt-0.5 mr-0.5 inline size-3.5" />
            {suppressedMark(chat)}
          </span>
        )}
        {chat.stage_key !== null && <StageDot stages={stages} of={chat.stage_key} />}
        <span className="min-w-0 flex-1 truncate">
          <ExactLine text={[stageName(stages, chat.stage_key), account].filter(Boolean).join(', ')} cut />
        </span>
        {chat.assignee && (
          <span className="max-w-24 shrink-0 truncate">
            <span className="sr-only">Assigned to </span>
            <ExactLine text={chat.assignee.name} cut />
          </span>
        )}
      </span>
    </Link>
  )
})
