/**
 * Segments of another format than the code's are never read. This takes them apart in batches and marks their messages as
 * pending, so that they are indexed again. It relies only on the segment's keys.
 */
import { given } from '../../../db/given.ts'
import { type Database, sql, type Tx } from '../../../db/sql.ts'
import { type DocKey, decodeKey, keyBytes } from './doc-keys.ts'
import { format } from './segment-writer.ts'

/** Rows of keys, with 80 messages each, and rows of posting lists in one batch. */
const lotMax = { keyRows: 50, listRows: 20_000 }

interface OutdatedSegment {
  readonly id: string
  readonly account_id: string
}

/** Takes a batch out of a segment of another format. False: there is none, or other processes hold them. */
export function reindexOutdated(db: Database): Promise<boolean> {
  return db.transaction(async (tx) => {
    const segment = await tx.maybe<OutdatedSegment>(sql`
      select id, account_id from search_segments where format <> ${format} order by id limit 1 for update skip locked`)
    if (!segment) return false
    if (await markPending(tx, segment)) return true
    if (await dropLists(tx, segment)) return true
    await tx.run(sql`delete from search_segments where id = ${segment.id}`)
    return true
  })
}

/** The remaining keys show which messages are still to be marked. */
async function markPending(tx: Tx, { id: segment_id, account_id }: OutdatedSegment): Promise<boolean> {
  const rows = await tx.rows<{ bytes: Buffer }>(sql`
    delete from search_ranks where ctid = any(array(
      select ctid from search_ranks where segment_id = ${segment_id} order by part limit ${lotMax.keyRows}))
    returning bytes`)
  const keys = rows.flatMap(({ bytes }) => keysIn(bytes))
  if (keys.length === 0) return false
  // Skips messages that were edited since: the edit has marked them as pending.
  await tx.run(sql`
    insert into search_pending (account_id, sent_at, chat_id, id, workspace_id)
    select m.account_id, m.sent_at, m.chat_id, m.id, m.workspace_id
    from ${given(keys, { chat_id: 'bigint', id: 'bigint', listing: 'smallint' })} as k
    cross join lateral (
      select * from messages m where m.account_id = ${account_id} and m.chat_id = k.chat_id and m.id = k.id offset 0) m
    where m.listing = k.listing and m.deleted_at is null
    on conflict do nothing`)
  return true
}

function keysIn(bytes: Buffer): DocKey[] {
  return Array.from({ length: Math.floor(bytes.length / keyBytes) }, (_, at) =>
    decodeKey(bytes, at * keyBytes),
  )
}

async function dropLists(tx: Tx, { id }: OutdatedSegment): Promise<boolean> {
  const count = await tx.run(sql`
    delete from search_lists where ctid = any(array(
      select ctid from search_lists where segment_id = ${id} limit ${lotMax.listRows}))`)
  return count > 0
}
