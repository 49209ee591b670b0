/** Fills empty tables as fast as the machine can: every core makes rows and copies them in, indexes are built last. */
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type Database, sql } from '../src/db/sql.ts'
import type { CopyJob, Share } from './processes/copy.ts'
import type { ListJob } from './processes/list.ts'
import { bar } from './progress.ts'

export interface Load {
  /** A module with `columns` and `rowsOf`, which each thread imports. */
  readonly rows: URL
  readonly tables: readonly { readonly name: string; readonly count: number }[]
  /** The input from which `rowsOf` makes the rows. */
  readonly from: unknown
  /** Whether to index the messages for search; otherwise a worker does it once it runs. */
  readonly listed?: boolean
}

export async function load(db: Database, { rows, tables, from, listed = false }: Load): Promise<void> {
  const names = tables.map(({ name }) => name)
  await inHaste(db, async () => {
    const indexes = await dropIndexes(db, names)
    for (const { name, count } of tables) {
      await bar(name, count, (tick) => copy(db, { rows: rows.href, table: name, from }, tick))
    }
    await inLanes('vacuum', names, (name) => run(db, [`vacuum analyze ${name}`]))
    await inLanes('indexes', indexes, (statements) => run(db, statements))
    if (names.includes('messages')) await pend(db)
    if (listed) await list(db)
  })
}

/** Settings while the data is made: a crash may lose it, and nothing else is running. */
const haste = {
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  max_wal_size: '64GB',
  checkpoint_timeout: '1h',
  autovacuum: 'off',
}

async function inHaste(db: Database, work: () => Promise<void>): Promise<void> {
  for (const [name, value] of Object.entries(haste)) await run(db, [`alter system set ${name} = '${value}'`])
  await run(db, ['select pg_reload_conf()'])
  try {
    await work()
  } finally {
    for (const name of Object.keys(haste)) await run(db, [`alter system reset ${name}`])
    await run(db, ['select pg_reload_conf()', 'checkpoint'])
  }
}

function copy(
  db: Database,
  job: Pick<CopyJob, 'rows' | 'table' | 'from'>,
  tick: (by: number) => void,
): Promise<void> {
  return inThreads('copy.ts', (share) => ({ ...connectionOf(db), ...job, ...share }) satisfies CopyJob, tick)
}

async function pend(db: Database): Promise<void> {
  await run(db, [
    `insert into search_pending (account_id, sent_at, chat_id, id, workspace_id)
      select account_id, sent_at, chat_id, id, workspace_id from messages where deleted_at is null`,
    'vacuum analyze search_pending',
  ])
}

async function list(db: Database): Promise<void> {
  const { total } = await db.one<{ total: number }>(sql`select count(*)::int as total from search_pending`)
  await bar('lists', total, (tick) =>
    inThreads('list.ts', (share) => ({ ...connectionOf(db), ...share }) satisfies ListJob, tick),
  )
  await inLanes('vacuum', ['search_lists', 'search_ranks', 'search_pending', 'search_segments'], (name) =>
    run(db, [`vacuum analyze ${name}`]),
  )
}

function connectionOf(db: Database) {
  const { host, user, password, database } = db.pool.options
  return { connection: { host, user, password, database } }
}

/** One thread per core, each with its share. */
async function inThreads(
  file: string,
  jobOf: (share: Share) => unknown,
  tick: (by: number) => void,
): Promise<void> {
  const parts = availableParallelism()
  await Promise.all(
    Array.from({ length: parts }, async (_, part) => {
      const worker = new Worker(join(import.meta.dirname, 'processes', file), {
        workerData: jobOf({ part, parts }),
      })
      worker.on('message', tick)
      const [code] = await once(worker, 'exit')
      if (code !== 0) throw new Error(`A thread of ${file} ended with ${code}.`)
    }),
  )
}

/** Building an index at the end is many times faster than updating it for every row. Returns the statements that rebuild each. */
async function dropIndexes(db: Database, tables: readonly string[]): Promise<string[][]> {
  const indexes = await db.rows<{ name: string; owner: string; definition: string; primary: boolean }>(sql`
    select c.relname as name, i.indrelid::regclass::text as owner, pg_get_indexdef(c.oid) as definition,
      i.indisprimary as primary
    from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am a on a.oid = c.relam
    where i.indrelid = any(${tables}::regclass[])
      and not exists (select from pg_constraint k where k.conindid = c.oid and k.contype <> 'p')
    order by i.indrelid = 'messages'::regclass desc, a.amname = 'gin' desc, c.relname`)
  for (const { name, owner, primary } of indexes) {
    await run(db, [primary ? `alter table ${owner} drop constraint ${name}` : `drop index ${name}`])
  }
  return indexes.map(({ name, owner, definition, primary }) => [
    // GIN builds fastest with a work area that fits into the processor's caches.
    `set maintenance_work_mem = '${definition.includes('USING gin') ? '64MB' : '1GB'}'`,
    definition,
    ...(primary ? [`alter table ${owner} add constraint ${name} primary key using index ${name}`] : []),
  ])
}

/** Two at a time, the largest first. */
async function inLanes<T>(label: string, work: readonly T[], each: (one: T) => Promise<void>): Promise<void> {
  const waiting = [...work]
  await bar(label, work.length, (tick) =>
    Promise.all(
      Array.from({ length: 2 }, async () => {
        for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
          await each(one)
          tick(1)
        }
      }),
    ),
  )
}

async function run(db: Database, statements: readonly string[]): Promise<void> {
  const client = await db.client()
  try {
    await client.query('set statement_timeout = 0; set lock_timeout = 0')
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}
