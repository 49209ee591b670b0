/** How long the workspace keeps texts, files and names. */
import { queryOptions } from '@tanstack/react-query'
import { type Answer, ask } from './api.ts'
import { keys } from './keys.ts'

export type Retention = Answer<'GET /w/{workspace_id}/retention'>['retention']
export type Cleared = Answer<'GET /w/{workspace_id}/retention/preview'>['clears']

export const retentionQuery = (workspace_id: string) =>
  queryOptions({
    queryKey: keys.retention(workspace_id),
    queryFn: () => ask('GET /w/{workspace_id}/retention', { params: { workspace_id } }),
  })

/** What these settings would clear now. */
export const retentionPreviewQuery = (workspace_id: string, retention: Retention) =>
  queryOptions({
    queryKey: keys.retention(workspace_id, 'preview', retention),
    queryFn: () =>
      ask('GET /w/{workspace_id}/retention/preview', { params: { workspace_id }, query: daysOf(retention) }),
    staleTime: 0,
  })

function daysOf(retention: Retention) {
  const given = Object.entries(retention).filter(([, days]) => days !== null)
  return Object.fromEntries(given) as { [K in keyof Retention]?: number }
}
