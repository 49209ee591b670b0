/** The suppression list: whom the workspace never writes to first, why, and who may be written to again. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Download, Plus, Upload } from 'lucide-react'
import { lazy, Suspense, useCallback, useState } from 'react'
import { useWorkspace } from '../../place.ts'
import type { Workspace } from '../../queries.ts'
import { Page } from '../../shell.tsx'
import { useKeys } from '../../shortcuts.ts'
import { Button, buttonClass } from '../../ui/button.tsx'
import { Late, Loading, ReadFailure } from '../../ui/states.tsx'
import { Missing } from '../stopped.tsx'
import { SuppressionFilters } from './suppression-filters.tsx'
import {
  exportPath,
  type Suppression,
  type SuppressionSearch,
  suppressionsQuery,
} from './suppression-queries.ts'
import { SuppressionTable } from './suppression-table.tsx'

const AddDialog = lazy(async () => ({ default: (await import('./entry-dialogs.tsx')).AddDialog }))
const RemoveDialog = lazy(async () => ({ default: (await import('./entry-dialogs.tsx')).RemoveDialog }))
const ImportDialog = lazy(async () => ({ default: (await import('./import-dialog.tsx')).ImportDialog }))

export type Go = (search: SuppressionSearch) => void

export function SuppressionsPage() {
  const workspace = useWorkspace()
  return workspace ? <Suppressions key={workspace.id} workspace={workspace} /> : <Missing />
}

function Suppressions({ workspace }: { workspace: Workspace }) {
  const { open, ...filter } = useSearch({ from: '/inside/w/$workspace_id/suppressions' })
  const go = useGo(workspace.id)
  const [removing, setRemoving] = useState<Suppression>()
  const isAdmin = workspace.role !== 'member'
  const query = useInfiniteQuery({
    ...suppressionsQuery(workspace.id, filter),
    placeholderData: (before) => before,
  })
  const rows = query.data?.pages.flatMap(({ suppressions }) => suppressions)
  useKeys({
    n: () => go({ ...filter, open: 'add' }),
    '/': () => document.querySelector<HTMLElement>('[data-find]')?.focus(),
  })
  const add = (
    <Button kind="primary" size="small" onClick={() => go({ ...filter, open: 'add' })}>
      <Plus aria-hidden className="size-3.5" />
      Add
    </Button>
  )
  return (
    <Page
      title="Suppression"
      about="Parley never writes to these people first."
      action={
        <div className="flex flex-wrap gap-1.5">
          <a href={exportPath(workspace.id)} download className={buttonClass({ size: 'small' })}>
            <Download aria-hidden className="size-3.5" />
            Export
          </a>
          {isAdmin && (
            <Button size="small" onClick={() => go({ ...filter, open: 'import' })}>
              <Upload aria-hidden className="size-3.5" />
              Import
            </Button>
          )}
          {add}
        </div>
      }
    >
      <div className="grid gap-4">
        <SuppressionFilters search={filter} go={go} />
        <ReadFailure query={query} />
        {rows === undefined && query.isPending && (
          <Late>
            <Loading />
          </Late>
        )}
        {rows && (
          <SuppressionTable
            rows={rows}
            workspace={workspace}
            isFiltered={filter.q !== undefined || filter.kind !== undefined}
            add={add}
            {...(isAdmin && { onRemove: setRemoving })}
          />
        )}
        {query.hasNextPage && (
          <Button
            className="justify-self-start"
            busy={query.isFetchingNextPage}
            onClick={() => void query.fetchNextPage()}
          >
            Show more
          </Button>
        )}
        {!isAdmin && <p className="text-muted">Admins and owners import files and remove entries.</p>}
      </div>
      <Suspense>
        {open === 'add' && <AddDialog workspace_id={workspace.id} onClose={() => go(filter)} />}
        {open === 'import' && isAdmin && (
          <ImportDialog workspace_id={workspace.id} onClose={() => go(filter)} />
        )}
        {removing && (
          <RemoveDialog of={removing} workspace_id={workspace.id} onClose={() => setRemoving(undefined)} />
        )}
      </Suspense>
    </Page>
  )
}

function useGo(workspace_id: string): Go {
  const navigate = useNavigate()
  return useCallback(
    (search) =>
      void navigate({
        to: '/w/$workspace_id/suppressions',
        params: { workspace_id },
        search,
        resetScroll: false,
      }),
    [navigate, workspace_id],
  )
}
