/** What is known about a chat: stage, columns, assignee and notes, edited in place, and its campaigns. */
import { useQuery } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import type { ReactNode } from 'react'
import { assignChat, moveChat } from '../../data/chat-changes.ts'
import {
  assigneesQuery,
  type ChatDetail,
  type ChatRef,
  columnsQuery,
  type InboxChat,
  stagesQuery,
  type TimelineNote,
} from '../../data/chats.ts'
import { useSession } from '../../data/place.ts'
import type { Workspace } from '../../data/queries.ts'
import { AsApi } from '../../ui/as-api.tsx'
import type { ApiRequest } from '../../ui/as-api-text.ts'
import { Button } from '../../ui/button.tsx'
import { ExactLine, ExactText } from '../../ui/exact-text.tsx'
import { Face } from '../../ui/face.tsx'
import { Keys } from '../../ui/key-cap.tsx'
import { PersonLink } from '../../ui/person-link.tsx'
import { Select } from '../../ui/select.tsx'
import { stageColour } from '../../ui/stages.ts'
import { ClockTime, useClock } from '../../ui/time.tsx'
import { ChatCampaigns } from './chat-campaigns.tsx'
import { Suppression } from './chat-suppression.tsx'
import { ColumnField, plainField, tagField } from './column-field.tsx'
import { DeleteNote } from './note-item.tsx'

interface PanelProps {
  chat: ChatRef
  detail: ChatDetail
  /** Undefined while it is not known. */
  assignee: InboxChat['assignee'] | undefined
  notes: readonly TimelineNote[]
  workspace: Workspace
  onNote: () => void
}

export function SidePanel({ chat, detail, assignee, notes, workspace, onNote }: PanelProps) {
  const { data: columns = [] } = useQuery(columnsQuery(workspace.id))
  return (
    <div className="grid content-start gap-4.5">
      <Person detail={detail} />
      {detail.kind === 'private' && (
        <div>
          <PersonLink workspace_id={workspace.id} q={detail.id} />
        </div>
      )}
      <dl className="grid grid-cols-[84px_minmax(0,1fr)] items-center gap-x-2 gap-y-0.5">
        <StageField chat={chat} detail={detail} workspace={workspace} />
        <AssigneeField chat={chat} assignee={assignee} workspace={workspace} />
        {columns.map((column) => (
          <Property key={column.id} name={<ExactLine text={column.name} cut />}>
            <ColumnField
              chat={chat}
              column={column}
              value={detail.columns.find(({ column_id }) => column_id === column.id)?.value ?? []}
            />
          </Property>
        ))}
      </dl>
      <Suppression chat={chat} detail={detail} workspace={workspace} />
      <ChatCampaigns chat={chat} />
      <section>
        <div className="mb-1.5 flex items-center justify-between">
          <h2 className="font-semibold">Notes</h2>
          <Button kind="quiet" size="small" onClick={onNote}>
            <Plus aria-hidden className="size-3.5" />
            Add <Keys keys="N" />
          </Button>
        </div>
        {notes.length === 0 && <p className="text-muted">Only your team sees notes.</p>}
        {notes.length > 0 && (
          <ul aria-label="Notes" className="grid gap-1.5">
            {notes.toReversed().map((note) => (
              <Jot key={note.id} note={note} chat={chat} />
            ))}
          </ul>
        )}
      </section>
      <div className="-ml-2.5">
        <AsApi of="This chat" requests={requestsOf(chat, detail)} />
      </div>
    </div>
  )
}

function requestsOf({ account_id, chat_id }: ChatRef, { stage_key }: ChatDetail): readonly ApiRequest[] {
  const own = { account_id, chat_id }
  const of = `account_id=${encodeURIComponent(account_id)}`
  return [
    { does: 'Read its messages', method: 'GET', path: `/chats/${chat_id}/messages?${of}` },
    { does: 'Write in it', method: 'POST', path: '/messages', body: { ...own, text: 'Hello' }, once: true },
    { does: 'Read it with its stage and columns', method: 'GET', path: `/chats/${chat_id}?${of}` },
    ...(stage_key === null
      ? []
      : [
          {
            does: 'Move it to a stage',
            method: 'POST',
            path: '/pipeline/move',
            body: { ...own, stage_key },
          } as const,
        ]),
  ]
}

