/** What the campaign pages read and change. Every key begins with `campaigns`, which the live stream names. */

import { infiniteQueryOptions, queryOptions, useMutation } from '@tanstack/react-query'
import { type Answer, ask } from './api.ts'
import { byCursor } from './by-cursor.ts'
import { newKey } from './kept.ts'
import { keys } from './keys.ts'
import { queryClient } from './queries.ts'

export type Progress = Answer<'GET /w/{workspace_id}/campaign_progress'>['campaigns'][number]
export type Campaign = Answer<'GET /w/{workspace_id}/campaigns/{campaign_id}'>['campaign']
export type Totals = Campaign['totals']
export type Report = Campaign['reporting'][number]
export type RecipientPage = Answer<'GET /w/{workspace_id}/campaigns/{campaign_id}/recipients'>
export type Recipient = RecipientPage['recipients'][number]
export type RecipientStatus = Recipient['status']

export interface CampaignRef {
  readonly workspace_id: string
  readonly campaign_id: string
}

export interface RecipientFilter extends CampaignRef {
  readonly status: RecipientStatus | undefined
  readonly name: string | undefined
}

export const progressQuery = (workspace_id: string) =>
  infiniteQueryOptions({
    queryKey: keys.campaigns(workspace_id, 'list'),
    ...byCursor,
    queryFn: ({ pageParam: cursor, signal }) => {
      const input = { params: { workspace_id }, query: { cursor } }
      return ask('GET /w/{workspace_id}/campaign_progress', input, { signal })
    },
  })

async function readCampaign(params: CampaignRef, signal: AbortSignal): Promise<Campaign> {
  const input = { params, query: { limit: 1 } }
  return (await ask('GET /w/{workspace_id}/campaigns/{campaign_id}', input, { signal })).campaign
}

/** Its figures, steps and what may be done. Its recipients are read by `recipientsQuery`. */
export const campaignQuery = (params: CampaignRef) =>
  queryOptions({
    queryKey: keys.campaigns(params.workspace_id, 'one', params.campaign_id),
    queryFn: ({ signal }) => readCampaign(params, signal),
  })

const pageSize = 100

/** One page. A list reads only its pages in view again, however far the user has scrolled. */
export const recipientsQuery = (filter: RecipientFilter, cursor: string | undefined) => {
  const { workspace_id, campaign_id, status, name } = filter
  return queryOptions({
    queryKey: keys.campaigns(workspace_id, 'recipients', campaign_id, status ?? '', name ?? '', cursor ?? ''),
    queryFn: ({ signal }) => {
      const query = { limit: pageSize, status, name, cursor }
      const params = { workspace_id, campaign_id }
      return ask('GET /w/{workspace_id}/campaigns/{campaign_id}/recipients', { params, query }, { signal })
    },
  })
}

/** Reads every row of the campaign, so it is read when asked for, and not at every mark. */
export const verificationQuery = (params: CampaignRef) =>
  queryOptions({
    queryKey: keys.verification(params.workspace_id, params.campaign_id),
    queryFn: async () => {
      const verified = await ask('GET /w/{workspace_id}/campaigns/{campaign_id}/verify', { params })
      return { ...verified, checked_at: new Date().toISOString() }
    },
    staleTime: 'static',
  })

const forecastMs = 60_000

/** When its last message goes out if nobody replies. It is calculated from all campaigns, so not at every mark. */
export const forecastQuery = (params: CampaignRef) =>
  queryOptions({
    queryKey: keys.forecast(params.workspace_id, params.campaign_id),
    queryFn: async ({ signal }) => {
      const input = { params, query: { limit: 1 } }
      const path = 'GET /w/{workspace_id}/campaigns/{campaign_id}/forecast'
      return (await ask(path, input, { signal })).end
    },
    staleTime: forecastMs,
    retry: false,
  })

type Control = 'pause' | 'resume' | 'cancel'

/** Never optimistic: the page shows the new state once the service has it, also after a refusal. */
export function useControl(params: CampaignRef) {
  return useMutation({
    mutationFn: (control: Control) =>
      ask(
        `POST /w/{workspace_id}/campaigns/{campaign_id}/${control}`,
        { params: { ...params } },
        { key: newKey() },
      ),
    onSettled: () => queryClient.invalidateQueries({ queryKey: keys.campaigns(params.workspace_id) }),
  })
}

export const campaignToCopyQuery = (workspace_id: string, campaign_id: string) =>
  queryOptions({
    queryKey: keys.campaigns(workspace_id, 'copy', campaign_id),
    queryFn: ({ signal }) => readCampaign({ workspace_id, campaign_id }, signal),
    staleTime: 60_000,
  })
