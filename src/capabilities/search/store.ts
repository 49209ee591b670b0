/** The statements of a search. Each begins with an account, in an index. */
import { type Db, sql } from '../../db/sql.ts'
import { positionOf, secondOf, timesOf } from '../../lib/postings.ts'
import type { Candidate } from './conditions.ts'
import type { Pieces } from './evaluate.ts'
import { packed, unpack } from './pack.ts'

/** Where to look: whole accounts, or one chat of one account. */
export interface Place {
  readonly account_ids: readonly string[]
  /** Its number. */
  readonly chat_id: string | undefined
}

export interface Times {
  /** From `from` until before `until`, in milliseconds since 1970. */
  readonly from: number
  readonly until: number
}

/** A message, with its place in the lists. */
export interface Placed extends Candidate {
  readonly id: string
  readonly listing: number
  readonly is_sender: boolean
}

const placed = sql`m.account_id, m.chat_id, m.id, m.listing, m.sender_id, m.is_sender, m.sent_at, m.text`

/** And the name of its chat. */
export interface Found extends Placed {
  readonly chat_name: string
}

const found = sql`${placed}, coalesce(
  (select c.name from chats c where c.account_id = m.account_id and c.chat_id = m.chat_id), '') as chat_name`

export function positionIn({ chat_id, id, listing, sent_at }: Stale): number {
  return positionOf({ chat_id, id, listing, sent_at: sent_at.getTime() })
}

/** What no list has yet, the newest of each account, at most `each`. */
export function readPending(db: Db, account_ids: readonly string[], each: number): Promise<Placed[]> {
  return db.rows<Placed>(sql`
    select ${placed} from unnest(${account_ids}::text[]) as a (id)
    cross join lateral (
      select p.account_id, p.chat_id, p.id from search_pending p where p.account_id = a.id
      order by p.sent_at desc limit ${each}) p
    cross join lateral (
      select * from messages m where m.account_id = p.account_id and m.chat_id = p.chat_id and m.id = p.id offset 0) m
    where m.deleted_at is null`)
}

export type Stale = Pick<Placed, 'account_id' | 'chat_id' | 'id' | 'listing' | 'sent_at'>

/** What lists have still, although it is not so any more. */
export function readStale(db: Db, account_ids: readonly string[]): Promise<Stale[]> {
  return db.rows<Stale>(sql`
    select account_id, chat_id, id, listing, sent_at from search_stale where account_id = any(${account_ids})`)
}

/** Lists of an account to read, from `low` to `high`, under a name. */
export interface Asked {
  readonly name: string
  readonly account_id: string
  readonly low: string
  readonly high: string
}

export interface SegmentRead {
  readonly account_id: string
  readonly pieces: Pieces
}

/** The beginnings of the lists, so many parts of each. */
export async function readLists(
  db: Db,
  { account_ids }: Place,
  { asked, times, parts }: { asked: readonly Asked[]; times: Times; parts: number },
): Promise<SegmentRead[]> {
  const names = [...new Set(asked.map(({ name }) => name))]
  const places = new Map(names.map((name, place) => [name, place]))
  const rows = await db.rows<{
    segment_id: string
    account_id: string
    place: number
    lists: Buffer | null
  }>(sql`
    select s.id as segment_id, s.account_id, a.place, l.lists
    from search_segments s
    cross join unnest(${asked.map(({ name }) => places.get(name))}::int[],
      ${asked.map(({ account_id }) => account_id)}::text[], ${asked.map(({ low }) => low)}::text[],
      ${asked.map(({ high }) => high)}::text[]) as a (place, account_id, low, high)
    cross join lateral (
      select ${packed(parts, sql`l.word, l.part`)} as lists from search_lists l
      where l.segment_id = s.id and l.word >= a.low and l.word <= a.high and l.part < ${parts}) l
    where s.account_id = any(${account_ids}) and a.account_id = s.account_id
      and s.newest_at >= ${new Date(times.from)} and s.oldest_at < ${new Date(times.until)}`)
  return [...Map.groupBy(rows, ({ segment_id }) => segment_id).values()].map((some) => ({
    account_id: some[0]?.account_id ?? '',
    pieces: new Map(some.map(({ place, lists }) => [names[place] ?? '', unpack(lists)])),
  }))
}

export interface Spot {
  readonly account_id: string
  readonly position: number
}

/** The messages at these positions, and others of the same seconds. */
export function readAt(db: Db, spots: readonly Spot[]): Promise<Found[]> {
  const seconds = new Map(
    spots.map(({ account_id, position }) => {
      const second = secondOf(position)
      return [`${account_id} ${second}`, { account_id, ...timesOf(second) }]
    }),
  )
  const asked = [...seconds.values()]
  return db.rows<Found>(sql`
    select ${found} from unnest(${asked.map(({ account_id }) => account_id)}::text[],
      ${asked.map(({ from }) => from)}::timestamptz[], ${asked.map(({ until }) => until)}::timestamptz[])
      as s (account_id, from_at, until_at)
    cross join lateral (
      select * from messages m where m.account_id = s.account_id and m.deleted_at is null
        and m.sent_at >= s.from_at and m.sent_at < s.until_at offset 0) m`)
}

/** The newest in these times, and how many there are, at most `count`. */
export async function readTimes(
  db: Db,
  { account_ids, chat_id }: Place,
  { times, count, limit }: { times: Times; count: number; limit: number },
): Promise<{ page: Found[]; total: number }> {
  const here = sql`m.account_id = a.id and m.deleted_at is null ${chat_id === undefined ? sql`` : sql`and m.chat_id = ${chat_id}`}
    and m.sent_at >= ${new Date(times.from)} and m.sent_at < ${new Date(times.until)}`
  const [page, { total }] = await Promise.all([
    db.rows<Found>(sql`
      select ${found} from unnest(${account_ids}::text[]) as a (id)
      cross join lateral (
        select * from messages m where ${here} order by m.sent_at desc, m.id desc limit ${limit}) m
      order by m.sent_at desc, m.id desc, m.chat_id, m.account_id limit ${limit}`),
    db.one<{ total: number }>(sql`
      select count(*)::int as total from (
        select from unnest(${account_ids}::text[]) as a (id)
        cross join lateral (
          select from messages m where ${here} order by m.sent_at desc, m.id desc limit ${count}) m
        limit ${count}) m`),
  ])
  return { page, total }
}

/** People, and chats that are no person's, by the words of their names: the most recently active first. */
export function findNamed(
  db: Db,
  account_ids: readonly string[],
  { query, each }: { query: string; each: number },
): Promise<{ account_id: string; id: string }[]> {
  return db.rows(sql`
    select a.id as account_id, n.id from unnest(${account_ids}::text[]) as a (id)
    cross join lateral (
      select k.id from (
        select k.provider_id as id from contacts k
        where k.account_id = a.id and k.name_tokens @@ ${query}::tsquery
        union
        select c.chat_id from chats c where c.account_id = a.id and c.name_tokens @@ ${query}::tsquery) k
      left join chats c on c.account_id = a.id and c.chat_id = k.id
      order by c.last_message_at desc nulls last, k.id limit ${each}) n`)
}
