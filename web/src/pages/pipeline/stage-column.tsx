/** One stage of the board: its name, how many chats it has, and its cards, of which only the visible ones are rendered. */
import { useQuery } from '@tanstack/react-query'
import { Ellipsis } from 'lucide-react'
import { type PointerEvent, useEffect, useMemo, useRef, useState } from 'react'
import type { Column } from '../../data/api-types.ts'
import {
  type InboxChat,
  inboxQuery,
  type ListFilter,
  listName,
  loadMoreChats,
  noteInView,
} from '../../data/chats.ts'
import { chatKey } from '../../data/inbox-list.ts'
import type { BoardStage } from '../../data/pipeline.ts'
import { ExactLine } from '../../ui/exact-text.tsx'
import { colourClass } from '../../ui/face.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { useRowWindow } from '../../ui/row-window.ts'
import { cardsOf, countedText, type Moves } from './board-view.ts'
import { Card } from './card.tsx'

interface ColumnProps {
  stage: BoardStage
  colour: string
  filter: ListFilter
  moves: Moves
  /** Of the account, if there are several. */
  nameOf: (account_id: string) => string | undefined
  columns: readonly Column[]
  /** The only one that a narrow screen shows. */
  current: boolean
  /** A card is held over this stage. */
  slot: boolean
  /** The card that is being dragged. */
  dragged: string | undefined
  onMove: (chat: InboxChat, anchor: Element) => void
  onGrab: (event: PointerEvent, chat: InboxChat) => void
  onEdit: (() => void) | undefined
}

const isShort = (place: Element) => place.clientHeight > 0 && place.scrollHeight <= place.clientHeight

const gapPx = 6
const guessPx = 104

export function StageColumn(props: ColumnProps) {
  const { stage, colour, filter, current, onEdit } = props
  return (
    <section
      data-stage={stage.key}
      aria-label={stage.label}
      className={`min-h-0 min-w-0 flex-col min-[761px]:flex min-[761px]:min-w-[234px] min-[761px]:max-w-[320px] min-[761px]:flex-1
        ${current ? 'flex flex-1' : 'hidden'}`}
    >
      <header className="flex h-8 shrink-0 items-center gap-2 pl-1.5 pr-1">
        <span aria-hidden className={`size-2 shrink-0 rounded-[3px] bg-(--c) ${colourClass(colour)}`} />
        <h2 className="min-w-0 truncate font-semibold">
          <ExactLine text={stage.label} cut />
        </h2>
        <span className="shrink-0 text-muted">
          {countedText(stage.count)}
          <span className="sr-only"> chats</span>
        </span>
        {stage.hidden && <span className="shrink-0 text-xs text-muted">Hidden</span>}
        {onEdit && (
          <span className="ml-auto">
            <IconButton label={`Edit the stage ${stage.label}`} onClick={onEdit}>
              <Ellipsis aria-hidden className="size-4" />
            </IconButton>
          </span>
        )}
      </header>
      <Cards key={listName(filter)} {...props} />
    </section>
  )
}

function Cards({ stage, filter, moves, nameOf, columns, slot, dragged, onMove, onGrab }: ColumnProps) {
  const [wantsMore, setWantsMore] = useState(false)
  const { data: more } = useQuery({ ...inboxQuery(filter), enabled: wantsMore })
  const { account_id } = filter
  const cards = useMemo(
    () => cardsOf(stage, more?.chats ?? [], { moves, account_id }),
    [stage, more, moves, account_id],
  )
  const place = useRef<HTMLDivElement>(null)
  const { items, height, first, last, measure } = useRowWindow({
    rows: cards,
    keyOf: chatKey,
    place,
    rowPx: guessPx,
    gap: gapPx,
    paddingEnd: 12,
    overscan: 4,
  })
  useEffect(() => {
    const hasMore = more ? more.next_cursor !== null : stage.count > stage.chats.length
    if (more) noteInView(filter, more, cards.slice(first, last + 1))
    if (!hasMore || last < cards.length - 6) return
    if (more) void loadMoreChats(filter)
    // Load more only once the end is visible: the board itself is one request.
    else if (place.current && (place.current.scrollTop > 0 || isShort(place.current))) setWantsMore(true)
  }, [filter, more, stage, cards, first, last])
  return (
    <div ref={place} className="relative min-h-0 flex-1 overflow-y-auto overscroll-contain px-0.5 pt-1">
      {slot && (
        <div
          aria-hidden
          className="mb-1.5 h-24 rounded-[10px] border-[1.5px] border-dashed border-accent bg-accent-wash"
        />
      )}
      <ul className="relative" style={{ height }}>
        {items.map(({ index, key, start }) => {
          const chat = cards[index]
          if (!chat) return null
          return (
            <li
              key={key}
              data-index={index}
              ref={measure}
              aria-setsize={stage.count}
              aria-posinset={index + 1}
              className="absolute inset-x-0"
              style={{ transform: `translateY(${start}px)` }}
            >
              <Card
                chat={chat}
                workspace_id={filter.workspace_id}
                account={nameOf(chat.account_id)}
                columns={columns}
                onMove={onMove}
                onGrab={onGrab}
                look={dragged === chatKey(chat) ? 'opacity-40' : 'cursor-grab'}
              />
            </li>
          )
        })}
      </ul>
      {cards.length === 0 && !slot && <p className="px-1.5 py-1 text-xs text-muted">No chats</p>}
    </div>
  )
}
