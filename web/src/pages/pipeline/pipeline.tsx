/** The pipeline: the team's chats by stage, as a board or as a table. The address is the state. */
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { Columns3, Settings2, Table2 } from 'lucide-react'
import { lazy, type ReactNode, Suspense, useCallback, useEffect, useState } from 'react'
import { useWorkspace } from '../../place.ts'
import type { Workspace } from '../../queries.ts'
import { MenuButton } from '../../shell.tsx'
import { Button } from '../../ui/button.tsx'
import { Failure } from '../../ui/notice.tsx'
import { Late } from '../../ui/states.tsx'
import { ToastPlace } from '../../ui/toast.tsx'
import { accountsQuery } from '../accounts/account-queries.ts'
import { type InboxChat, workspaceQuery } from '../inbox/inbox-queries.ts'
import { Missing } from '../stopped.tsx'
import { Board } from './board.tsx'
import { ChatTable } from './chat-table.tsx'
import { ClosedPipeline, EmptyPipeline } from './empty-pipeline.tsx'
import type { Chosen } from './move-menu.tsx'
import { moveCard } from './moves.ts'
import { type BoardStage, boardQuery } from './pipeline-queries.ts'
import { StageSwitch } from './stage-switch.tsx'
import { cardKeyHelp, useCardKeys } from './use-card-keys.ts'

const loadMenu = () => import('./move-menu.tsx')
/** Loads after the cards. */
const MoveMenu = lazy(async () => ({ default: (await loadMenu()).MoveMenu }))

const KeyList = lazy(async () => ({ default: (await import('../inbox/key-list.tsx')).KeyList }))
const StagesDialog = lazy(async () => ({ default: (await import('./stages-dialog.tsx')).StagesDialog }))
const ColumnsDialog = lazy(async () => ({ default: (await import('./columns-dialog.tsx')).ColumnsDialog }))

export interface PipelineSearch {
  view?: 'table'
  /** Only chats of this account. */
  account?: string
  /** The stage that the table, or a narrow board, shows. */
  stage?: string
  /** What an admin edits. */
  edit?: 'stages' | 'columns'
}

export function PipelinePage() {
  const workspace = useWorkspace()
  return workspace ? <Pipeline key={workspace.id} workspace={workspace} /> : <Missing />
}

function Pipeline({ workspace }: { workspace: Workspace }) {
  const search = useSearch({ from: '/inside/w/$workspace_id/pipeline' })
  const { data: state } = useQuery(workspaceQuery(workspace.id))
  const capability = state?.capabilities.pipeline
  const query = useQuery({
    ...boardQuery({ workspace_id: workspace.id, account_id: search.account }),
    enabled: capability?.open !== false,
  })
  const go = useGo(workspace.id)
  useEffect(() => {
    document.title = 'Pipeline · Parley'
    void loadMenu()
  }, [])
  const isClosed = capability?.open === false
  const stages = isClosed ? undefined : query.data?.stages
  return (
    <div data-own-bar className="flex h-dvh flex-col bg-surface">
      <Bar workspace={workspace} search={search} go={go} closed={isClosed} />
      {isClosed && <ClosedPipeline closed_by={capability.closed_by} />}
      {!isClosed && query.error && (
        <div className="p-3">
          <Failure error={query.error} />
        </div>
      )}
      {!isClosed && !stages && !query.error && (
        <Late>
          <BoardSkeleton />
        </Late>
      )}
      {stages && <Content workspace={workspace} search={search} stages={stages} go={go} />}
      <ToastPlace />
    </div>
  )
}

export type Go = (search: PipelineSearch) => void

