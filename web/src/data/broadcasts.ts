/** What the page "Broadcast" reads. */

import { queryOptions } from '@tanstack/react-query'
import { type Answer, ask } from './api.ts'
import { keys } from './keys.ts'

export type BroadcastRow = Answer<'GET /w/{workspace_id}/broadcasts'>['broadcasts'][number]
type BroadcastOfContract = Answer<'GET /w/{workspace_id}/broadcast/{broadcast_id}'>
/** At this door every recipient has its sentence. */
export type Broadcast = Omit<BroadcastOfContract, 'people'> & {
  readonly people: readonly (BroadcastOfContract['people'][number] & { readonly sentence?: string })[]
}

export const broadcastsQuery = (workspace_id: string) =>
  queryOptions({
    queryKey: keys.campaigns(workspace_id, 'broadcasts'),
    queryFn: ({ signal }) =>
      ask(
        'GET /w/{workspace_id}/broadcasts',
        { params: { workspace_id }, query: { limit: 100 } },
        { signal },
      ),
  })

export const broadcastQuery = (workspace_id: string, broadcast_id: string) =>
  queryOptions({
    queryKey: keys.campaigns(workspace_id, 'broadcast', broadcast_id),
    queryFn: ({ signal }) =>
      ask(
        'GET /w/{workspace_id}/broadcast/{broadcast_id}',
        { params: { workspace_id, broadcast_id } },
        { signal },
      ) as Promise<Broadcast>,
  })
