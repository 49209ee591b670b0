/**
 * New messages become a segment, many at once: the lists that searches read. Any number of processes may do this side by
 * side: each locks what it works on.
 */
import type { Owner } from '../../contract.ts'
import { type Database, type Db, sql } from '../../db/sql.ts'
import { byTime, encodeKeys } from './keys.ts'
import { type Listed, listMessages } from './listing.ts'
import { addLists, addSegment, RankWriter } from './write.ts'

/** Fewer wait for others, so long: searches read them one by one. */
const waiting = { messages: 64, seconds: 15 }
/** So many at once: an edit of one of them waits for the end, and may not wait long (`lock_timeout`). */
const batchMax = 4_000
/** And so many characters, or a single message: where all are long, it would take many times as long, and as much memory. */
const textsMax = 1_000_000

/** Accounts with enough to list, or with something that has waited long enough. */
export async function findPending(db: Db): Promise<Owner[]> {
  return db.rows<Owner>(sql`
    with recursive waiting (account_id, workspace_id) as (
      (select account_id, workspace_id from search_pending order by account_id limit 1)
      union all
      select n.account_id, n.workspace_id from waiting s cross join lateral (
        select p.account_id, p.workspace_id from search_pending p
        where p.account_id > s.account_id order by p.account_id limit 1) n)
    select s.account_id, s.workspace_id from waiting s cross join lateral (
      select count(*) as messages, min(since) as since from (
        select since from search_pending p where p.account_id = s.account_id limit ${waiting.messages}) p) p
    where p.messages >= ${waiting.messages} or p.since < clock_timestamp() - make_interval(secs => ${waiting.seconds})`)
}

export async function countPending(db: Db, most: number): Promise<number> {
  const { count } = await db.one<{ count: number }>(sql`
    select count(*)::int as count from (select from search_pending limit ${most}) p`)
  return count
}

interface Row extends Omit<Listed, 'at'> {
  readonly sent_at: Date
}

/** Makes a segment of what is pending in the account, newest first. Returns how many were pending. */
export function listPending(db: Database, owner: Owner): Promise<number> {
  return db.transaction(async (tx) => {
    // Locked first and read then: an edit that comes in between waits, and lists its message anew.
    const locked = await tx.rows<{ ctid: string; chat_id: string; id: string }>(sql`
      select ctid::text, chat_id, id from search_pending where account_id = ${owner.account_id}
      order by sent_at desc limit ${batchMax} for update skip locked`)
    if (locked.length === 0) return 0
    const taken = await tx.rows<Row & { ctid: string; is_there: boolean }>(sql`
      select ctid, is_there, chat_id, id, sender_id, sent_at, text, listing from (
        select locked.ctid, m.id is not null and m.deleted_at is null as is_there,
          m.chat_id, m.id, m.sender_id, m.sent_at, m.text, m.listing,
          place, sum(length(m.text)) over (order by place) as texts
        from unnest(${locked.map(({ ctid }) => ctid)}::text[], ${locked.map(({ chat_id }) => chat_id)}::bigint[],
          ${locked.map(({ id }) => id)}::bigint[]) with ordinality as locked (ctid, chat_id, id, place)
        left join lateral (
          select * from messages m
          where m.account_id = ${owner.account_id} and m.chat_id = locked.chat_id and m.id = locked.id offset 0) m on true) m
      where place = 1 or coalesce(texts, 0) <= ${textsMax}`)
    await tx.run(sql`
      delete from search_pending where ctid = any(${taken.map(({ ctid }) => ctid)}::text[]::tid[])`)
    const messages = taken
      .filter(({ is_there }) => is_there)
      .map((row) => ({ ...row, at: row.sent_at.getTime() }))
      .sort(byTime)
    const [newest, oldest] = [messages[0], messages.at(-1)]
    if (!newest || !oldest) return taken.length
    const segment = await addSegment(tx, owner, {
      oldest_at: new Date(oldest.at),
      newest_at: new Date(newest.at),
    })
    const ranks = new RankWriter(tx, segment)
    await ranks.add(encodeKeys(messages))
    await ranks.end()
    await addLists(tx, segment, await listMessages(messages))
    return taken.length
  })
}
