/** What the page "Broadcast" reads. */
import { queryOptions } from '@tanstack/react-query'
import { type Answer, ask } from '../../api.ts'
import type { AudienceFilter } from '../campaign-editor/campaign-draft.ts'

export type BroadcastRow = Answer<'GET /w/{workspace_id}/broadcasts'>['broadcasts'][number]
type BroadcastOfContract = Answer<'GET /w/{workspace_id}/broadcast/{broadcast_id}'>
/** At this door every recipient has its sentence. */
export type Broadcast = Omit<BroadcastOfContract, 'people'> & {
  readonly people: readonly (BroadcastOfContract['people'][number] & { readonly sentence?: string })[]
}

/** What a broadcast would do now: whom it reaches, and who is left out. */
export const reachQuery = (
  workspace_id: string,
  { account_id, stage_key, column_id, column_value }: AudienceFilter,
  needsName: boolean,
) =>
  queryOptions({
    queryKey: ['inbox', workspace_id, 'reach', account_id, stage_key, column_id, column_value, needsName],
    queryFn: ({ signal }) =>
      ask(
        'GET /w/{workspace_id}/audience',
        {
          params: { workspace_id },
          query: {
            limit: 100,
            needs_name: needsName ? 'true' : 'false',
            ...(account_id !== null && { account_id }),
            ...(stage_key !== null && { stage_key }),
            ...(column_id !== null && column_value && { column_id, column_value }),
          },
        },
        { signal },
      ),
  })

export const broadcastsQuery = (workspace_id: string) =>
  queryOptions({
    queryKey: ['campaigns', workspace_id, 'broadcasts'],
    queryFn: ({ signal }) =>
      ask(
        'GET /w/{workspace_id}/broadcasts',
        { params: { workspace_id }, query: { limit: 100 } },
        { signal },
      ),
  })

export const broadcastQuery = (workspace_id: string, broadcast_id: string) =>
  queryOptions({
    queryKey: ['campaigns', workspace_id, 'broadcast', broadcast_id],
    queryFn: ({ signal }) =>
      ask(
        'GET /w/{workspace_id}/broadcast/{broadcast_id}',
        { params: { workspace_id, broadcast_id } },
        { signal },
      ) as Promise<Broadcast>,
  })
