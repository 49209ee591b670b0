/** Open pages are notified of every change: each route that writes says what it touches. */
import { describe, expect, test } from 'vitest'
import { ownRoutes, workspaceRoutes } from '../src/lists/dashboard-routes.ts'
import { routes } from '../src/lists/routes.ts'
import { markKinds } from '../src/mark.ts'
import type { Route } from '../src/route.ts'

const listed: readonly Route[] = [...routes, ...workspaceRoutes, ...ownRoutes]
/** Before a visitor has signed in, no user's pages could show it. */
const writing = listed.filter(({ effect, asked_by }) => effect !== 'read' && asked_by !== 'visitor')

test('there are routes that write', () => {
  expect(writing.length).toBeGreaterThan(30)
})

describe.each(writing.map((route) => [`${route.method} ${route.path}`, route] as const))('%s', (_, route) => {
  test('says what it touches', () => {
    expect(route.touches?.length ?? 0).toBeGreaterThan(0)
    for (const kind of route.touches ?? []) expect(markKinds).toContain(kind)
    // A mark without a place says nothing, and `everything` is for lost marks.
    expect(route.touches).not.toContain('everything')
  })
})

test('a route that reads touches nothing', () => {
  expect(listed.filter(({ effect, touches }) => effect === 'read' && touches)).toEqual([])
})
