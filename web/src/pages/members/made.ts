/** What a member made, for the dialogs that end it. */
import { queryOptions } from '@tanstack/react-query'
import { type Answer, ask } from '../../data/api.ts'
import { keys } from '../../data/keys.ts'

export type Made = Answer<'GET /w/{workspace_id}/members/{user_id}/made'>

export interface MemberRef {
  workspace_id: string
  user_id: string
}

export const madeQuery = (params: MemberRef) =>
  queryOptions({
    queryKey: keys.members(params.workspace_id, params.user_id, 'made'),
    queryFn: () => ask('GET /w/{workspace_id}/members/{user_id}/made', { params }),
    // An earlier list could lack what the member has made since.
    gcTime: 0,
  })
