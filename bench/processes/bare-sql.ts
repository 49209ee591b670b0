/** A bare pool that runs the same SQL for each of `count` requests, `clients` of them at once. */
import pg from 'pg'
import type { Sql } from '../../src/db/sql.ts'
import { benchDirectory } from '../data.ts'
import { connectionTo } from '../load.ts'

interface Job {
  readonly statements: readonly Sql[]
  readonly count: number
  readonly clients: number
}

// As many connections as the service's pool may open.
const pool = new pg.Pool({ ...connectionTo(benchDirectory), max: 16 })
process.on('message', async (message: Job | 'stop') => {
  if (message === 'stop') return pool.end().then(() => process.exit(0))
  const { statements, count, clients } = message
  let left = count
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (left-- > 0) {
        for (const { name, text, values } of statements) {
          await pool.query({ name, text, values: values as unknown[] })
        }
      }
    }),
  )
  process.send?.({ done: true })
})
process.send?.({ address: '' })
