/** One chat as a card: who, what they said last, and what needs a person. It opens the chat in the inbox. */
import { Link } from '@tanstack/react-router'
import { MoveRight } from 'lucide-react'
import { memo, type PointerEvent } from 'react'
import type { Column } from '../../data/api-types.ts'
import type { InboxChat } from '../../data/chats.ts'
import { chatKey } from '../../data/inbox-list.ts'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Face } from '../../ui/face.tsx'
import { LastLine, lastAt } from '../../ui/last-line.tsx'
import { suppressedMark } from '../../ui/suppressed-mark.ts'
import { useClock } from '../../ui/time.tsx'
import { CardValues } from './card-values.tsx'
import { nameIn } from './moves.ts'

interface CardProps {
  chat: InboxChat
  workspace_id: string
  account: string | undefined
  columns: readonly Column[]
  /** Opens "Move to…" beside the card. */
  onMove: (chat: InboxChat, anchor: Element) => void
  onGrab?: (event: PointerEvent, chat: InboxChat) => void
  look?: string
}

export const Card = memo(function Card({
  chat,
  workspace_id,
  account,
  columns,
  onMove,
  onGrab,
  look = '',
}: CardProps) {
  const { short } = useClock()
  const at = lastAt(chat)
  return (
    <article
      data-card={chatKey(chat)}
      onPointerDown={onGrab && ((event) => onGrab(event, chat))}
      className={`group relative grid gap-1.25 rounded-[10px] bg-surface px-2.75 pt-2.5 pb-2 shadow-card ring-1 ring-inset ring-line
        hover:ring-line-strong has-[a:focus-visible]:outline-2 has-[a:focus-visible]:outline-accent ${look}`}
    >
      <div className="flex min-w-0 items-center gap-2">
        <Face name={chat.name} of={chatKey(chat).replace(' ', '')} size="small" />
        <ChatLink chat={chat} workspace_id={workspace_id} />
        <Unread chat={chat} />
        {at !== null && (
          <time dateTime={at} className="shrink-0 text-xs text-muted">
            {short(at)}
          </time>
        )}
      </div>
      <p className="line-clamp-2 min-h-5 text-soft [overflow-wrap:anywhere]">
        <LastLine chat={chat} calm />
      </p>
      <div className="flex min-h-5 min-w-0 items-end gap-1.5 text-xs text-muted pointer-coarse:min-h-11 pointer-coarse:items-center">
        <span className="flex min-w-0 flex-1 flex-wrap items-center gap-x-1.5 gap-y-1">
          {chat.suppressed && <span className="font-medium text-warn">{suppressedMark(chat)}</span>}
          <CardValues values={chat.columns} columns={columns} />
          {chat.assignee && (
            <span className="min-w-0 truncate">
              <span className="sr-only">Assigned to </span>
              <ExactLine text={chat.assignee.name} cut />
            </span>
          )}
        </span>
        <span className="max-w-1/2 shrink-0 truncate text-right leading-5.5">
          <ExactLine text={account ?? ''} cut />
        </span>
        <MoveButton chat={chat} onMove={onMove} />
      </div>
    </article>
  )
})

/** The whole card or row is clickable. */
export function ChatLink({ chat, workspace_id }: Pick<CardProps, 'chat' | 'workspace_id'>) {
  return (
    <Link
      to="/w/$workspace_id/inbox"
      params={{ workspace_id }}
      search={{ chat: chat.id, of: chat.account_id }}
      preload={false}
      draggable={false}
      className={`min-w-0 flex-1 truncate outline-none after:absolute after:inset-0 after:rounded-[10px]
        ${chat.unread_count > 0 ? 'font-semibold' : 'font-medium'}`}
    >
      <ExactLine text={chat.name} empty="No name" cut />
    </Link>
  )
}

export function Unread({ chat }: Pick<CardProps, 'chat'>) {
  if (chat.unread_count === 0) return null
  return (
    <span title="Unread" className="size-2 shrink-0 rounded-full bg-accent ring-3 ring-accent/20">
      <span className="sr-only">{chat.unread_count} unread</span>
    </span>
  )
}

/** Hidden until the card has the pointer or the focus; always shown on touch screens. */
function MoveButton({ chat, onMove }: Pick<CardProps, 'chat' | 'onMove'>) {
  return (
    <button
      type="button"
      data-move
      title="Move to… (M)"
      aria-label={`Move ${nameIn(chat.name)} to another stage`}
      onClick={(event) => onMove(chat, event.currentTarget)}
      className={`absolute right-1.5 bottom-1.5 z-1 grid size-6.5 place-items-center rounded-md bg-surface text-muted opacity-0 hover:bg-hover hover:text-ink
        focus-visible:opacity-100 group-focus-within:opacity-100 group-hover:opacity-100 pointer-coarse:static pointer-coarse:-my-2
        pointer-coarse:-mr-2.5 pointer-coarse:size-11 pointer-coarse:shrink-0 pointer-coarse:opacity-100`}
    >
      <MoveRight aria-hidden className="size-4" />
    </button>
  )
}
