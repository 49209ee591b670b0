/** A thread that makes its share of a table's rows and copies them in over its own connection. */
import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'

/** The rows whose number, divided by `parts`, leaves `part`. */
export interface Share {
  readonly part: number
  readonly parts: number
}

export interface CopyJob extends Share {
  readonly connection: pg.ClientConfig
  readonly rows: string
  readonly table: string
  readonly from: unknown
}

const blockSize = 65_536

const { connection, rows, table, from, part, parts }: CopyJob = workerData
const { columns, rowsOf } = await import(rows)
const client = new pg.Client(connection)
await client.connect()
// No triggers: the rows satisfy the foreign keys by construction.
await client.query("set session_replication_role = 'replica'")
const stream = client.query(copyFrom(`copy ${table} (${columns[table]}) from stdin`))
let block = ''
let made = 0
for (const row of rowsOf(table, from, { part, parts })) {
  block += row
  made++
  if (block.length < blockSize) continue
  if (!stream.write(block)) await once(stream, 'drain')
  parentPort?.postMessage(made)
  block = ''
  made = 0
}
stream.end(block)
await once(stream, 'finish')
parentPort?.postMessage(made)
await client.end()
