/** Which queries a mark makes stale, and how often visible ones are read again. */
import type { Query, QueryKey } from '@tanstack/react-query'
import { type Answer, Refused } from '../api.ts'
import { allOf, type KeyName, keys } from '../keys.ts'
import { queryClient } from '../queries.ts'

export type Mark = Answer<'GET /stream'>[number]

/** Beginnings of query keys. A key names its workspace second, and a chat's queries its account and chat after it. */
type Keys = readonly QueryKey[]

const lists = ['inbox', 'counts', 'board'] as const
const inWorkspace = (names: readonly KeyName[], { workspace_id }: Mark): Keys =>
  names.map((name) => keys[name](workspace_id ?? ''))
const ofChat = (names: readonly KeyName[], { workspace_id, account_id, chat_id }: Mark): Keys =>
  names.map((name) => keys[name](workspace_id ?? '', ...(account_id && chat_id ? [account_id, chat_id] : [])))
const aroundChat = (mark: Mark): Keys => [...inWorkspace(lists, mark), ...ofChat(['chat'], mark)]
const withTimeline = (mark: Mark): Keys => [...aroundChat(mark), ...ofChat(['timeline'], mark)]

/** One entry for each kind that the service knows; without one this does not compile. */
const keysOf: Readonly<Record<Mark['kind'], (mark: Mark) => Keys>> = {
  chats: aroundChat,
  messages: withTimeline,
  operations: withTimeline,
  notes: (mark) => [...ofChat(['timeline'], mark), ...inWorkspace(['person'], mark)],
  assignees: aroundChat,
  pipeline: (mark) => [...aroundChat(mark), ...inWorkspace(['stages'], mark)],
  columns: (mark) => [...aroundChat(mark), ...inWorkspace(['columns', 'person'], mark)],
  saved_replies: (mark) => inWorkspace(['saved_replies'], mark),
  accounts: (mark) => inWorkspace(['accounts', 'workspace'], mark),
  campaigns: (mark) => inWorkspace(['campaigns', 'chat', 'person'], mark),
  suppressions: (mark) => inWorkspace(['suppressions', ...lists, 'chat', 'people', 'person'], mark), // guard: a mark of the list reaches the chats
  people: (mark) => inWorkspace(['people', 'person'], mark),
  approvals: () => [keys.approvals()],
  keys: (mark) => inWorkspace(['keys'], mark),
  members: (mark) => [...inWorkspace(['members'], mark), keys.session()],
  webhooks: (mark) => inWorkspace(['webhooks', 'workspace'], mark),
  gates: () => [keys.gates(), keys.allowlists(), allOf('workspace'), keys.sending()],
  instance: () => [keys.instance(), keys.allowlists()],
  workspace: (mark) => [...inWorkspace(['workspace', 'retention'], mark), keys.session()],
  sessions: () => [keys.session(), keys.sessions()],
  presence: () => [],
  everything: () => [],
}

export function staleBy(marks: readonly Mark[]): void {
  const touched = new Set<Query>()
  for (const mark of marks) {
    if (mark.kind === 'everything') for (const query of queriesOf(mark.workspace_id)) touched.add(query)
    for (const queryKey of keysOf[mark.kind]?.(mark) ?? []) {
      for (const query of queryClient.getQueryCache().findAll({ queryKey })) touched.add(query)
    }
  }
  for (const query of touched) makeStale(query)
}

/** Everything that is known, after marks may have been lost. */
export function staleEverything(): void {
  for (const query of queriesOf(null)) makeStale(query)
}

function queriesOf(workspace_id: string | null): Query[] {
  const all = queryClient.getQueryCache().getAll()
  return workspace_id === null ? all : all.filter(({ queryKey }) => queryKey[1] === workspace_id)
}

const visibleMs = 1_000
/** For the title and the notifications of a browser without a visible tab. */
const hiddenMs = 5_000

/** Whether this tab reads while it is hidden: one of a browser's tabs does. */
let readsHidden = false
export function readWhileHidden(reads: boolean): void {
  readsHidden = reads
}

interface DueRead {
  /** A read that began before the change may have missed it. */
  missed: boolean
}

const readAt = new WeakMap<Query, number>()
const due = new Map<Query, DueRead>()

/** Reads visible queries again now, and the others once they or their tab become visible. */
function makeStale(query: Query): void {
  query.invalidate()
  const reading = query.state.fetchStatus === 'fetching' // guard: a read that its mark overtook
  const known = due.get(query)
  if (known) known.missed ||= reading
  if (known || !query.isActive() || !(isVisible() || readsHidden)) return // guard: a hidden tab reads nothing
  due.set(query, { missed: reading })
  waitFor(query)
}

function isVisible(): boolean {
  return document.visibilityState === 'visible'
}

/** At most once a second per query, and never while the service tells the page to wait. */
function waitFor(query: Query): void {
  const earliest = (readAt.get(query) ?? 0) + (isVisible() ? visibleMs : hiddenMs) // guard: a query is read once a second
  setTimeout(() => read(query), Math.max(0, Math.max(earliest, toldUntil(query)) - Date.now()))
}

/** The end of the wait that the service asked for when it refused the last read, or 0. */
function toldUntil({ state: { error, errorUpdatedAt } }: Query): number {
  const seconds = error instanceof Refused ? error.retry_after : undefined
  return seconds === undefined ? 0 : errorUpdatedAt + seconds * 1_000 // guard: a page waits as told
}

queryClient.getQueryCache().subscribe((event) => {
  if (event.type !== 'updated' || event.action.type !== 'error') return
  // Reads again by itself, once the wait is over.
  if (toldUntil(event.query) > 0) makeStale(event.query)
})

function read(query: Query): void {
  const { missed } = due.get(query) ?? { missed: false }
  if (toldUntil(query) > Date.now()) {
    waitFor(query)
    return
  }
  readAt.set(query, Date.now())
  if (query.state.fetchStatus === 'fetching') {
    due.set(query, { missed: true })
    waitFor(query)
    return
  }
  due.delete(query)
  if (!query.isActive() || !(missed || query.isStale())) return
  void queryClient.refetchQueries({ queryKey: query.queryKey, exact: true, type: 'active' })
}
