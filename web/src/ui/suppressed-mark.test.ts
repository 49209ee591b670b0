import { expect, test } from 'vitest'

// By a name that the compiler does not follow: the service's own types know no browser.
const load = (path: string) => import(path)

test('a list tells who asked to stop from who was suppressed', async () => {
  const { suppressedMark } = await load('./suppressed-mark.ts')
  expect(suppressedMark({ suppressed: true, asked_to_stop: true })).toBe('Asked to stop')
  expect(suppressedMark({ suppressed: true, asked_to_stop: false })).toBe('Suppressed')
  expect(suppressedMark({ suppressed: false, asked_to_stop: false })).toBeNull()
})
