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
