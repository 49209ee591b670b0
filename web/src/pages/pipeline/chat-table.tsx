/** The same chats as a table, of every stage or of one: rows of 44 px, of which only the visible ones are rendered. */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useRef } from 'react'
import type { Column } from '../../data/api-types.ts'
import {
  columnsQuery,
  type InboxChat,
  inboxQuery,
  type ListFilter,
  loadMoreChats,
  noteInView,
} from '../../data/chats.ts'
import { chatKey } from '../../data/inbox-list.ts'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Tag } from '../../ui/face.tsx'
import { LastLine, lastAt } from '../../ui/last-line.tsx'
import { useRowWindow } from '../../ui/row-window.ts'
import { type Stage, stageColour, stageName } from '../../ui/stages.ts'
import { Reading } from '../../ui/states.tsx'
import { suppressedMark } from '../../ui/suppressed-mark.ts'
import { useClock } from '../../ui/time.tsx'
import { ChatLink, Unread } from './card.tsx'
import { CardValues } from './card-values.tsx'
import { nameIn, useMoves } from './moves.ts'

interface TableProps {
  filter: ListFilter
  stages: readonly Stage[]
  nameOf: (account_id: string) => string | undefined
  onMove: (chat: InboxChat, anchor: Element) => void
}

const rowPx = 44
/** On a narrow screen the last message and the account are left out, and on most the column values. */
const columns = `grid grid-cols-[minmax(0,1fr)_minmax(0,7rem)_3.5rem] items-center gap-x-3 px-3 min-[761px]:px-5
  min-[761px]:grid-cols-[minmax(8rem,1.2fr)_minmax(7rem,9rem)_minmax(0,2fr)_minmax(0,8rem)_minmax(0,8rem)_4.5rem]
  min-[1100px]:grid-cols-[minmax(8rem,1.2fr)_minmax(6rem,8rem)_minmax(0,1.2fr)_minmax(0,2fr)_minmax(0,6rem)_minmax(0,7rem)_4.5rem]`
const wide = 'hidden min-[761px]:block'
const widest = 'hidden min-[1100px]:block'
const headings = [
  ['Chat', ''],
  ['Stage', ''],
  ['Columns', widest],
  ['Last message', wide],
  ['Account', wide],
  ['Assignee', wide],
  ['When', 'text-right'],
] as const
/** The same list each time, so that rows are not rendered again for it. */
const noColumns: readonly Column[] = []

export function ChatTable({ filter, stages, nameOf, onMove }: TableProps) {
  const query = useQuery(inboxQuery(filter))
  const { data: given = noColumns } = useQuery(columnsQuery(filter.workspace_id))
  const rows = useRows(query.data?.chats, filter)
  const place = useRef<HTMLDivElement>(null)
  const { items, height, first, last } = useRowWindow({ rows, keyOf: chatKey, place, rowPx, overscan: 8 })
  useEffect(() => {
    if (!query.data) return
    noteInView(filter, query.data, rows.slice(first, last + 1))
    if (last >= rows.length - 15) void loadMoreChats(filter)
  }, [filter, query.data, rows, first, last])
  return (
    <div ref={place} className="relative min-h-0 flex-1 overflow-y-auto overscroll-contain">
      <Reading query={query} className="p-3" />
      {query.data && rows.length === 0 && <p className="px-5 py-4 text-muted">No chats here.</p>}
      {rows.length > 0 && (
        <table role="table" aria-label="Chats" aria-rowcount={-1} className="block text-left">
          <thead role="rowgroup" className="sticky top-0 block z-2 border-b border-line bg-surface">
            <tr role="row" className={`${columns} h-9 text-xs text-muted [&>th]:font-medium`}>
              {headings.map(([heading, look]) => (
                <th key={heading} role="columnheader" scope="col" className={look}>
                  {heading}
                </th>
              ))}
            </tr>
          </thead>
          <tbody role="rowgroup" className="relative block" style={{ height }}>
            {items.map(({ index, key, start }) => {
              const chat = rows[index]
              if (!chat) return null
              return (
                <tr
                  key={key}
                  role="row"
                  aria-rowindex={index + 2}
                  data-card={chatKey(chat)}
                  className={`${columns} absolute inset-x-0 h-11 border-b border-line hover:bg-hover
                    has-[a:focus-visible]:outline-2 has-[a:focus-visible]:-outline-offset-2 has-[a:focus-visible]:outline-accent`}
                  style={{ transform: `translateY(${start}px)` }}
                >
                  <Row
                    chat={chat}
                    workspace_id={filter.workspace_id}
                    stages={stages}
                    given={given}
                    account={nameOf(chat.account_id)}
                    onMove={onMove}
                  />
                </tr>
              )
            })}
          </tbody>
        </table>
      )}
    </div>
  )
}

/** With the moves that are not confirmed yet: a row keeps its place, and leaves only if another stage is shown. */
function useRows(chats: readonly InboxChat[] | undefined, { stage_key }: ListFilter): InboxChat[] {
  const moves = useMoves()
  return useMemo(() => {
    const moved = (chats ?? []).map((chat) => moves.get(chatKey(chat))?.chat ?? chat)
    return stage_key === undefined ? moved : moved.filter((chat) => chat.stage_key === stage_key)
  }, [chats, moves, stage_key])
}

interface RowProps extends Pick<TableProps, 'stages' | 'onMove'> {
  chat: InboxChat
  workspace_id: string
  /** The columns of the workspace. */
  given: readonly Column[]
  account: string | undefined
}

function Row({ chat, workspace_id, stages, given, account, onMove }: RowProps) {
  const { short } = useClock()
  const at = lastAt(chat)
  const stage = stageName(stages, chat.stage_key)
  return (
    <>
      <td role="cell" className="flex min-w-0 items-center gap-2.5">
        <ChatLink chat={chat} workspace_id={workspace_id} />
        <Unread chat={chat} />
        {chat.suppressed && (
          <span className="shrink-0 text-xs font-medium text-warn">{suppressedMark(chat)}</span>
        )}
      </td>
      <td role="cell" className="flex min-w-0">
        {stage !== null && chat.stage_key !== null && (
          <button
            type="button"
            data-move
            title="Move to… (M)"
            aria-label={`${stage}. Move ${nameIn(chat.name)} to another stage`}
            onClick={(event) => onMove(chat, event.currentTarget)}
            className="relative z-1 flex h-11 max-w-full items-center rounded-md"
          >
            <Tag colour={stageColour(stages, chat.stage_key)}>{stage}</Tag>
          </button>
        )}
      </td>
      <td role="cell" className={widest}>
        <span className="flex h-5.5 flex-wrap gap-x-1.5 overflow-hidden text-xs leading-5.5">
          <CardValues values={chat.columns} columns={given} />
        </span>
      </td>
      <td role="cell" className={`${wide} truncate text-soft`}>
        <LastLine chat={chat} calm cut />
      </td>
      <td role="cell" className={`${wide} truncate text-muted`}>
        <ExactLine text={account ?? ''} cut />
      </td>
      <td role="cell" className={`${wide} truncate text-muted`}>
        <ExactLine text={chat.assignee?.name ?? ''} cut />
      </td>
      <td role="cell" className="truncate text-right text-xs text-muted">
        {at !== null && <time dateTime={at}>{short(at)}</time>}
      </td>
    </>
  )
}
