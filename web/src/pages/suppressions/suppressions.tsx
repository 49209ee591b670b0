/** The suppression list: whom the workspace never writes to first, why, and who may be written to again. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { Download, Plus, Upload } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { useGo, useHere } from '../../data/place.ts'
import { exportPath, type Suppression, suppressionsQuery } from '../../data/suppressions.ts'
import { Button, buttonClass } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { useKeys } from '../../ui/shortcuts.ts'
import { More, Reading } from '../../ui/states.tsx'
import { SuppressionFilters } from './suppression-filters.tsx'
import type { SuppressionSearch } from './suppression-search.ts'
import { SuppressionTable } from './suppression-table.tsx'

const AddDialog = lazy(async () => ({ default: (await import('./entry-dialogs.tsx')).AddDialog }))
const RemoveDialog = lazy(async () => ({ default: (await import('./entry-dialogs.tsx')).RemoveDialog }))
const ImportDialog = lazy(async () => ({ default: (await import('./import-dialog.tsx')).ImportDialog }))

export function SuppressionsPage() {
  const workspace = useHere()
  const { open, ...filter } = useSearch({ from: '/inside/w/$workspace_id/suppressions' })
  const go = useGo<SuppressionSearch>('/w/$workspace_id/suppressions')
  const [removing, setRemoving] = useState<Suppression>()
  const isAdmin = workspace.role !== 'member'
  const query = useInfiniteQuery({
    ...suppressionsQuery(workspace.id, filter),
    placeholderData: (before) => before,
  })
  const isFiltered = filter.q !== undefined || filter.kind !== undefined
  const rows = query.data?.pages.flatMap(({ suppressions }) => suppressions)
  const isEmpty = rows?.length === 0 && !isFiltered
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
          {isAdmin && (
            <a href={exportPath(workspace.id)} download className={buttonClass({ size: 'small' })}>
              <Download aria-hidden className="size-3.5" />
              Export
            </a>
          )}
          {isAdmin && (
            <Button size="small" onClick={() => go({ ...filter, open: 'import' })}>
              <Upload aria-hidden className="size-3.5" />
              Import
            </Button>
          )}
          {!isEmpty && add}
        </div>
      }
    >
      <div className="grid gap-4">
        <SuppressionFilters search={filter} go={go} />
        <Reading query={query} />
        {rows && (
          <SuppressionTable
            rows={rows}
            workspace={workspace}
            isFiltered={isFiltered}
            add={add}
            {...(isAdmin && { onRemove: setRemoving })}
          />
        )}
        <More of={query}>Show more</More>
        {!isAdmin && (
          <p className="text-muted">Admins and owners import and export files and remove entries.</p>
        )}
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
