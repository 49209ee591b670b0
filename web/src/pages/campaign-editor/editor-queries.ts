/** What the editor reads besides the names of stages, columns and accounts. */
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { ask } from '../../api.ts'
import type { CampaignRequest } from '../../api-types.ts'
import { type AudienceFilter, isFiltered, personKey, recipientsMax } from './campaign-draft.ts'
import { type Forecast, isOf, noPreview, type PreviewState, Previews } from './previews.ts'

/** Under `inbox`, so that whatever changes the chats changes the audience too. */
export const audienceQuery = (workspace_id: string, filter: AudienceFilter) =>
  queryOptions({
    queryKey: ['inbox', workspace_id, 'audience', filter],
    queryFn: ({ signal }) => {
      const { account_id, stage_key, column_id, column_value } = filter
      const query = {
        limit: recipientsMax,
        ...(account_id !== null && { account_id }),
        ...(stage_key !== null && { stage_key }),
        ...(column_id !== null && column_value && { column_id, column_value }),
      }
      return ask('GET /w/{workspace_id}/audience', { params: { workspace_id }, query }, { signal })
    },
  })

/** In an order that new messages do not change: otherwise each of them would ask for a new preview. */
export function useAudience(workspace_id: string, filter: AudienceFilter, enabled: boolean) {
  return useQuery({
    ...audienceQuery(workspace_id, filter),
    enabled: enabled && isFiltered(filter),
    select: ({ counts, people }) => ({
      chats: counts.chats,
      people: people.toSorted((one, other) => (personKey(one) < personKey(other) ? -1 : 1)),
    }),
  })
}

/** The first page of the timetable is all of a campaign for chats, and has the first message of any other. */
const timetableRows = 100

export function usePreview(workspace_id: string, body: CampaignRequest | undefined) {
  const [state, setState] = useState<PreviewState>(noPreview)
  const previews = useRef<Previews>(undefined)
  useEffect(() => {
    const asked = (request: CampaignRequest) =>
      ask('POST /w/{workspace_id}/campaigns/preview', {
        params: { workspace_id },
        query: { limit: timetableRows },
        body: request,
      }) as Promise<Forecast>
    previews.current = new Previews(asked, setState)
    return () => previews.current?.close()
  }, [workspace_id])
  const text = body ? JSON.stringify(body) : ''
  useEffect(() => previews.current?.want(body, text), [body, text])
  const isKnown = body !== undefined && state.of === text
  return {
    ...state,
    error: isKnown ? state.error : undefined,
    /** The forecast is of this very draft, with everyone in it. */
    isCurrent: body !== undefined && isOf(state, text),
    again: () => previews.current?.again(),
  }
}

export type Preview = ReturnType<typeof usePreview>

export const campaignToCopyQuery = (workspace_id: string, campaign_id: string) =>
  queryOptions({
    queryKey: ['campaigns', workspace_id, 'copy', campaign_id],
    queryFn: async ({ signal }) => {
      const input = { params: { workspace_id, campaign_id }, query: { limit: 1 } }
      return (await ask('GET /w/{workspace_id}/campaigns/{campaign_id}', input, { signal })).campaign
    },
    staleTime: 60_000,
  })
