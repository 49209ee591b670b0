/** Where the dashboard leads by itself: to its own pages only, and to a workspace that can be opened. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

// By a name that the compiler does not follow: the service's own types know no browser.
const load = (path: string) => import(path)

beforeEach(() => void vi.stubGlobal('location', { origin: 'https://parley.example' }))
afterEach(() => void vi.unstubAllGlobals())

test('a sign-in returns to a page of the dashboard, and to no other address', async () => {
  const { safeReturn } = await load('./place.ts')
  const page = '/dashboard/w/one/inbox?chat=a'
  expect(safeReturn(page)).toBe(page)
  const others = [
    undefined,
    'https://elsewhere.example/dashboard/',
    '//elsewhere.example/dashboard/',
    '/dashboard/..//elsewhere.example/',
    '/dashboard/../api/v1/me',
    '/dashboard/%2e%2e/api/v1/me',
    '/dashboard/\\elsewhere.example',
    'javascript:alert(1)',
  ]
  for (const address of others) expect(safeReturn(address), address).toBe('/dashboard/')
})

test('the workspace that was opened last is opened again, unless it is disabled or gone', async () => {
  const { lastWorkspace } = await load('./place.ts')
  const session = (...disabled: (string | null)[]) => ({
    workspaces: disabled.map((disabled_at, at) => ({ id: `w${at}`, disabled_at })),
  })
  const last = (id: string | null, ...disabled: (string | null)[]) => {
    vi.stubGlobal('localStorage', { getItem: () => id })
    return lastWorkspace(session(...disabled))?.id
  }
  expect(last('w1', null, null)).toBe('w1')
  expect(last('w1', null, '2026-01-01T00:00:00Z')).toBe('w0')
  expect(last('gone', '2026-01-01T00:00:00Z', null)).toBe('w1')
  expect(last(null, '2026-01-01T00:00:00Z')).toBe('w0')
  expect(last(null)).toBeUndefined()
})
