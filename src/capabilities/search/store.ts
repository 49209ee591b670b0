/** The statements of a search. Each begins with an account, in the index. */
import { type Db, type Sql, sql } from '../../db/sql.ts'
import { scopeOf } from '../../lib/tokens-message.ts'
import { anySeason, type Query } from './conditions.ts'
import type { Sample, Window } from './plan.ts'

/** Where to look: whole accounts, or one chat of one account. */
export interface Place {
  readonly account_ids: readonly string[]
  /** Its number. */
  readonly chat_id: string | undefined
}

/** What to look for, in any season, as `tsquery`; null: everything. */
export interface Wanted {
  readonly query: string | null
  /** The parts of it that may go on, and those that may not, where it has both. */
  readonly open: string | null
  readonly closed: string | null
}

export interface Surveyed extends Sample {
  readonly account_id: string
  /** Of the whole account, whatever is searched for. */
  readonly first_at: Date | null
  readonly last_at: Date | null
  /** Some of its messages have tokens of an older form, and are not found yet. */
  readonly unrenewed: boolean
}

/** The ends of each account's messages, and how many of the newest in question match. */
export function survey(
  db: Db,
  { account_ids, chat_id }: Place,
  { wanted, bounds, each }: { wanted: Wanted; bounds: Window; each: number },
): Promise<Surveyed[]> {
  const here = sql`m.account_id = a.id and m.deleted_at is null ${inChat(chat_id)}
    and m.sent_at >= ${new Date(bounds.from)} and m.sent_at < ${new Date(bounds.until)}`
  return db.rows<Surveyed>(sql`
    select a.id as account_id, newest.sent_at as newest_at, sample.*,
      (select m.sent_at from messages m where ${here} order by m.sent_at, m.id limit 1) as oldest_at,
      (select m.sent_at from messages m where m.account_id = a.id and m.deleted_at is null
        order by m.sent_at desc, m.id desc limit 1) as last_at,
      (select m.sent_at from messages m where m.account_id = a.id and m.deleted_at is null
        order by m.sent_at, m.id limit 1) as first_at,
      exists (select from messages m where m.account_id = a.id and m.tokens_format < 2 and m.deleted_at is null)
        as unrenewed
    from unnest(${account_ids}::text[], ${account_ids.map(scopeOf)}::text[]) as a (id, scope)
    left join lateral (
      select m.sent_at, ${inSeasons(wanted.query)} as query, ${inSeasons(wanted.open)} as open,
        ${inSeasons(wanted.closed)} as closed
      from messages m where ${here} order by m.sent_at desc, m.id desc limit 1) newest on true
    cross join lateral (
      select count(*)::int as seen, (count(*) filter (where ${wanted.query}::text is null or tokens @@ newest.query))::int as hits,
        (count(*) filter (where tokens @@ newest.open))::int as open_hits,
        (count(*) filter (where tokens @@ newest.closed))::int as closed_hits, min(sent_at) as since
      from (select m.sent_at, m.tokens from messages m where ${here}
        order by m.sent_at desc, m.id desc limit ${each}) m) sample`)
}

/** What is wanted in the season of this message, or in the one before (lib/tokens-message.ts). */
function inSeasons(template: string | null): Sql {
  const now = sql`floor(extract(epoch from m.sent_at) / 4194304)::int`
  const inSeason = (number: Sql) =>
    sql`replace(${template}::text, ${anySeason}, a.scope || lpad(to_hex(least(4095, greatest(0, ${number}))), 3, '0'))::tsquery`
  return sql`${inSeason(now)} || ${inSeason(sql`${now} - 1`)}`
}

function inChat(chat_id: string | undefined): Sql {
  return chat_id === undefined ? sql`` : sql`and m.chat_id = ${chat_id}`
}

export interface Found {
  readonly account_id: string
  readonly chat_id: string
  readonly message_id: string
  readonly text: string
  readonly is_sender: boolean
  readonly sent_at: Date
  readonly chat_name: string
}

/** One thing to look up: for which window (by its place in the list), what, and when. */
export interface Probe extends Query {
  readonly place: number
  readonly window: Window
}

export interface Lookup {
  /** By place, the newest first. */
  readonly probes: readonly Probe[]
  /** `index`: by the words. `time`: through the messages in order of time, where most of them match. */
  readonly by: 'index' | 'time'
  /** How many to find. */
  readonly count: number
  readonly limit: number
}

export interface LookedUp {
  /** The newest of those that were found in windows that were looked through to their end. */
  readonly page: readonly Found[]
  /** How many were found. */
  readonly total: number
  /** The last window that anything was found in: if `total` is `count`, there may be more in it. */
  readonly place: number
}

/** Looks through the windows, newest first, until `count` are found: nothing is fetched beyond that. */
export async function lookUp(db: Db, place: Place, { probes, by, count, limit }: Lookup): Promise<LookedUp> {
  // As JSON, because the planner then expects the same of any number of probes, and keeps its plan.
  const given = probes.map(({ place: at, query, check, window: { from, until } }) => {
    return { place: at, query, check_query: check, from_at: new Date(from), until_at: new Date(until) }
  })
  const rows = await db.rows<Found & Omit<LookedUp, 'page'>>(sql`
    with found as materialized (
      select p.place, m.* from json_to_recordset(${JSON.stringify(given)}::json)
        as p (place int, query tsquery, check_query tsquery, from_at timestamptz, until_at timestamptz)
      cross join lateral (${by === 'index' ? byIndex : byTime(place)}) m
      where m.account_id = any(${place.account_ids}) and m.sent_at >= p.from_at and m.sent_at < p.until_at
      limit ${count}),
    counted as (select count(*)::int as total, coalesce(max(place), 0) as place from found),
    page as (
      select f.* from found f, counted where counted.total < ${count} or f.place < counted.place
      order by f.sent_at desc, f.id desc, f.chat_id, f.account_id limit ${limit})
    select p.account_id, p.chat_id, p.id as message_id, m.text, m.is_sender, m.sent_at, coalesce(c.name, '') as chat_name,
      counted.total, counted.place
    from counted
    left join page p on true
    left join messages m on m.ctid = p.ctid
    left join chats c on c.account_id = p.account_id and c.chat_id = p.chat_id
    order by p.sent_at desc, p.id desc, p.chat_id, p.account_id`)
  const { total, place: last } = rows[0] ?? { total: 0, place: 0 }
  return { page: rows.filter(({ account_id }) => account_id !== null), total, place: last }
}

/** `offset 0` keeps the account out of it: the words name it already, and two indexes would be read for one. */
const byIndex = sql`
  select m.ctid, m.account_id, m.chat_id, m.id, m.sent_at from messages m
  where m.tokens @@ p.query and (p.check_query is null or m.tokens @@ p.check_query) offset 0`

function byTime({ account_ids, chat_id }: Place): Sql {
  return sql`
    select t.ctid, t.account_id, t.chat_id, t.id, t.sent_at from (
      select m.ctid, m.account_id, m.chat_id, m.id, m.sent_at, m.tokens from messages m
      where m.account_id = any(${account_ids}) and m.deleted_at is null ${inChat(chat_id)}
        and m.sent_at >= p.from_at and m.sent_at < p.until_at
      offset 0) t
    where p.query is null or t.tokens @@ p.query`
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
