/** A thread that indexes the messages of its share of the accounts for search, and merges their segments. */
import { parentPort, workerData } from 'node:worker_threads'
import { indexPending, mergeSegments } from '../../src/capabilities/search/index/search-index.ts'
import type { AccountKey } from '../../src/contract.ts'
import { type Connection, openDatabase } from '../../src/db/pool.ts'
import { sql } from '../../src/db/sql.ts'
import type { Share } from './copy.ts'

export interface ListJob extends Share {
  readonly connection: Connection
}

const { connection, part, parts }: ListJob = workerData
const db = openDatabase(connection, { pool_size: 1 })
const owners = await db.rows<AccountKey>(sql`select id as account_id, workspace_id from accounts order by id`)
for (const owner of owners.filter((_, at) => at % parts === part)) {
  for (let indexed = 1; indexed > 0; ) {
    indexed = await indexPending(db, owner)
    parentPort?.postMessage(indexed)
  }
  // Like the worker when no more messages arrive.
  await mergeSegments(db, owner, { force: true })
}
await db.close()
