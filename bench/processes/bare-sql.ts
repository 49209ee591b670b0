/** A bare pool that asks the same SQL, `count` times, `clients` at once. */
import pg from 'pg'

interface Job {
  readonly connection: pg.PoolConfig
  readonly text: string
  readonly values: readonly unknown[]
  readonly count: number
  readonly clients: number
}

process.on('message', async (job: Job) => {
  const pool = new pg.Pool({ ...job.connection, max: job.clients })
  let left = job.count
  await Promise.all(
    Array.from({ length: job.clients }, async () => {
      while (left-- > 0) await pool.query({ name: 'page', text: job.text, values: job.values as unknown[] })
    }),
  )
  await pool.end()
  process.send?.({ done: true })
})
process.send?.({ address: '' })