function Person({ detail }: { detail: ChatDetail }) {
  return (
    <div className="flex min-w-0 items-center gap-3">
      <Face name={detail.name} of={`${detail.account_id}${detail.id}`} size="large" />
      <div className="min-w-0">
        <p className="line-clamp-2 text-base/5 font-semibold [overflow-wrap:anywhere]">
          <ExactLine text={detail.name} empty="No name" />
        </p>
        {detail.username !== null && (
          <p className="truncate text-xs text-muted">
            <ExactLine text={`@${detail.username}`} cut />
          </p>
        )}
        {detail.last_message_at !== null && (
          <p className="text-xs text-muted">
            Last message <ClockTime at={detail.last_message_at} />
          </p>
        )}
      </div>
    </div>
  )
}

function Property({ name, children }: { name: ReactNode; children: ReactNode }) {
  return (
    <>
      <dt className="truncate text-muted">{name}</dt>
      <dd className="flex min-h-7 min-w-0 items-center">{children}</dd>
    </>
  )
}

function StageField({ chat, detail, workspace }: Pick<PanelProps, 'chat' | 'detail' | 'workspace'>) {
  const { data: stages = [] } = useQuery(stagesQuery(workspace.id))
  const current = stages.find(({ key }) => key === detail.stage_key)
  if (stages.length === 0 || !current) return null
  return (
    <Property name="Stage">
      <Select
        data-stage
        aria-label="Stage"
        value={current.key}
        options={stages
          .filter(({ hidden, key }) => !hidden || key === current.key)
          .map(({ key, label }) => [key, label])}
        onChange={(key) => {
          const to = stages.find((stage) => stage.key === key)
          if (to) void moveChat(chat, { from: current, to })
        }}
        className={tagField(stageColour(stages, current.key))}
      />
    </Property>
  )
}

function AssigneeField({ chat, assignee, workspace }: Pick<PanelProps, 'chat' | 'assignee' | 'workspace'>) {
  const { user } = useSession()
  const { data: assignees = [] } = useQuery(assigneesQuery(workspace.id))
  // A member who has left meanwhile stays visible until someone else has the chat.
  const isListed = !assignee || assignees.some(({ user_id }) => user_id === assignee.user_id)
  const people = isListed ? assignees : [assignee, ...assignees]
  return (
    <Property name="Assignee">
      <Select
        data-assignee
        aria-label="Assignee"
        value={assignee?.user_id ?? ''}
        disabled={assignee === undefined}
        options={[
          ['', 'Nobody'],
          ...people.map(
            ({ user_id, name }) => [user_id, user_id === user.id ? `${name} (you)` : name] as const,
          ),
        ]}
        onChange={(id) => {
          const to = people.find(({ user_id }) => user_id === id) ?? null
          void assignChat(chat, { from: assignee ?? null, to })
        }}
        className={plainField}
      />
    </Property>
  )
}

function Jot({ note, chat }: { note: TimelineNote; chat: ChatRef }) {
  const { day, clock } = useClock()
  return (
    <li className="flex gap-1 rounded-[10px] px-2.75 py-2 ring-1 ring-inset ring-line">
      <div className="min-w-0 flex-1">
        <div dir="auto">
          <ExactText text={note.text} />
        </div>
        <p className="mt-0.5 flex text-xs whitespace-pre text-muted">
          <ExactLine text={note.author.name} empty="A former member" cut />
          <span className="shrink-0">
            , {day(note.at)} {clock(note.at)}
          </span>
        </p>
      </div>
      {note.deletable && <DeleteNote note={note} chat={chat} />}
    </li>
  )
}
