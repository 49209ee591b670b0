/** What the inbox reads. Every key begins with what a mark of the live stream names, and the workspace. */

import { infiniteQueryOptions, type QueryClient, queryOptions } from '@tanstack/react-query'
import { type Answer, ask, Refused } from './api.ts'
import { chatKey, type InboxList, mergePage } from './inbox-list.ts'
import { keys } from './keys.ts'
import { queryClient } from './queries.ts'

export { workspaceQuery } from './queries.ts'

export type InboxChat = Answer<'GET /w/{workspace_id}/inbox'>['chats'][number]
export type Timeline = Answer<'GET /w/{workspace_id}/chats/{chat_id}/timeline'>
export type TimelineItem = Timeline['items'][number]
export type TimelineMessage = Extract<TimelineItem, { type: 'message' }>
export type TimelineOperation = Extract<TimelineItem, { type: 'operation' }>
export type TimelineNote = Extract<TimelineItem, { type: 'note' }>
export type ChatDetail = Answer<'GET /w/{workspace_id}/chats/{chat_id}'>['chat']
export type ChatCampaign = Answer<'GET /w/{workspace_id}/chats/{chat_id}/campaigns'>['campaigns'][number]
export type WorkspaceState = Answer<'GET /w/{workspace_id}/workspace'>
export type SavedReply = Answer<'GET /w/{workspace_id}/saved_replies'>['saved_replies'][number]

export const views = ['all', 'unread', 'unanswered', 'mine'] as const
export type View = (typeof views)[number]

/** A chat of one account: two accounts can have chats with the same id. */
export interface ChatRef {
  readonly workspace_id: string
  readonly account_id: string
  readonly chat_id: string
}

export interface ColumnValue {
  readonly column_id: string
  readonly column_value: string
}

/** Which chats a list has. What is undefined limits nothing. */
export interface ListFilter {
  readonly workspace_id: string
  readonly account_id: string | undefined
  readonly view?: View
  readonly column?: ColumnValue | undefined
  readonly stage_key?: string | undefined
}

/** Changes rarely, and the live stream says when. */
const slowMs = 30_000

const listKey = ({ workspace_id, view = 'all', account_id, column, stage_key }: ListFilter) =>
  keys.inbox(workspace_id, 'list', view, account_id, stage_key, column?.column_id, column?.column_value)

/** One text for each list. */
export const listName = (filter: ListFilter) => JSON.stringify(listKey(filter))

/** The cursors of the pages in view, by the list: a refresh reads these and the first page, however long the list is. */
const cursorsInView = new Map<string, readonly string[]>()

export function noteInView(filter: ListFilter, list: InboxList, rows: readonly InboxChat[]): void {
  const cursors = rows.flatMap((row) => list.pages[chatKey(row)] ?? [])
  cursorsInView.set(listName(filter), [...new Set(cursors)])
}

export const inboxQuery = (filter: ListFilter) =>
  queryOptions({
    queryKey: listKey(filter),
    queryFn: async ({ signal, client, queryKey }): Promise<InboxList> => {
      const cursors = [undefined, ...(cursorsInView.get(listName(filter)) ?? [])]
      const pages = await Promise.all(cursors.map((cursor) => readPage(filter, cursor, signal)))
      // Read after the answers, because more pages may have been loaded meanwhile.
      const before = client.getQueryData<InboxList>(queryKey)
      return (
        pages.reduce<InboxList | undefined>(mergePage, before) ?? { chats: [], next_cursor: null, pages: {} }
      )
    },
    gcTime: 30 * 60_000,
    // `mergePage` keeps what did not change. By index, one new chat would change all of them.
    structuralSharing: false,
  })

async function readPage(filter: ListFilter, cursor: string | undefined, signal?: AbortSignal) {
  const { workspace_id, view, account_id, column, stage_key } = filter
  const query = { view, account_id, stage_key, ...column, cursor }
  const page = await ask('GET /w/{workspace_id}/inbox', { params: { workspace_id }, query }, { signal })
  return { ...page, cursor }
}

const loading = new Set<string>()

/** The next page of a list; one at a time. */
export async function loadMoreChats(filter: ListFilter): Promise<void> {
  const { queryKey } = inboxQuery(filter)
  const cursor = queryClient.getQueryData(queryKey)?.next_cursor
  const name = listName(filter)
  if (cursor === null || cursor === undefined || loading.has(name)) return
  loading.add(name)
  try {
    const page = await readPage(filter, cursor)
    queryClient.setQueryData(queryKey, (before) => mergePage(before, page))
  } catch {
    // The list's own refresh shows the error.
  } finally {
    loading.delete(name)
  }
}

/** Changes a chat in every list that has it. */
export function patchRow({ workspace_id, account_id, chat_id }: ChatRef, patch: Partial<InboxChat>): void {
  const isIt = (each: InboxChat) => each.account_id === account_id && each.id === chat_id
  const lists = keys.inbox(workspace_id, 'list') // guard: an audience has no rows
  queryClient.setQueriesData<InboxList>({ queryKey: lists }, (before) =>
    before?.chats.some(isIt)
      ? { ...before, chats: before.chats.map((each) => (isIt(each) ? { ...each, ...patch } : each)) }
      : before,
  )
}

