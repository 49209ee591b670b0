/** The chats that a campaign or a broadcast writes to. Under `inbox`: whatever changes the chats changes the audience too. */

import { queryOptions, useQuery } from '@tanstack/react-query'
import { recipientsMax } from '../../../src/rules/limits.ts'
import { type Answer, ask } from './api.ts'
import { keys } from './keys.ts'

export type Person = Answer<'GET /w/{workspace_id}/audience'>['people'][number]

export interface AudienceFilter {
  readonly account_id: string | null
  readonly stage_key: string | null
  readonly column_id: string | null
  readonly column_value: string | null
}

export const noFilter: AudienceFilter = {
  account_id: null,
  stage_key: null,
  column_id: null,
  column_value: null,
}

export const isFiltered = ({ stage_key, column_value }: AudienceFilter) =>
  stage_key !== null || column_value !== null

export const personKey = ({ account_id, chat_id }: Pick<Person, 'account_id' | 'chat_id'>) =>
  `${account_id} ${chat_id}`

const queryOf = ({ account_id, stage_key, column_id, column_value }: AudienceFilter) => ({
  ...(account_id !== null && { account_id }),
  ...(stage_key !== null && { stage_key }),
  ...(column_id !== null && column_value && { column_id, column_value }),
})

const audienceQuery = (workspace_id: string, filter: AudienceFilter) =>
  queryOptions({
    queryKey: keys.inbox(workspace_id, 'audience', filter),
    queryFn: ({ signal }) => {
      const query = { limit: recipientsMax, ...queryOf(filter) }
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

/** What a broadcast would do now: whom it reaches, and who is left out. */
export const reachQuery = (workspace_id: string, filter: AudienceFilter, needsName: boolean) =>
  queryOptions({
    queryKey: keys.inbox(workspace_id, 'reach', filter, needsName),
    queryFn: ({ signal }) => {
      const query = { limit: 100, needs_name: needsName ? 'true' : 'false', ...queryOf(filter) } as const
      return ask('GET /w/{workspace_id}/audience', { params: { workspace_id }, query }, { signal })
    },
  })
