/** When the service tells a page to wait, the page reads nothing before that time, whatever marks arrive, and then reads again. */
import { QueryObserver } from '@tanstack/react-query'
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { Refused } from '../api.ts'
import { queryClient } from '../queries.ts'

// By a name that the compiler does not follow: the service's own types know no browser.
const load = (path: string) => import(path)
let staleEverything: () => void

beforeAll(async () => {
  staleEverything = (await load('./stale.ts')).staleEverything
})
beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('document', { visibilityState: 'visible' })
})
afterEach(() => {
  queryClient.clear()
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

const tooMany = () =>
  new Refused(429, { code: 'rate_limited', error: 'Too many requests.' }, new Headers({ 'retry-after': '7' }))

test('a refused read waits the seconds of Retry-After', async () => {
  const read = vi.fn().mockRejectedValueOnce(tooMany()).mockResolvedValue('the board')
  const seen = new QueryObserver(queryClient, { queryKey: ['board', 'one'], queryFn: read })
  const stop = seen.subscribe(() => {})
  for (let seconds = 0; seconds < 6; seconds++) {
    await vi.advanceTimersByTimeAsync(1_000)
    staleEverything()
  }
  expect(read).toHaveBeenCalledTimes(1)
  expect(seen.getCurrentResult().error).toBeInstanceOf(Refused)
  await vi.advanceTimersByTimeAsync(2_000)
  expect(read).toHaveBeenCalledTimes(2)
  expect(seen.getCurrentResult().data).toBe('the board')
  stop()
})

test('a mark that arrives during a read which is refused waits too', async () => {
  let refuse = (_: Refused) => {}
  const read = vi
    .fn()
    .mockResolvedValueOnce('the old board')
    .mockImplementationOnce(() => new Promise((_, reject) => (refuse = reject)))
    .mockResolvedValue('the new board')
  const seen = new QueryObserver(queryClient, { queryKey: ['board', 'two'], queryFn: read })
  const stop = seen.subscribe(() => {})
  await vi.advanceTimersByTimeAsync(1_000)
  staleEverything()
  await vi.advanceTimersByTimeAsync(1_000)
  staleEverything()
  refuse(tooMany())
  await vi.advanceTimersByTimeAsync(6_000)
  expect(read).toHaveBeenCalledTimes(2)
  expect(seen.getCurrentResult().data).toBe('the old board')
  await vi.advanceTimersByTimeAsync(3_000)
  expect(seen.getCurrentResult().data).toBe('the new board')
  expect(seen.getCurrentResult().error).toBeNull()
  stop()
})

test('a mark of the suppression list reaches the lists of chats, the board and every chat', async () => {
  const { staleBy } = await load('./stale.ts')
  const { keys } = await load('../keys.ts')
  const shown = [
    keys.suppressions('w', null, null),
    keys.inbox('w', 'all', null),
    keys.board('w'),
    keys.chat('w', 'acc', 'platform:chat:42', 'suppression'),
  ]
  const elsewhere = keys.inbox('another', 'all', null)
  for (const key of [...shown, elsewhere]) queryClient.setQueryData(key, {})
  staleBy([{ workspace_id: 'w', kind: 'suppressions', account_id: null, chat_id: null }])
  const isStale = (key: readonly unknown[]) => queryClient.getQueryState(key)?.isInvalidated
  expect(shown.map(isStale)).toEqual([true, true, true, true])
  expect(isStale(elsewhere)).toBe(false)
})

/** A query that a page shows, and how often it was read. */
function showQuery(queryKey: readonly unknown[]) {
  const read = vi.fn().mockResolvedValue('read')
  const stop = new QueryObserver(queryClient, { queryKey, queryFn: read }).subscribe(() => {})
  return { read, stop }
}

const markOf = (kind: string, chat = {}) => ({
  kind,
  workspace_id: 'w',
  account_id: null,
  chat_id: null,
  ...chat,
})

test('however many marks arrive, a query is read at most once a second, and once after the last', async () => {
  const { staleBy } = await load('./stale.ts')
  const { keys } = await load('../keys.ts')
  const { read, stop } = showQuery(keys.inbox('w', 'list', 'all'))
  await vi.advanceTimersByTimeAsync(1_000)
  expect(read).toHaveBeenCalledTimes(1)
  for (let marks = 0; marks < 300; marks++) {
    staleBy([markOf('messages', { account_id: 'a', chat_id: 'c' })])
    await vi.advanceTimersByTimeAsync(10)
  }
  await vi.advanceTimersByTimeAsync(1_000)
  // Three seconds of marks: at once, after each second, and after the last one.
  expect(read.mock.calls.length).toBeGreaterThanOrEqual(4)
  expect(read.mock.calls.length).toBeLessThanOrEqual(5)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(read.mock.calls.length).toBeLessThanOrEqual(5)
  stop()
})

test('a query that was being read when its mark arrived is read again', async () => {
  const { staleBy } = await load('./stale.ts')
  const { keys } = await load('../keys.ts')
  let answer = (_: string) => {}
  const read = vi
    .fn()
    .mockImplementationOnce(() => new Promise((resolve) => (answer = resolve)))
    .mockResolvedValue('after the change')
  const seen = new QueryObserver(queryClient, { queryKey: keys.chat('w', 'a', 'c'), queryFn: read })
  const stop = seen.subscribe(() => {})
  staleBy([markOf('chats', { account_id: 'a', chat_id: 'c' })])
  answer('before the change')
  await vi.advanceTimersByTimeAsync(2_000)
  expect(seen.getCurrentResult().data).toBe('after the change')
  stop()
})

test('a hidden tab reads nothing, unless it is the one that notifies', async () => {
  const { staleBy, readWhileHidden } = await load('./stale.ts')
  const { keys } = await load('../keys.ts')
  const { read, stop } = showQuery(keys.counts('w', null))
  await vi.advanceTimersByTimeAsync(1_000)
  vi.stubGlobal('document', { visibilityState: 'hidden' })
  staleBy([markOf('chats')])
  await vi.advanceTimersByTimeAsync(10_000)
  expect(read).toHaveBeenCalledTimes(1)
  readWhileHidden(true)
  staleBy([markOf('chats')])
  await vi.advanceTimersByTimeAsync(10_000)
  expect(read).toHaveBeenCalledTimes(2)
  readWhileHidden(false)
  stop()
})

const kinds =
  'chats messages operations notes assignees pipeline columns saved_replies accounts campaigns suppressions keys members webhooks workspace'

test.each(kinds.split(' '))(
  'a mark of %s reaches something of its workspace and nothing of another',
  async (kind) => {
    const { staleBy } = await load('./stale.ts')
    const { keys } = await load('../keys.ts')
    const ofUser = [
      'session',
      'sessions',
      'approvals',
      'sending',
      'gates',
      'allowlists',
      'instance',
      'setup',
      'ways',
    ]
    const names = Object.keys(keys).filter((name) => !ofUser.includes(name))
    for (const name of names) {
      for (const workspace of ['w', 'another']) queryClient.setQueryData(keys[name](workspace, 'a', 'c'), {})
      queryClient.setQueryData(keys[name]('w', 'a', 'another chat'), {})
    }
    staleBy([markOf(kind, { account_id: 'a', chat_id: 'c' })])
    const stale = queryClient.getQueryCache().findAll({ predicate: ({ state }) => state.isInvalidated })
    expect(stale).not.toEqual([])
    expect(stale.filter(({ queryKey }) => queryKey[1] === 'another')).toEqual([])
    // What is about a chat is read again for this chat only.
    const elsewhere = stale.filter(({ queryKey }) => queryKey[3] === 'another chat')
    expect(elsewhere.filter(({ queryKey }) => queryKey[0] === 'timeline')).toEqual([])
  },
)
