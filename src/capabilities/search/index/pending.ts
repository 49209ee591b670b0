/**
 * Messages that are in no segment yet, and how they become one. Any number of processes may index concurrently: each locks
 * the pending messages it takes and skips those that others hold.
 */
import type { AccountKey } from '../../../contract.ts'
import { given } from '../../../db/given.ts'
import { type Database, type Db, sql } from '../../../db/sql.ts'
import type { Candidate } from './condition.ts'
import { byTime, encodeKeys } from './doc-keys.ts'
import { type Document, indexDocuments } from './indexer.ts'
import { addKeys, addLists, addSegment } from './segment-writer.ts'

/** An account is indexed once it has this many pending messages, or once one of them has waited this long. */
const enough = { messages: 64, seconds: 15 }
/** Messages in one segment. An edit of one of them waits until all are indexed (`lock_timeout`). */
const batchMax = 4_000
/** Characters in one segment, unless a single message has more: long messages take more time and memory. */
const charactersMax = 1_000_000

/** Accounts that are due for indexing. */
export async function findPending(db: Db): Promise<AccountKey[]> {
  return db.rows<AccountKey>(sql`
    with recursive waiting (account_id, workspace_id) as (
      (select account_id, workspace_id from search_pending order by account_id limit 1)
      union all
      select n.account_id, n.workspace_id from waiting s cross join lateral (
        select p.account_id, p.workspace_id from search_pending p
        where p.account_id > s.account_id order by p.account_id limit 1) n)
    select s.account_id, s.workspace_id from waiting s cross join lateral (
      select count(*) as messages, min(since) as since from (
        select since from search_pending p where p.account_id = s.account_id limit ${enough.messages}) p) p
    where p.messages >= ${enough.messages} or p.since < clock_timestamp() - make_interval(secs => ${enough.seconds})`)
}

/** How many messages wait for indexing, over all accounts, counted up to `most`. */
export async function countPending(db: Db, most: number): Promise<number> {
  const { count } = await db.one<{ count: number }>(sql`
    select count(*)::int as count from (select from search_pending limit ${most}) p`)
  return count
}

type PendingMessage = Candidate & { readonly id: string }

/** The newest pending messages of each account, at most `each`. */
export function readPending(db: Db, account_ids: readonly string[], each: number): Promise<PendingMessage[]> {
  return db.rows<PendingMessage>(sql`
    select m.account_id, m.chat_id, m.id, m.sender_id, m.sent_at, m.text from unnest(${account_ids}::text[]) as a (id)
    cross join lateral (
      select p.account_id, p.chat_id, p.id from search_pending p where p.account_id = a.id
      order by p.sent_at desc limit ${each}) p
    cross join lateral (
      select * from messages m where m.account_id = p.account_id and m.chat_id = p.chat_id and m.id = p.id offset 0) m
    where m.deleted_at is null`)
}

interface PendingRow extends Omit<Document, 'at'> {
  readonly ctid: string
  readonly is_there: boolean
  readonly sent_at: Date
}

/** Builds a segment from the account's newest pending messages. Returns how many were taken. */
export function indexPending(db: Database, owner: AccountKey): Promise<number> {
  return db.transaction(async (tx) => {
    // Locks first, then reads: an edit in between waits, and its message is indexed again.
    const locked = await tx.rows<{ ctid: string; chat_id: string; id: string }>(sql`
      select ctid::text, chat_id, id from search_pending where account_id = ${owner.account_id}
      order by sent_at desc limit ${batchMax} for update skip locked`)
    if (locked.length === 0) return 0
    const taken = await tx.rows<PendingRow>(sql`
      select ctid, is_there, chat_id, id, sender_id, sent_at, text, listing from (
        select locked.ctid, m.id is not null and m.deleted_at is null as is_there,
          m.chat_id, m.id, m.sender_id, m.sent_at, m.text, m.listing,
          place, sum(length(m.text)) over (order by place) as characters
        from ${given(locked, { ctid: 'text', chat_id: 'bigint', id: 'bigint', place: 'ordinality' })} as locked
        left join lateral (
          select * from messages m
          where m.account_id = ${owner.account_id} and m.chat_id = locked.chat_id and m.id = locked.id offset 0) m on true) m
      where place = 1 or coalesce(characters, 0) <= ${charactersMax}`)
    await tx.run(sql`
      delete from search_pending where ctid = any(${taken.map(({ ctid }) => ctid)}::text[]::tid[])`)
    const documents = taken
      .filter(({ is_there }) => is_there)
      .map((row) => ({ ...row, at: row.sent_at.getTime() }))
      .sort(byTime)
    const [newest, oldest] = [documents[0], documents.at(-1)]
    if (!newest || !oldest) return taken.length
    const segment = await addSegment(tx, owner, {
      messages: documents.length,
      oldest_at: oldest.sent_at,
      newest_at: newest.sent_at,
    })
    await addKeys(tx, segment, { docId: 0, keys: encodeKeys(documents) })
    await addLists(tx, segment, await indexDocuments(documents))
    return taken.length
  })
}
