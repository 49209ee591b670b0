/** The board: a column for each stage; on a narrow screen one column with a switch. */
import { useQuery } from '@tanstack/react-query'
import { useMemo, useRef } from 'react'
import type { Column } from '../../data/api-types.ts'
import { type ColumnValue, columnsQuery, type InboxChat } from '../../data/chats.ts'
import { chatKey } from '../../data/inbox-list.ts'
import type { BoardStage } from '../../data/pipeline.ts'
import { stageColour } from '../../ui/stages.ts'
import { shownStages } from './board-view.ts'
import { Card } from './card.tsx'
import { moveCard, useMoves } from './moves.ts'
import { StageColumn } from './stage-column.tsx'
import { StageSwitch } from './stage-switch.tsx'
import { useDrag } from './use-drag.ts'

interface BoardProps {
  stages: readonly BoardStage[]
  workspace_id: string
  account_id: string | undefined
  column: ColumnValue | undefined
  /** The stage that a narrow screen shows. */
  current: string | undefined
  nameOf: (account_id: string) => string | undefined
  onMove: (chat: InboxChat, anchor: Element) => void
  onEdit: (() => void) | undefined
}

/** The same list each time, so that cards are not rendered again for it. */
const noColumns: readonly Column[] = []

export function Board({
  stages,
  workspace_id,
  account_id,
  column,
  current,
  nameOf,
  onMove,
  onEdit,
}: BoardProps) {
  const moves = useMoves()
  const { data: columns = noColumns } = useQuery(columnsQuery(workspace_id))
  const shown = useMemo(() => shownStages(stages, moves), [stages, moves])
  const board = useRef<HTMLDivElement>(null)
  const ghost = useRef<HTMLDivElement>(null)
  const stageOf = (key: string | null) => stages.find((stage) => stage.key === key)
  const { drag, begin } = useDrag({
    board,
    ghost,
    accepts: (chat, key) => chat.stage_key !== key && stageOf(key)?.hidden === false,
    onDrop: (chat, key) => {
      const [from, to] = [stageOf(chat.stage_key), stageOf(key)]
      if (from && to) void moveCard({ workspace_id, chat, from, to })
    },
  })
  const here = shown.some(({ key }) => key === current) ? current : shown[0]?.key
  return (
    <>
      <div className="min-[761px]:hidden">
        <StageSwitch stages={shown} current={here} workspace_id={workspace_id} />
      </div>
      <div
        ref={board}
        // Positioned, so that texts for screen readers scroll along and do not widen the page.
        className="relative flex min-h-0 flex-1 gap-2.5 overflow-x-auto overflow-y-hidden bg-canvas px-3 pt-3 min-[761px]:px-5"
      >
        {shown.map((stage) => (
          <StageColumn
            key={stage.key}
            stage={stage}
            colour={stageColour(stages, stage.key)}
            filter={{ workspace_id, account_id, column, stage_key: stage.key }}
            moves={moves}
            nameOf={nameOf}
            columns={columns}
            current={stage.key === here}
            slot={drag?.over === stage.key}
            dragged={drag && chatKey(drag.chat)}
            onMove={onMove}
            onGrab={begin}
            onEdit={onEdit}
          />
        ))}
      </div>
      {drag && (
        <div
          ref={ghost}
          aria-hidden
          inert
          className="pointer-events-none fixed left-0 top-0 z-40"
          style={{ width: drag.width }}
        >
          <Card
            chat={drag.chat}
            workspace_id={workspace_id}
            account={nameOf(drag.chat.account_id)}
            columns={columns}
            onMove={onMove}
            look="!shadow-float !ring-transparent"
          />
        </div>
      )}
    </>
  )
}
