import { expect, test } from 'vitest'
import { findDisplaced } from './streams.ts'

/** `A/ana` is a stream of Ana, who belongs to the workspace A; `AB/bo` one of Bo, who belongs to A and B. */
function stream(text: string, at = 0) {
  const [workspaces = '', user_id = ''] = text.split('/')
  return { at, audience: { session_id: text, user_id, operator: false, workspaces: [...workspaces] } }
}

/** The place in the list of the stream that ends for the new one. */
function displacedBy(added: string, open: readonly string[]): number | undefined {
  const streams = open.map(stream)
  return findDisplaced(streams, stream(added).audience)?.at
}

test('the oldest stream of the user with the most gives way to a user of another workspace', () => {
  expect(displacedBy('B/bo', ['A/ana', 'A/amy', 'A/ana', 'A/ana'])).toBe(0)
  expect(displacedBy('B/bo', ['A/amy', 'A/ana', 'A/ana', 'B/bo'])).toBe(1)
})

test('the workspace with the most streams gives way, even if none of its users has several', () => {
  expect(displacedBy('B/bo', ['B/ben', 'A/ana', 'A/amy', 'A/ada'])).toBe(1)
})

test('within one workspace the user with the most gives way, which may be the one who asks', () => {
  expect(displacedBy('A/amy', ['A/ana', 'A/ana', 'A/ada'])).toBe(0)
  expect(displacedBy('A/ana', ['A/amy', 'A/ana', 'A/ana'])).toBe(1)
  expect(displacedBy('A/ana', ['B/bo', 'B/bo', 'A/ana', 'A/ana', 'A/ana'])).toBe(2)
})

test('no stream gives way where all have as many', () => {
  expect(displacedBy('A/ada', ['A/ana', 'A/amy'])).toBeUndefined()
  expect(displacedBy('B/bo', ['A/ana'])).toBeUndefined()
  expect(displacedBy('/operator', ['/root'])).toBeUndefined()
})

test('a user of several workspaces counts for the one with the fewest streams', () => {
  expect(displacedBy('AB/bo', ['A/ana', 'A/amy', 'A/ada'])).toBe(0)
  expect(displacedBy('B/ben', ['AB/bo', 'A/ana', 'A/amy', 'A/ada'])).toBe(1)
})
