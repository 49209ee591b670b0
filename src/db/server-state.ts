/** What the database server is and still allows, for the start of a process, for alerts and for `parley doctor`. */
import { type Database, type Db, sql } from './sql.ts'

/** The oldest PostgreSQL whose features the migrations use. */
export const serverVersionMin = 15 // limit: oldest postgresql

export interface ServerState {
  /** As the server writes it, such as `18.4`. */
  readonly version: string
  readonly major: number
  readonly encoding: string
  /** The settings under which a crash of the machine could lose a commit, with their values. */
  readonly unsafe: readonly string[]
}

export function readServerState(db: Db): Promise<ServerState> {
  return db.one<ServerState>(sql`
    select current_setting('server_version') as version,
      current_setting('server_version_num')::int / 10000 as major,
      current_setting('server_encoding') as encoding,
      array(select name || ' = ' || setting from pg_settings
        where name in ('fsync', 'full_page_writes', 'synchronous_commit') and setting = 'off' order by name) as unsafe`)
}

/** With so few connections left, another process or a growing pool may be refused one. */
export const connectionsShort = 5

/** Every `serve`, `work` and `start` has one connection whose name begins so; the rest names its secrets (`secret-use.ts`). */
export const processName = 'parley process'

/** What a process may open besides its pool: it listens on one, and a login and a backup have their own. */
export const connectionsBeside = 3

export interface Connections {
  /** What the server, the database and the role allow; the smallest counts. */
  readonly allowed: number
  /** How many of them no client uses. */
  readonly left: number
  /** How many of them clients other than Parley do not use. */
  readonly ours: number
  /** What this role has open, and how many processes of Parley run on this database. */
  readonly of_role: number
  readonly processes: number
}

/** Counts for this role: PostgreSQL keeps some connections for superusers and for other roles. */
export function countConnections(db: Db): Promise<Connections> {
  return db.one<Connections>(sql`
    with used as (
      select count(*)::int as server, (count(*) filter (where datname = current_database()))::int as database,
        (count(*) filter (where usename = current_user))::int as role,
        (count(*) filter (where datname = current_database() and application_name like 'parley%'))::int as parley,
        (count(*) filter (where datname = current_database() and application_name like ${`${processName}%`}))::int as processes
      -- Clients have a role and a database. The backend_type of other roles' sessions is hidden from ours.
      from pg_stat_activity where usesysid is not null and datid is not null),
    kept as (
      select coalesce(sum(setting::int), 0)::int as connections from pg_settings
      where name in ('superuser_reserved_connections', 'reserved_connections'))
    select min(allowed)::int as allowed, min(allowed - each.used)::int as left,
      min(allowed - (each.used - used.parley))::int as ours, -- guard: connections of other clients
      used.role as of_role, used.processes
    from used, lateral (
      select current_setting('max_connections')::int - kept.connections, used.server from kept
      union all
      select datconnlimit, used.database from pg_database where datname = current_database() and datconnlimit >= 0
      union all
      select rolconnlimit, used.role from pg_roles where rolname = current_user and rolconnlimit >= 0
    ) as each (allowed, used)
    group by used.role, used.processes`)
}

/** Tables that the role cannot read and write. The rights to create or alter anything are needed to migrate only. */
export async function listUnusableTables(db: Db): Promise<string[]> {
  const rows = await db.rows<{ name: string }>(sql`
    select c.relname as name from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relname <> 'schema_migrations'
      and not (has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
        and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))
    order by c.relname`)
  return rows.map(({ name }) => name)
}

/** How often two connections are compared: a pooler may by chance give them different servers. */
const comparisons = 5

/**
 * Whether two of our connections share a server process, or one of them changes its own: then a pooler takes it from a connection
 * between two transactions. No statement has a name: an earlier process may have used it in the same server process.
 */
export async function isPooledByTransaction(db: Database): Promise<boolean> {
  const one = await db.client()
  try {
    const other = await db.client()
    try {
      const own = await readBackend(one)
      const others = await readBackend(other) // limit: two connections
      let shared = own === others
      for (let n = 1; n < comparisons && !shared; n++) {
        // Twice: a pooler that takes its servers in turn might give each of two connections its own again and again.
        const seen = [await readBackend(one), await readBackend(one), await readBackend(other)]
        shared = seen.join() !== [own, own, others].join() // guard: a connection keeps its server process
      }
      return shared
    } finally {
      await other.end()
    }
  } finally {
    await one.end()
  }
}

async function readBackend(client: Awaited<ReturnType<Database['client']>>): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  return rows[0]?.pid ?? 0
}

const trips = 10

export interface RoundTrip {
  /** Milliseconds; the shortest of several, so that a busy machine does not count. */
  readonly ms: number
  /** How many milliseconds the server's clock is ahead of this machine's. */
  readonly clock_ahead_ms: number
}

export async function measureRoundTrip(db: Db): Promise<RoundTrip> {
  let best: RoundTrip | undefined
  for (let n = 0; n < trips; n++) {
    const [startedAt, sentAt] = [performance.now(), Date.now()]
    const { at } = await db.one<{ at: number }>(
      sql`select (extract(epoch from clock_timestamp()) * 1000)::float8 as at`,
    )
    const ms = performance.now() - startedAt
    if (!best || ms < best.ms) best = { ms, clock_ahead_ms: at - (sentAt + ms / 2) }
  }
  return best as RoundTrip
}
