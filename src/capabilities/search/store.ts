/** The statements of a search. Each begins with an account, in an index. */
import { type Db, type Sql, sql } from '../../db/sql.ts'
import type { Candidate } from './conditions.ts'
import type { Pieces } from './evaluate.ts'
import { chatAt, decodeKey, idAt, type Key, keyBytes, keysInPart, timeAt } from './keys.ts'
import { chunked, type Piece, packed, unpack } from './pack.ts'

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

/** As much of a message as is shown. */
export interface Message extends Candidate {
  readonly id: string
  readonly is_sender: boolean
}

const message = sql`m.account_id, m.chat_id, m.id, m.sender_id, m.is_sender, m.sent_at, m.text`

/** And the name of its chat. */
export interface Found extends Message {
  readonly chat_name: string
}

const found = sql`${message}, coalesce(
  (select c.name from chats c where c.account_id = m.account_id and c.chat_id = m.chat_id), '') as chat_name`

/** What no list has yet, the newest of each account, at most `each`. */
export function readPending(db: Db, account_ids: readonly string[], each: number): Promise<Message[]> {
  return db.rows<Message>(sql`
    select ${message} from unnest(${account_ids}::text[]) as a (id)
    cross join lateral (
      select p.account_id, p.chat_id, p.id from search_pending p where p.account_id = a.id
      order by p.sent_at desc limit ${each}) p
    cross join lateral (
      select * from messages m where m.account_id = p.account_id and m.chat_id = p.chat_id and m.id = p.id offset 0) m
    where m.deleted_at is null`)
}

/** What lists have still, although it is not so any more. */
export function readStale(
  db: Db,
  account_ids: readonly string[],
): Promise<(Omit<Key, 'at'> & { account_id: string })[]> {
  return db.rows(sql`
    select account_id, chat_id, id, listing from search_stale where account_id = any(${account_ids})`)
}

export interface Segment {
  readonly id: string
  readonly account_id: string
  readonly oldest_at: Date
  readonly newest_at: Date
  /** Of some ranks (`boundsOf`). */
  readonly times: Buffer
}

/** Lists of a segment to read, from `low` to `high`, under a name. */
export interface Asked {
  readonly name: string
  readonly segment_id: string
  readonly low: string
  readonly high: string
}

/** Of every segment of an account the same. */
export type AskedFirst = Omit<Asked, 'segment_id'> & { readonly account_id: string }

/** The segments that may have something of these times, and the beginnings of their lists: the first thing a search reads. */
export async function readFirst(
  db: Db,
  asked: readonly AskedFirst[],
  { parts, times: { from, until } }: { parts: number; times: Times },
): Promise<{ segments: Segment[]; read: Read }> {
  // What is asked of an account stands together. Its segments are told once, with the first of it.
  const isFirst = ({ account_id }: AskedFirst, at: number) => account_id !== asked[at - 1]?.account_id
  const rows = await db.rows<Segment & ListRow>(sql`
    select s.id, s.account_id, s.oldest_at, s.newest_at, case when a.is_first then s.times end as times,
      a.place::int, l.chunk, l.lists
    from unnest((select ${asked.map(({ account_id }) => account_id)}::text[]),
      (select ${asked.map(({ low }) => low)}::text[]), (select ${asked.map(({ high }) => high)}::text[]),
      (select ${asked.map(isFirst)}::boolean[])) with ordinality as a (account_id, low, high, is_first, place)
    cross join lateral (
      select * from search_segments s where s.account_id = a.account_id
        and s.newest_at >= ${new Date(from)} and s.oldest_at < ${new Date(until)} offset 0) s
    ${beginnings(sql`s.id`, parts)}`)
  const segments = new Map(
    rows
      .filter(({ times }) => times)
      .map(({ id, account_id, oldest_at, newest_at, times }) => [
        id,
        { id, account_id, oldest_at, newest_at, times },
      ]),
  )
  const read = unpackAll(rows, ({ id, place }) => ({ segment_id: id, name: asked[place - 1]?.name ?? '' }))
  return { segments: [...segments.values()], read }
}

/** Of what `a` asks for, so many parts of each list. */
function beginnings(segment_id: Sql, parts: number): Sql {
  return sql`left join lateral (
    select ${chunked(sql`a.low`, sql`a.high`)} as chunk, ${packed(parts, sql`l.word, l.part`)} as lists from search_lists l
    where l.segment_id = ${segment_id} and l.word >= a.low and l.word <= a.high and l.part < ${parts} group by 1) l on true`
}

/** By segment what was read of its lists. */
export type Read = ReadonlyMap<string, Pieces>

interface ListRow {
  readonly place: number
  readonly chunk: number | null
  readonly lists: Buffer | null
}

function unpackAll<T extends ListRow>(
  rows: readonly T[],
  nameOf: (row: T) => Pick<Asked, 'segment_id' | 'name'>,
): Read {
  const named = Map.groupBy(rows, (row) => nameOf(row).segment_id)
  return new Map(
    [...named].map(([segment_id, some]) => {
      const lists = Map.groupBy(some, (row) => nameOf(row).name)
      return [segment_id, new Map([...lists].map(([name, chunks]) => [name, unpackChunks(chunks)]))]
    }),
  )
}

function unpackChunks(chunks: readonly ListRow[]): Piece[] {
  const [first, ...rest] = chunks
    .toSorted((a, b) => (a.chunk ?? 0) - (b.chunk ?? 0))
    .flatMap(({ lists }) => lists ?? [])
  return first ? unpack(rest.length > 0 ? Buffer.concat([first, ...rest]) : first) : []
}

