import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { timed } from '../../../test/harness/timed.ts'
import { type FoundEntry, readTable, type SkippedRow } from './import-table.ts'

async function read(...text: readonly string[]): Promise<(FoundEntry | SkippedRow)[]> {
  const rows: (FoundEntry | SkippedRow)[] = []
  for await (const row of readTable(text)) rows.push(row)
  return rows
}

test('other requests run while bad rows, or one row of many cells, are parsed', async () => {
  const wide = 5_000
  for (const text of [
    ['kind,value\n', 'x\n'.repeat(5_000)],
    [`${'phone,'.repeat(wide)}\n`, `${'1,'.repeat(wide)}\n`],
  ]) {
    let parsed = false
    const reading = read(...text).then((rows) => {
      parsed = true
      return rows
    })
    await nextTurn()
    expect(parsed).toBe(false)
    expect(await reading).toHaveLength(5_000)
  }
})

test('a row costs no more than its cells, however many columns the first line names', timed, async () => {
  const names = `name,${'phone,'.repeat(100_000)}\n`
  const rows = readTable([names, 'Ada,+49 170 5550101\n'.repeat(2_000)])
  const { value: first } = await rows.next()
  expect(first).toEqual({ line: 2, entry: { kind: 'phone', value: '491705550101' } })
  const startedAt = performance.now()
  let more = 0
  for await (const _ of rows) more++
  expect(performance.now() - startedAt).toBeLessThan(1_000)
  expect(more).toBe(1_999)
})
