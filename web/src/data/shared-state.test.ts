import { expect, test } from 'vitest'

// By a name that the compiler does not follow: the service's own types know no browser.
const load = (path: string) => import(path)

test('a value is followed while anything shows it: from the first until the last, and again after that', async () => {
  const { SharedState } = await load('./shared-state.ts')
  const acts: string[] = []
  const state = new SharedState(0, {
    read: (before: number) => before + 1,
    follow: () => {
      acts.push('follow')
      return () => acts.push('stop')
    },
  })
  // Nothing follows it: each look reads it.
  expect([state.get(), state.get()]).toEqual([1, 2])
  const [first, second] = [state.subscribe(() => {}), state.subscribe(() => {})]
  expect([state.get(), state.get()]).toEqual([2, 2])
  first()
  first()
  expect([acts, state.isFollowed()]).toEqual([['follow'], true])
  second()
  expect([acts, state.isFollowed()]).toEqual([['follow', 'stop'], false])
  state.subscribe(() => {})()
  expect(acts).toEqual(['follow', 'stop', 'follow', 'stop'])
})