/** More of the lists, so many parts of each. */
export async function readLists(db: Db, asked: readonly Asked[], parts: number): Promise<Read> {
  const rows = await db.rows<ListRow>(sql`
    select a.place::int, l.chunk, l.lists
    from unnest((select ${asked.map(({ segment_id }) => segment_id)}::bigint[]),
      (select ${asked.map(({ low }) => low)}::text[]), (select ${asked.map(({ high }) => high)}::text[]))
      with ordinality as a (segment_id, low, high, place)
    ${beginnings(sql`a.segment_id`, parts)}`)
  return unpackAll(rows, ({ place }) => asked[place - 1] as Asked)
}

export interface Moment {
  readonly segment_id: string
  /** In milliseconds since 1970. */
  readonly at: number
}

/** How many messages of each segment were sent then or later: the rank of the first that was sent before. */
export async function countSince(db: Db, moments: readonly Moment[]): Promise<number[]> {
  if (moments.length === 0) return []
  const rows = await db.rows<{ place: number; part: number; bytes: Buffer }>(sql`
    select a.place::int, r.part, r.bytes
    from unnest(${moments.map(({ segment_id }) => segment_id)}::bigint[],
      ${moments.map(({ at }) => new Date(at))}::timestamptz[]) with ordinality as a (segment_id, at, place)
    cross join lateral (
      select part, bytes from search_ranks r where r.segment_id = a.segment_id and r.newest_at >= a.at
      order by r.newest_at, r.part desc limit 1) r`)
  const counts = moments.map(() => 0)
  for (const { place, part, bytes } of rows) {
    const { at } = moments[place - 1] as Moment
    let count = 0
    while (count * keyBytes < bytes.length && timeAt(bytes, count * keyBytes) >= at) count++
    counts[place - 1] = part * keysInPart + count
  }
  return counts
}

export interface Spot {
  readonly segment_id: string
  readonly rank: number
}

/** Of the rank that `a` has. */
const keyOfRank = sql`(
  select substring(r.bytes from a.rank % ${keysInPart}::int * ${keyBytes}::int + 1 for ${keyBytes}::int) as bytes
  from search_ranks r where r.segment_id = a.segment_id and r.part = a.rank / ${keysInPart}::int offset 0)`

/** What has these ranks, in the same order. */
export async function readKeys(db: Db, spots: readonly Spot[]): Promise<Key[]> {
  if (spots.length === 0) return []
  const { keys } = await db.one<{ keys: Buffer }>(sql`
    select string_agg(int4send(a.place::int) || k.bytes, '') as keys
    from unnest(${spots.map(({ segment_id }) => segment_id)}::bigint[], ${spots.map(({ rank }) => rank)}::int[])
      with ordinality as a (segment_id, rank, place)
    cross join lateral ${keyOfRank} k`)
  const read: Key[] = new Array(spots.length)
  for (let at = 0; at < keys.length; at += 4 + keyBytes) {
    read[keys.readInt32BE(at) - 1] = decodeKey(keys, at + 4)
  }
  return read
}

/** The newest of these, as messages. One statement for what `readKeys` and `readFound` take two for. */
export function readNewest(
  db: Db,
  spots: readonly (Spot & { readonly account_id: string })[],
  limit: number,
): Promise<Found[]> {
  return db.rows<Found>(sql`
    select ${found} from (
      select a.account_id, k.bytes
      from unnest((select ${spots.map(({ account_id }) => account_id)}::text[]),
        (select ${spots.map(({ segment_id }) => segment_id)}::bigint[]), (select ${spots.map(({ rank }) => rank)}::int[]))
        as a (account_id, segment_id, rank)
      cross join lateral ${keyOfRank} k
      order by k.bytes desc limit ${limit}) k
    cross join lateral (
      select * from messages m where m.account_id = k.account_id and m.chat_id = ${numberIn(chatAt)}
        and m.id = ${numberIn(idAt)} and m.deleted_at is null offset 0) m`)
}

/** A number of a key: its bytes without the shift that makes them compare. */
function numberIn(at: number): Sql {
  return sql`(('x' || encode(substring(k.bytes from ${at + 1}::int for 8), 'hex'))::bit(64)::bigint
    # '-9223372036854775808'::bigint)`
}

export type MessageKey = Omit<Key, 'listing'> & { readonly account_id: string }

function keysOf(keys: readonly MessageKey[]) {
  return sql`unnest(${keys.map(({ account_id }) => account_id)}::text[],
    ${keys.map(({ chat_id }) => chat_id)}::bigint[], ${keys.map(({ id }) => id)}::bigint[]) as k (account_id, chat_id, id)
    cross join lateral (
      select * from messages m where m.account_id = k.account_id and m.chat_id = k.chat_id and m.id = k.id
        and m.deleted_at is null offset 0) m`
}

export function readMessages(db: Db, keys: readonly MessageKey[]): Promise<Message[]> {
  return db.rows<Message>(sql`select ${message} from ${keysOf(keys)}`)
}

export function readFound(db: Db, keys: readonly MessageKey[]): Promise<Found[]> {
  return keys.length === 0 ? Promise.resolve([]) : db.rows<Found>(sql`select ${found} from ${keysOf(keys)}`)
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
      order by m.sent_at desc, m.id desc, m.chat_id desc, m.account_id limit ${limit}`),
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
