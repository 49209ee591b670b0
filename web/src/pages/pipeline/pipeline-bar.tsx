/** The bar of the pipeline: board or table, of which account, and what admins edit. */
import { Link } from '@tanstack/react-router'
import { Columns3, Settings2, Table2 } from 'lucide-react'
import type { ReactNode } from 'react'
import type { Workspace } from '../../data/queries.ts'
import { AccountFilter } from '../../ui/account-filter.tsx'
import { ColumnFilter } from '../../ui/audience-filters.tsx'
import { Button } from '../../ui/button.tsx'
import { MenuButton } from '../../ui/menu-button.tsx'
import type { Go, PipelineSearch } from './pipeline-search.ts'

interface BarProps {
  workspace: Workspace
  search: PipelineSearch
  go: Go
  /** Its gate. */
  closed: boolean
}

export function Bar({ workspace, search, go, closed }: BarProps) {
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
          <AccountFilter
            workspace_id={workspace.id}
            value={search.account}
            onChange={(account) => {
              const { account: _, ...rest } = search
              go(account === undefined ? rest : { ...rest, account })
            }}
          />
          <ByColumn workspace={workspace} search={search} go={go} />
          {isAdmin && (
            <div className="flex gap-1 min-[761px]:ml-auto">
              <Button kind="quiet" size="small" onClick={() => go({ ...search, edit: 'stages' })}>
                <Settings2 aria-hidden className="size-3.5" />
                Stages
              </Button>
              <Button kind="quiet" size="small" onClick={() => go({ ...search, edit: 'columns' })}>
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

function ByColumn({ workspace, search, go }: Omit<BarProps, 'closed'>) {
  const { column, value, ...rest } = search
  const chosen = { column_id: column ?? null, column_value: value ?? null }
  return (
    <ColumnFilter
      workspace={workspace}
      filter={chosen}
      listed
      set={({ column_id, column_value }) =>
        go(column_id && column_value ? { ...rest, column: column_id, value: column_value } : rest)
      }
    />
  )
}
