import { expect, test } from 'vitest'
import { timed } from '../../../test/harness/timed.ts'
import { readTable } from './import-table.ts'

test('a row costs no more than its cells, however many columns the first line names', timed, async () => {
  const names = `name,${'phone,'.repeat(100_000)}\n`
  const rows = readTable([names, 'Ada,+49 170 5550101\n'.repeat(2_000)])
  await rows.next()
  const startedAt = performance.now()
  const { value: known } = await rows.next()
  expect(performance.now() - startedAt).toBeLessThan(1_000)
  expect(known).toHaveLength(2_000)
  expect(known?.[0]).toEqual({ line: 2, entry: { kind: 'phone', value: '491705550101' } })
})

test('a file with more than a million invalid rows is refused with the line', async () => {
  const read = async (count: number) => {
    let rows = 0
    for await (const known of readTable(['username\n', '=\n'.repeat(count)])) rows += known.length
    return rows
  }
  expect(await read(1_000_000)).toBe(1_000_000)
  await expect(read(1_000_001)).rejects.toThrow(
    /^More than 1,000,000 rows have no identity, up to line 1000002: /,
  )
})
