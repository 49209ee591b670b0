/** Who the open chat is with, and what can be done with it. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ChevronLeft, Info, Mail, MailOpen } from 'lucide-react'
import { markRead, moveChat } from '../../data/chat-changes.ts'
import { type ChatDetail, type ChatRef, stagesQuery } from '../../data/chats.ts'
import type { PresentUser } from '../../data/live/presence.ts'
import type { Workspace } from '../../data/queries.ts'
import { buttonClass } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Tag } from '../../ui/face.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Keys } from '../../ui/key-cap.tsx'
import { Select } from '../../ui/select.tsx'
import { stageColour } from '../../ui/stages.ts'
import { SuppressedLine } from './chat-suppression.tsx'

interface HeadProps {
  chat: ChatRef
  detail: ChatDetail | undefined
  /** As the list has it, before the chat itself is read. */
  name: string | undefined
  workspace: Workspace
  account: string | undefined
  /** Who else has the chat open. */
  others: readonly PresentUser[]
  onAbout: () => void
}

export function Head({ chat, detail, name, workspace, account, others, onAbout }: HeadProps) {
  const where = detail && [detail.username !== null && `@${detail.username}`, account && `with ${account}`]
  const isUnread = (detail?.unread_count ?? 0) > 0
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
          {name !== undefined && <ExactLine text={name} empty="No name" cut />}
        </h2>
        <p className="flex gap-1 text-xs whitespace-nowrap text-muted">
          <SuppressedLine chat={chat} /> <ExactLine text={where?.filter(Boolean).join(', ') ?? ''} cut />
        </p>
      </div>
      <Others others={others} />
      {detail && <Move chat={chat} detail={detail} workspace={workspace} />}
      <IconButton
        label={isUnread ? 'Mark read' : 'Mark unread'}
        keys={isUnread ? 'E' : 'U'}
        disabled={!detail}
        onClick={() => void markRead(chat, { unread: !isUnread, before: detail?.unread_count ?? 0 })}
      >
        {isUnread ? <MailOpen aria-hidden className="size-4" /> : <Mail aria-hidden className="size-4" />}
      </IconButton>
      <span className="min-[1181px]:hidden">
        <IconButton label="About this chat" onClick={onAbout}>
          <Info aria-hidden className="size-4" />
        </IconButton>
      </span>
    </header>
  )
}

function Others({ others }: Pick<HeadProps, 'others'>) {
  const typing = others.find(({ state }) => state === 'typing')
  const shown = typing ?? others[0]
  return (
    <p role="status" className="flex max-w-28 gap-1 text-xs whitespace-nowrap text-soft">
      {shown && (
        <>
          <ExactLine text={shown.name} cut />{' '}
          <span className="min-w-0 truncate">
            {typing ? 'is typing' : 'has it open'}
            {others.length > 1 && `, and ${others.length - 1} more`}
          </span>
        </>
      )}
    </p>
  )
}

/** The stage, and where the chat can go from there. */
function Move({ chat, detail, workspace }: Pick<HeadProps, 'chat' | 'workspace'> & { detail: ChatDetail }) {
  const { data: stages = [] } = useQuery(stagesQuery(workspace.id))
  const current = stages.find(({ key }) => key === detail.stage_key)
  if (!current) return null
  return (
    <>
      <span className="hidden max-w-28 min-[500px]:inline min-[1181px]:hidden">
        <Tag colour={stageColour(stages, current.key)}>{current.label}</Tag>
      </span>
      {/* A native list over the button: it loads nothing, and works with every keyboard, finger and screen reader. */}
      <span
        className={`relative ${buttonClass({ size: 'small' })} has-focus-visible:outline-2 has-focus-visible:outline-accent`}
      >
        <span aria-hidden>Move</span> <Keys keys="M" />
        <Select
          data-move
          aria-label="Move to a stage"
          value=""
          options={[
            ['', 'Move to…', true],
            ...stages
              .filter(({ hidden, key }) => !hidden && key !== current.key)
              .map(({ key, label }) => [key, label] as const),
          ]}
          onChange={(key) => {
            const to = stages.find((stage) => stage.key === key)
            if (to) void moveChat(chat, { from: current, to })
          }}
          className="absolute inset-0 cursor-pointer opacity-0"
        />
      </span>
    </>
  )
}