function useGo(workspace_id: string): Go {
  const navigate = useNavigate()
  return useCallback(
    (search) =>
      void navigate({
        to: '/w/$workspace_id/pipeline',
        params: { workspace_id },
        search,
        resetScroll: false,
      }),
    [navigate, workspace_id],
  )
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
  const [chosen, setChosen] = useState<Chosen>()
  const [isMoving, setMoving] = useState(false)
  const { data } = useQuery(accountsQuery(workspace_id))
  const [showsKeys, setShowsKeys] = useState(false)
  useCardKeys({ onHelp: () => setShowsKeys(true) })
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
  const isEmpty = account_id === undefined && stages.every(({ count }) => count === 0)
  const isKnown = stages.some(({ key }) => key === stage)
  return (
    <>
      {isEmpty && (
        <EmptyPipeline workspace_id={workspace_id} none={data?.accounts.length === 0} stages={stages} />
      )}
      {!isEmpty && search.view === undefined && (
        <Board
          stages={stages}
          workspace_id={workspace_id}
          account_id={account_id}
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
            key={`${account_id} ${stage}`}
            filter={{ workspace_id, account_id, stage_key: isKnown ? stage : undefined }}
            stages={stages}
            nameOf={nameOf}
            onMove={onMove}
          />
        </>
      )}
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
        {showsKeys && <KeyList keys={cardKeyHelp} onClose={() => setShowsKeys(false)} />}
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

interface BarProps extends Omit<ContentProps, 'stages'> {
  closed: boolean
}

function Bar({ workspace, search, go, closed }: BarProps) {
  const isAdmin = workspace.role !== 'member'
  return (
    <header className="flex min-h-[53px] shrink-0 flex-wrap items-center gap-x-2 gap-y-1 border-b border-line px-2 py-2 lg:px-5">
      <MenuButton />
      <h1 className="mr-1 text-lg font-semibold">Pipeline</h1>
      {!closed && (
        <>
          <nav aria-label="Views" className="flex rounded-[9px] bg-hover p-0.5">
            <ViewLink workspace_id={workspace.id} current={search.view === undefined} view={undefined}>
              <Columns3 aria-hidden className="size-3.5" />
              Board
            </ViewLink>
            <ViewLink workspace_id={workspace.id} current={search.view === 'table'} view="table">
              <Table2 aria-hidden className="size-3.5" />
              Table
            </ViewLink>
          </nav>
          <AccountFilter workspace={workspace} search={search} go={go} />
          {isAdmin && (
            <div className="flex gap-1 min-[761px]:ml-auto">
              <Button
                kind="quiet"
                size="small"
                className="pointer-coarse:h-11"
                onClick={() => go({ ...search, edit: 'stages' })}
              >
                <Settings2 aria-hidden className="size-3.5" />
                Stages
              </Button>
              <Button
                kind="quiet"
                size="small"
                className="pointer-coarse:h-11"
                onClick={() => go({ ...search, edit: 'columns' })}
              >
                <Settings2 aria-hidden className="size-3.5" />
                Columns
              </Button>
            </div>
          )}
        </>
      )}
    </header>
  )
}

interface ViewLinkProps {
  workspace_id: string
  view: PipelineSearch['view']
  current: boolean
  children: ReactNode
}

function ViewLink({ workspace_id, view, current, children }: ViewLinkProps) {
  return (
    <Link
      to="/w/$workspace_id/pipeline"
      params={{ workspace_id }}
      search={(before: object) => {
        const { view: _, ...rest } = before as PipelineSearch
        return view === undefined ? rest : { ...rest, view }
      }}
      activeOptions={{ exact: true, includeSearch: true }}
      aria-current={current ? 'page' : undefined}
      className="flex h-10 items-center gap-1.5 rounded-[7px] px-3 text-xs font-medium text-soft hover:text-ink
        aria-[current=page]:bg-surface aria-[current=page]:text-ink aria-[current=page]:shadow-card min-[761px]:h-7"
    >
      {children}
    </Link>
  )
}

/** A native select: it loads nothing, and works with every keyboard and screen reader. */
function AccountFilter({ workspace, search, go }: Omit<BarProps, 'closed'>) {
  const { data } = useQuery(accountsQuery(workspace.id))
  if (!data || data.accounts.length < 2) return null
  return (
    <select
      aria-label="Account"
      value={search.account ?? ''}
      onChange={(event) => {
        const { account: _, ...rest } = search
        go({ ...rest, ...(event.target.value && { account: event.target.value }) })
      }}
      className="h-10 min-w-0 max-w-40 truncate rounded-lg bg-transparent px-1.5 text-xs font-medium text-soft hover:bg-hover min-[761px]:h-7"
    >
      <option value="" className="bg-raised text-ink">
        All accounts
      </option>
      {data.accounts.map(({ id, name }) => (
        <option key={id} value={id} className="bg-raised text-ink">
          {name}
        </option>
      ))}
    </select>
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
