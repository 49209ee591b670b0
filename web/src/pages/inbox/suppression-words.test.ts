import { expect, test } from 'vitest'

// By a name that the compiler does not follow: the service's own types know no browser.
const load = (path: string) => import(path)
const date = (at: string) => at.slice(5, 10)
const created_at = '2026-11-12T08:00:00.000Z'

test('an entry says who put it there and when: the message of the person, not its arrival', async () => {
  const { askedText, suppressedWords } = await load('./suppression-words.ts')
  const evidence = { text: 'STOP', timestamp: '2026-11-09T14:02:00.000Z' }
  expect(suppressedWords({ source: 'opt_out', created_at, evidence }, date)).toBe('Asked to stop on 11-09')
  expect(suppressedWords({ source: 'opt_out', created_at, evidence: {} }, date)).toBe(
    'Asked to stop on 11-12',
  )
  expect(suppressedWords({ source: 'operator', created_at, evidence: {} }, date)).toBe('Suppressed on 11-12')
  expect(suppressedWords({ source: 'import', created_at, evidence: { line: 3 } }, date)).toBe(
    'Suppressed on 11-12, by an import',
  )
  expect(askedText({ evidence })).toBe('STOP')
  expect(askedText({ evidence: { text: ' ' } })).toBeUndefined()
})
