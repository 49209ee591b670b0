/** The pipeline: the team's chats by stage, as a board or as a table. The address is the state. */
import { useQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useCallback, useEffect, useState } from 'react'
import { accountsQuery } from '../../data/accounts.ts'
import { type ColumnValue, type InboxChat, workspaceQuery } from '../../data/chats.ts'
import { type BoardStage, boardQuery } from '../../data/pipeline.ts'
import { useGo, useHere } from '../../data/place.ts'
import type { Workspace } from '../../data/queries.ts'
import { ClosedPage } from '../../ui/closed-page.tsx'
import { KeyHelp } from '../../ui/key-help.tsx'
import { Reading } from '../../ui/states.tsx'
import { useTitle } from '../../ui/title.ts'
import { ToastPlace } from '../../ui/toast.tsx'
import { Board } from './board.tsx'
import { ChatTable } from './chat-table.tsx'
import { EmptyPipeline } from './empty-pipeline.tsx'
import type { Chosen } from './move-menu.tsx'
import { moveCard } from './moves.ts'
import { Bar } from './pipeline-bar.tsx'
import type { Go, PipelineSearch } from './pipeline-search.ts'
import { StageSwitch } from './stage-switch.tsx'
import { cardKeyHelp, useCardKeys } from './use-card-keys.ts'

const loadMenu = () => import('./move-menu.tsx')
/** Loads after the cards. */
const MoveMenu = lazy(async () => ({ default: (await loadMenu()).MoveMenu }))

const StagesDialog = lazy(async () => ({ default: (await import('./stages-dialog.tsx')).StagesDialog }))
const ColumnsDialog = lazy(async () => ({ default: (await import('./columns-dialog.tsx')).ColumnsDialog }))

export function PipelinePage() {
  const workspace = useHere()
  const search = useSearch({ from: '/inside/w/$workspace_id/pipeline' })
  const { data: state } = useQuery(workspaceQuery(workspace.id))
  const capability = state?.capabilities.pipeline
  const query = useQuery({
    ...boardQuery({ workspace_id: workspace.id, account_id: search.account, column: columnOf(search) }),
    enabled: capability?.open !== false,
  })
  const go = useGo<PipelineSearch>('/w/$workspace_id/pipeline')
  useTitle('Pipeline')
  useEffect(() => {
    void loadMenu()
  }, [])
  const isClosed = capability?.open === false
  const stages = isClosed ? undefined : query.data?.stages
  return (
    <div data-own-bar className="flex h-dvh flex-col bg-surface">
      <Bar workspace={workspace} search={search} go={go} closed={isClosed} />
      {isClosed && <ClosedPage title="The pipeline is turned off here" closed_by={capability.closed_by} />}
      {!isClosed && (
        <Reading query={query} className="p-3">
          <BoardSkeleton />
        </Reading>
      )}
      {stages && <Content workspace={workspace} search={search} stages={stages} go={go} />}
      <ToastPlace />
    </div>
  )
}

function columnOf({ column, value }: PipelineSearch): ColumnValue | undefined {
  return column === undefined || value === undefined ? undefined : { column_id: column, column_value: value }
}

interface ContentProps {
  workspace: Workspace
  search: PipelineSearch
  stages: readonly BoardStage[]
  go: Go
}

function Content({ workspace, search, stages, go }: ContentProps) {
  const workspace_id = workspace.id
  const { account: account_id, stage } = search
  const column = columnOf(search)
  const [chosen, setChosen] = useState<Chosen>()
  const [isMoving, setMoving] = useState(false)
  const { data } = useQuery(accountsQuery(workspace_id))
  useCardKeys()
  const nameOf = (id: string) =>
    (data?.accounts.length ?? 0) > 1 ? data?.accounts.find((account) => account.id === id)?.name : undefined
  const onMove = useCallback((chat: InboxChat, anchor: Element) => {
    setChosen({ chat, anchor })
    setMoving(true)
  }, [])
  const move = (chat: InboxChat, key: string) => {
    const [from, to] = [chat.stage_key, key].map((each) => stages.find((one) => one.key === each))
    if (from && to) void moveCard({ workspace_id, chat, from, to })
  }
  const { edit: _, ...closed } = search
  const close = () => go(closed)
  const isAdmin = workspace.role !== 'member'
  const isEmpty = account_id === undefined && column === undefined && stages.every(({ count }) => count === 0)
  const isKnown = stages.some(({ key }) => key === stage)
  return (
    <>
      {isEmpty && <EmptyPipeline workspace_id={workspace_id} accounts={data?.accounts} stages={stages} />}
      {!isEmpty && search.view === undefined && (
        <Board
          stages={stages}
          workspace_id={workspace_id}
          account_id={account_id}
          column={column}
          current={stage}
          nameOf={nameOf}
          onMove={onMove}
          onEdit={isAdmin ? () => go({ ...search, edit: 'stages' }) : undefined}
        />
      )}
      {!isEmpty && search.view === 'table' && (
        <>
          <StageSwitch
            stages={stages}
            current={isKnown ? stage : undefined}
            workspace_id={workspace_id}
            all
          />
          <ChatTable
            key={`${account_id} ${stage} ${search.column} ${search.value}`}
            filter={{ workspace_id, account_id, column, stage_key: isKnown ? stage : undefined }}
            stages={stages}
            nameOf={nameOf}
            onMove={onMove}
          />
        </>
      )}
      <KeyHelp keys={cardKeyHelp} />
      <Suspense>
        {chosen && (
          <MoveMenu
            key={`${chosen.chat.account_id} ${chosen.chat.id}`}
            chosen={chosen}
            open={isMoving}
            stages={stages}
            onMove={move}
            onClose={() => setMoving(false)}
          />
        )}
        {isAdmin && search.edit === 'stages' && (
          <StagesDialog workspace_id={workspace_id} board={stages} onClose={close} />
        )}
        {isAdmin && search.edit === 'columns' && (
          <ColumnsDialog workspace_id={workspace_id} onClose={close} />
        )}
      </Suspense>
    </>
  )
}

const skeletons = [1, 0.8, 0.6, 0.4]

function BoardSkeleton() {
  return (
    <div aria-busy className="flex min-h-0 flex-1 gap-2.5 overflow-hidden bg-canvas px-5 pt-12">
      <p role="status" className="sr-only">
        Loading
      </p>
      {skeletons.map((opacity) => (
        <div key={opacity} style={{ opacity }} className="grid w-[234px] shrink-0 content-start gap-1.5">
          <div className="skeleton h-24" />
          <div className="skeleton h-24" />
        </div>
      ))}
    </div>
  )
}
