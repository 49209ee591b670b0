/** What the page "Pipeline" reads: the board in one request. Further pages of a stage are lists of chats (`chats.ts`). */

import { queryOptions } from '@tanstack/react-query'
import { type Answer, ask } from './api.ts'
import type { ListFilter } from './chats.ts'
import { keys } from './keys.ts'

export type BoardStage = Answer<'GET /w/{workspace_id}/board'>['stages'][number]
export type EditedStage = Answer<'GET /w/{workspace_id}/stages'>['stages'][number]

type BoardFilter = Pick<ListFilter, 'workspace_id' | 'account_id' | 'column'>

export const boardQuery = ({ workspace_id, account_id, column }: BoardFilter) =>
  queryOptions({
    queryKey: keys.board(workspace_id, account_id, column?.column_id, column?.column_value),
    queryFn: ({ signal }) => {
      const query = { account_id, ...column }
      return ask('GET /w/{workspace_id}/board', { params: { workspace_id }, query }, { signal })
    },
  })

/** With colours. */
export const stageListQuery = (workspace_id: string) =>
  queryOptions({
    queryKey: keys.stages(workspace_id, 'coloured'),
    queryFn: () => ask('GET /w/{workspace_id}/stages', { params: { workspace_id } }),
  })
