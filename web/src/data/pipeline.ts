/** What the page "Pipeline" reads: the board in one request, and further pages of a stage as the user scrolls. */

import { queryOptions } from '@tanstack/react-query'
import { type Answer, ask } from './api.ts'
import { type InboxList, mergePage } from './inbox-list.ts'
import { keys } from './keys.ts'
import { queryClient } from './queries.ts'

export type BoardStage = Answer<'GET /w/{workspace_id}/board'>['stages'][number]
export type EditedStage = Answer<'GET /w/{workspace_id}/stages'>['stages'][number]

export interface ColumnValue {
  readonly column_id: string
  readonly column_value: string
}

export interface ChatFilter {
  readonly workspace_id: string
  readonly account_id: string | undefined
  /** Undefined: whatever their columns. */
  readonly column: ColumnValue | undefined
  /** Undefined: the chats of every stage. */
  readonly stage_key: string | undefined
}

export const boardQuery = ({ workspace_id, account_id, column }: Omit<ChatFilter, 'stage_key'>) =>
  queryOptions({
    queryKey: keys.board(
      workspace_id,
      account_id ?? null,
      column?.column_id ?? null,
      column?.column_value ?? null,
    ),
    queryFn: ({ signal }) =>
      ask(
        'GET /w/{workspace_id}/board',
        { params: { workspace_id }, query: { ...(account_id !== undefined && { account_id }), ...column } },
        { signal },
      ),
  })

/** With colours. */
export const stageListQuery = (workspace_id: string) =>
  queryOptions({
    queryKey: keys.stages(workspace_id, 'coloured'),
    queryFn: () => ask('GET /w/{workspace_id}/stages', { params: { workspace_id } }),
  })

/** The cursors of the pages in view, by the list's key: a refresh reads these and the first page, however long the list is. */
const cursorsInView = new Map<string, readonly string[]>()

export const chatsQuery = (filter: ChatFilter) =>
  queryOptions({
    // `inbox` comes first, so that whatever changes the inbox changes this list too.
    queryKey: keys.inbox(
      filter.workspace_id,
      'pipeline',
      filter.account_id ?? null,
      filter.stage_key ?? null,
      filter.column?.column_id ?? null,
      filter.column?.column_value ?? null,
    ),
    queryFn: async ({ signal, client, queryKey }): Promise<InboxList> => {
      const cursors = [undefined, ...(cursorsInView.get(String(queryKey)) ?? [])]
      const pages = await Promise.all(cursors.map((cursor) => readPage(filter, cursor, signal)))
      // Read after the answers, because more pages may have been loaded meanwhile.
      const before = client.getQueryData<InboxList>(queryKey)
      return (
        pages.reduce<InboxList | undefined>(mergePage, before) ?? { chats: [], next_cursor: null, pages: {} }
      )
    },
  })

async function readPage(filter: ChatFilter, cursor: string | undefined, signal?: AbortSignal) {
  const { workspace_id, account_id, stage_key, column } = filter
  const query = {
    ...column,
    ...(account_id !== undefined && { account_id }),
    ...(stage_key !== undefined && { stage_key }),
    ...(cursor !== undefined && { cursor }),
  }
  const page = await ask('GET /w/{workspace_id}/inbox', { params: { workspace_id }, query }, { signal })
  return { ...page, cursor }
}

export function noteInView(filter: ChatFilter, cursors: readonly string[]): void {
  cursorsInView.set(String(chatsQuery(filter).queryKey), [...new Set(cursors)])
}

const loading = new Set<string>()

/** The next page of a list; one at a time. */
export async function loadMore(filter: ChatFilter): Promise<void> {
  const { queryKey } = chatsQuery(filter)
  const cursor = queryClient.getQueryData(queryKey)?.next_cursor
  if (cursor === null || cursor === undefined || loading.has(String(queryKey))) return
  loading.add(String(queryKey))
  try {
    const page = await readPage(filter, cursor)
    queryClient.setQueryData(queryKey, (before) => mergePage(before, page))
  } catch {
    // The list's own refresh shows the error.
  } finally {
    loading.delete(String(queryKey))
  }
}
