/** Callers that wait for the same row: a key that ran again before its first caller got an answer. */
import { expect, test } from 'vitest'
import type { LedgerOperation, Wake } from '../app.ts'
import type { Db } from '../db/sql.ts'
import { watchOperations } from './waiting.ts'

test('two callers of one row both get its outcome', async () => {
  const rows: Partial<LedgerOperation>[] = []
  let wake = () => {}
  const waiting = watchOperations(
    { rows: async () => rows } as unknown as Db,
    {
      on: (_: string, listener: () => void) => {
        wake = listener
        return () => {}
      },
    } as unknown as Wake,
  )
  const told = Promise.all([
    waiting.settled({ id: 'a', queued_no: 1 }, 5_000),
    waiting.settled({ id: 'a', queued_no: 1 }, 5_000),
  ])
  rows.push({ id: 'a', queued_no: 1, state: 'completed' })
  wake()
  expect(await told).toEqual([rows[0], rows[0]])
  waiting.close()
}, 2_000)

/** A database that answers with these rows, and a wake-up that comes only when the test sends it. */
function watch(rows: Partial<LedgerOperation>[]) {
  let wake = () => {}
  const waiting = watchOperations(
    { rows: async () => rows } as unknown as Db,
    {
      on: (_: unknown, listener: () => void) => {
        wake = listener
        return () => {}
      },
    } as unknown as Wake,
  )
  return { waiting, wake: () => wake() }
}

test("a caller that has queued a key again does not get the earlier attempt's outcome", async () => {
  const rows: Partial<LedgerOperation>[] = [{ id: 'a', queued_no: 1, state: 'released' }]
  const { waiting, wake } = watch(rows)
  const told = waiting.settled({ id: 'a', queued_no: 2 }, 5_000)
  wake()
  await new Promise((resolve) => setImmediate(resolve))
  rows.splice(0, 1, { id: 'a', queued_no: 2, state: 'completed' })
  wake()
  expect(await told).toMatchObject({ queued_no: 2, state: 'completed' })
  waiting.close()
}, 5_000)

test('the poll finds an outcome whose wake-up was lost', async () => {
  const { waiting } = watch([{ id: 'a', queued_no: 1, state: 'completed' }])
  expect(await waiting.settled({ id: 'a', queued_no: 1 }, 10_000)).toMatchObject({ state: 'completed' })
  waiting.close()
}, 15_000)
