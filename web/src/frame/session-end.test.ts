/** The end of a session says what has become of what was being written, and nothing more. */
import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { FakeDatabase, FakeStorage } from '../../../test/harness/fake-database.ts'

const place = { user_id: 'user', workspace_id: 'workspace', kind: 'note', of: 'acc_a platform:chat:42' }

// By a name that the compiler does not follow: the service's own types know no browser.
const load = (path: string) => import(path)
// biome-ignore lint/suspicious/noExplicitAny: see above.
let web: any
let storage = new FakeStorage()

/** A new page, whose user is signed in. */
beforeEach(async () => {
  storage = new FakeStorage()
  vi.stubGlobal('indexedDB', new FakeDatabase().factory)
  vi.stubGlobal('localStorage', storage)
  vi.stubGlobal('BroadcastChannel', undefined)
  vi.resetModules()
  web = {
    ...(await load('../data/kept.ts')),
    ...(await load('../data/use-kept.ts')),
    ...(await load('../data/queries.ts')),
    ...(await load('../pages/entrance/session-ended.ts')),
    ...(await load('./session-end.ts')),
  }
  web.queryClient.setQueryData(web.sessionQuery.queryKey, {})
})
afterAll(() => void vi.unstubAllGlobals())

function type(text: string): void {
  const keeper = web.keep(place, '')
  keeper.shown.subscribe(() => {})
  keeper.change(() => text)
}

/** The sentence of the sign-in page. */
function said(): string {
  const search = web.signInSearch('/profile')
  expect(search.return_to).toBe('/dashboard/profile')
  web.queryClient.clear()
  // Noticed again, by a navigation that was under way.
  expect(web.signInSearch('/profile').ended).toBe(search.ended)
  return web.endedWords[search.ended]
}

test('with nothing written the end of a session promises nothing', () => {
  type('')
  expect(said()).toBe('')
})

test('what was written is kept', () => {
  type('Half a thought')
  expect(said()).toBe('What you wrote is kept.')
})

test('what stands in a form without a keeper is not kept, and the page does not say so', () => {
  const empty = web.noteUnkept()
  empty()
  web.noteUnkept()
  expect(said()).toBe('What stood in the open form is not kept.')
})

test('what was written beside such a form is kept, and the form is not', () => {
  type('Half a thought')
  web.noteUnkept()
  expect(said()).toBe('What you wrote is kept, but not what stood in the open form.')
})

test('a browser that stores nothing says that it could not keep it', () => {
  storage.full = true
  type('Half a thought')
  expect(said()).toBe('This browser could not keep what you wrote.')
})

test('what a keeper takes is told apart from what a form has by itself', () => {
  expect(web.isKeptBy(() => {})).toBe(false)
  expect(web.isKeptBy(() => type('Half a thought'))).toBe(true)
})

test('a page that has read no session says nothing about an end', () => {
  web.queryClient.clear()
  expect(web.signInSearch('/profile')).toEqual({ return_to: '/dashboard/profile' })
})
