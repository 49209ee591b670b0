/** A thread that puts the messages of its share of the accounts into the lists that searches read. */
import { parentPort, workerData } from 'node:worker_threads'
import { mergeSegments } from '../../src/capabilities/search/merge.ts'
import { listPending } from '../../src/capabilities/search/segments.ts'
import type { Owner } from '../../src/contract.ts'
import { type Connection, openDatabase } from '../../src/db/pool.ts'
import { sql } from '../../src/db/sql.ts'
import type { Share } from './copy.ts'

export interface ListJob extends Share {
  readonly connection: Connection
}

const { connection, part, parts }: ListJob = workerData
const db = openDatabase(connection, { pool_size: 1 })
const owners = await db.rows<Owner>(sql`select id as account_id, workspace_id from accounts order by id`)
for (const owner of owners.filter((_, at) => at % parts === part)) {
  for (let listed = 1; listed > 0; ) {
    listed = await listPending(db, owner)
    parentPort?.postMessage(listed)
  }
  // As the worker does it when nothing comes any more.
  await mergeSegments(db, owner, { all: true })
}
await db.close()
