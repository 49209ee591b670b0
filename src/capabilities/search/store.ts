/** The statements of a search. Each begins with an account, in the index. */
import { type Db, type Sql, sql } from '../../db/sql.ts'
import { anySeason } from './conditions.ts'
import type { Sample, Window } from './plan.ts'

/** Where to look: whole accounts, or one chat of one account. */
export interface Place {
  readonly account_ids: readonly string[]
  /** Its number. */
  readonly chat_id: string | undefined
}

/** What to look for in one account, in any season, as `tsquery`; null: everything. */
export interface Wanted {
  readonly account_id: string
  readonly query: string | null
}

export interface Surveyed extends Sample {
  readonly account_id: string
  /** Of the whole account, whatever is searched for. */
  readonly first_at: Date | null
  readonly last_at: Date | null
}

/** The ends of each account's messages, and how many of the newest in question match. */
export function survey(
  db: Db,
  { account_ids, chat_id }: Place,
  { wanted, bounds, each }: { wanted: readonly Wanted[]; bounds: Window; each: number },
): Promise<Surveyed[]> {
  const queries = account_ids.map((id) => wanted.find(({ account_id }) => account_id === id)?.query ?? null)
  const here = sql`m.account_id = a.id and m.deleted_at is null ${inChat(chat_id)}
    and m.sent_at >= ${new Date(bounds.from)} and m.sent_at < ${new Date(bounds.until)}`
  return db.rows<Surveyed>(sql`
    select a.id as account_id, newest.sent_at as newest_at, sample.*,
      (select m.sent_at from messages m where ${here} order by m.sent_at, m.id limit 1) as oldest_at,
      (select m.sent_at from messages m where m.account_id = a.id and m.deleted_at is null
        order by m.sent_at desc, m.id desc limit 1) as last_at,
      (select m.sent_at from messages m where m.account_id = a.id and m.deleted_at is null
        order by m.sent_at, m.id limit 1) as first_at
    from unnest(${account_ids}::text[], ${queries}::text[]) as a (id, query)
    left join lateral (
      select m.sent_at, ${inSeason(0)} || ${inSeason(1)} as query
      from messages m where ${here} order by m.sent_at desc, m.id desc limit 1) newest on true
    cross join lateral (
      select count(*)::int as seen, (count(*) filter (where a.query is null or tokens @@ newest.query))::int as hits,
        min(sent_at) as since
      from (select m.sent_at, m.tokens from messages m where ${here}
        order by m.sent_at desc, m.id desc limit ${each}) m) sample`)
}

/** What is wanted in the season of this message, or in an earlier one (lib/tokens-message.ts). */
function inSeason(back: number): Sql {
  const season = sql`greatest(0, floor(extract(epoch from m.sent_at) / 4194304)::int - ${back}::int)`
  return sql`replace(a.query, ${anySeason}, lpad(to_hex(${season}), 3, '0'))::tsquery`
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
  /** How many there are, as far as they were counted. */
  readonly total: number
  /** The first window that held more than could be put in order. */
  readonly overflow: number | null
}

/** One thing to look up: for which window (by its place in the list), in which account, what, and when. */
export interface Probe extends Wanted {
  readonly place: number
  readonly window: Window
}

export interface Lookup {
  /** By place, the newest first. */
  readonly probes: readonly Probe[]
  readonly chat_id: string | undefined
  /** `index`: by the words. `time`: through the messages in order of time, where most of them match. */
  readonly by: 'index' | 'time'
  /** No window may hold more. */
  readonly most: number
  readonly count: number
  readonly limit: number
}

/**
 * Looks through the windows, newest first, until `count` are found; the page is the newest of them. A window is only
 * opened when those before it had too few, and only what lies in it is put in order.
 */
export function lookUp(db: Db, { probes, chat_id, by, most, count, limit }: Lookup): Promise<Found[]> {
  const places = [...new Set(probes.map(({ place }) => place))]
  return db.rows<Found>(sql`
    with found as materialized (
      select w.place, f.* from unnest(${places}::int[]) as w (place)
      cross join lateral (
        select m.*, count(*) over () as held from (
          select m.account_id, m.chat_id, m.id, m.sent_at
          from unnest(${probes.map(({ place }) => place)}::int[], ${probes.map(({ account_id }) => account_id)}::text[],
            ${probes.map(({ query }) => query)}::tsquery[],
            ${probes.map(({ window }) => new Date(window.from))}::timestamptz[],
            ${probes.map(({ window }) => new Date(window.until))}::timestamptz[])
            as p (place, account_id, query, from_at, until_at)
          cross join lateral (${by === 'index' ? byIndex : byTime(chat_id)}) m
          where p.place = w.place and m.account_id = p.account_id and m.sent_at >= p.from_at and m.sent_at < p.until_at
          limit ${most + 1}) m
        order by m.sent_at desc, m.id desc, m.chat_id, m.account_id limit ${count}) f
      limit ${count}),
    page as (
      select * from found order by sent_at desc, id desc, chat_id, account_id limit ${limit})
    select p.account_id, p.chat_id, p.id as message_id, m.text, m.is_sender, m.sent_at, coalesce(c.name, '') as chat_name,
      (select count(*)::int from found) as total, (select min(place) from found where held > ${most}) as overflow
    from page p
    join messages m on m.account_id = p.account_id and m.chat_id = p.chat_id and m.id = p.id
    left join chats c on c.account_id = p.account_id and c.chat_id = p.chat_id
    order by p.sent_at desc, p.id desc, p.chat_id, p.account_id`)
}

/** `offset 0` keeps the account out of it: the words name it already, and two indexes would be read for one. */
const byIndex = sql`
  select m.account_id, m.chat_id, m.id, m.sent_at from messages m where m.tokens @@ p.query offset 0`

function byTime(chat_id: string | undefined): Sql {
  return sql`
    select t.account_id, t.chat_id, t.id, t.sent_at from (
      select m.account_id, m.chat_id, m.id, m.sent_at, m.tokens from messages m
      where m.account_id = p.account_id and m.deleted_at is null ${inChat(chat_id)}
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
