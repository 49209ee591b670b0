/** Callers that wait for the same row: a key that ran again while its first caller had not heard yet. */
import { expect, test } from 'vitest'
import type { Settled, Wake } from '../../app.ts'
import type { Db } from '../../db/sql.ts'
import { watchOperations } from './waiting.ts'

test('two callers of one row are both told at once', async () => {
  const rows: Partial<Settled>[] = []
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