export const countsQuery = (workspace_id: string, account_id?: string) =>
  queryOptions({
    queryKey: keys.counts(workspace_id, account_id ?? null),
    queryFn: ({ signal }) => {
      const input = { params: { workspace_id }, query: { account_id } }
      return ask('GET /w/{workspace_id}/inbox/counts', input, { signal })
    },
  })

/** From a cursor, or around a message; neither for the newest. */
type TimelinePlace = { before?: string; after?: string; around?: string | undefined }

export const timelineQuery = ({ workspace_id, account_id, chat_id }: ChatRef, around?: string) =>
  infiniteQueryOptions({
    queryKey: keys.timeline(workspace_id, account_id, chat_id, around ?? null),
    initialPageParam: { around } as TimelinePlace,
    queryFn: ({ pageParam, signal }) =>
      ask(
        'GET /w/{workspace_id}/chats/{chat_id}/timeline',
        { params: { workspace_id, chat_id }, query: { account_id, ...pageParam } },
        { signal },
      ),
    getPreviousPageParam: ({ before }): TimelinePlace | undefined =>
      before === null ? undefined : { before },
    getNextPageParam: ({ after }): TimelinePlace | undefined => (after === null ? undefined : { after }),
    // Beyond these the pages at the other end are dropped, and read again when they are scrolled to.
    maxPages: 8,
  })

export const chatQuery = ({ workspace_id, account_id, chat_id }: ChatRef) =>
  queryOptions({
    queryKey: keys.chat(workspace_id, account_id, chat_id),
    queryFn: ({ signal }) =>
      ask(
        'GET /w/{workspace_id}/chats/{chat_id}',
        { params: { workspace_id, chat_id }, query: { account_id } },
        { signal },
      ),
  })

export const chatCampaignsQuery = ({ workspace_id, account_id, chat_id }: ChatRef) =>
  queryOptions({
    queryKey: keys.campaigns(workspace_id, account_id, chat_id),
    queryFn: async ({ signal }) => {
      const input = { params: { workspace_id, chat_id }, query: { account_id } }
      return (await ask('GET /w/{workspace_id}/chats/{chat_id}/campaigns', input, { signal })).campaigns
    },
  })

/** Why the person of the chat is on the suppression list; empty: they are not. */
export const chatSuppressionQuery = ({ workspace_id, account_id, chat_id }: ChatRef) =>
  queryOptions({
    queryKey: keys.chat(workspace_id, account_id, chat_id, 'suppression'),
    queryFn: async ({ signal }) => {
      const input = { params: { workspace_id, chat_id }, query: { account_id } }
      return (await ask('GET /w/{workspace_id}/chats/{chat_id}/suppression', input, { signal })).entries
    },
  })

export const savedRepliesQuery = (workspace_id: string) =>
  queryOptions({
    queryKey: keys.saved_replies(workspace_id),
    queryFn: () => ask('GET /w/{workspace_id}/saved_replies', { params: { workspace_id } }),
    staleTime: slowMs,
  })

export const assigneesQuery = (workspace_id: string) =>
  queryOptions({
    queryKey: keys.members(workspace_id, 'assignees'),
    queryFn: async () =>
      (await ask('GET /w/{workspace_id}/assignees', { params: { workspace_id } })).assignees,
    staleTime: slowMs,
  })

/** Names of stages and columns: one placement and one value at most, because chats bring their own. */
export const stagesQuery = (workspace_id: string) =>
  queryOptions({
    queryKey: keys.stages(workspace_id),
    queryFn: async () => {
      const asked = ask('GET /w/{workspace_id}/pipeline', { params: { workspace_id }, query: { limit: 1 } })
      return (await asked.catch(emptyIfClosed))?.stages ?? []
    },
    staleTime: slowMs,
  })

export const columnsQuery = (workspace_id: string) =>
  queryOptions({
    queryKey: keys.columns(workspace_id, 'names'),
    queryFn: async () => {
      const asked = ask('GET /w/{workspace_id}/columns', { params: { workspace_id }, query: { limit: 1 } })
      return (await asked.catch(emptyIfClosed))?.columns ?? []
    },
    staleTime: slowMs,
  })

/** A closed gate shows no stages or columns, and no error. */
function emptyIfClosed(error: unknown): undefined {
  if (error instanceof Refused && error.code === 'feature_disabled') return undefined
  throw error
}

/** Reads again what a change in one chat shows. */
export function refreshChat(
  client: QueryClient,
  { workspace_id, account_id, chat_id }: ChatRef,
): Promise<unknown> {
  const shown = [
    keys.timeline(workspace_id, account_id, chat_id),
    keys.chat(workspace_id, account_id, chat_id),
    keys.inbox(workspace_id),
    keys.counts(workspace_id),
  ]
  return Promise.all(shown.map((queryKey) => client.invalidateQueries({ queryKey })))
}

/** Prefetches a chat that is likely to be opened next, so that it appears immediately. */
export function prefetchChat(client: QueryClient, chat: ChatRef): void {
  void client.prefetchQuery({ ...chatQuery(chat), staleTime: slowMs })
  void client.prefetchInfiniteQuery({ ...timelineQuery(chat), staleTime: slowMs })
}
