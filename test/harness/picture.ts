/**
 * Simulates a PostgreSQL that was restored from a picture of its files: every table as it was then, and a new run of the server.
 * Connections stay open, so what a running worker remembers meets a database that knows less.
 */
import type { Database } from '../../src/db/sql.ts'

let runs = 0

/** A new run of the server with nothing lost: to workers it looks like an ordinary restart. */
export async function restartServer({ pool }: Database): Promise<void> {
  await pool.query(newRun())
}

function newRun(): string {
  return `create or replace function server_run() returns text language sql stable parallel safe
    as 'select ''run ${++runs}'''`
}

interface Table {
  readonly name: string
  readonly columns: string
  /** The tables it references. */
  readonly parents: readonly string[]
}

/** Returns a function that restores the picture. `keepCounter`: no heartbeat was lost, so the restore counter reveals nothing. */
export async function takePicture(
  { pool }: Database,
  { keepCounter = false }: { keepCounter?: boolean } = {},
): Promise<() => Promise<void>> {
  const schema = `picture_${++runs}`
  const { rows } = await pool.query<Table>(`
    select c.relname as name, array(
        select distinct f.confrelid::regclass::text from pg_constraint f
        where f.conrelid = c.oid and f.contype = 'f' and f.confrelid <> c.oid) as parents,
      string_agg(quote_ident(a.attname), ', ' order by a.attnum) as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' group by c.oid, 1 order by 1`)
  const tables = parentsFirst(rows)
  const copies = tables.map(({ name }) => `create table ${schema}.${name} as select * from public.${name};`)
  await pool.query(
    `begin isolation level repeatable read; create schema ${schema}; ${copies.join('\n')} commit`,
  )
  const forEach = (statement: (table: Table) => string) => tables.map(statement).join('\n')
  return async () => {
    const counter = keepCounter
      ? 'update instance i set restore_counter = greatest(i.restore_counter, present.restore_counter) from present;'
      : ''
    const statements = `
      begin; set local lock_timeout = '60s';
      create temp table present on commit drop as select restore_counter from instance;
      ${forEach(({ name }) => `alter table public.${name} disable trigger user;`)}
      truncate ${tables.map(({ name }) => `public.${name}`).join(', ')};
      ${forEach(
        ({ name, columns }) =>
          `insert into public.${name} (${columns}) overriding system value select ${columns} from ${schema}.${name};`,
      )}
      ${counter}
      ${forEach(({ name }) => `alter table public.${name} enable trigger user;`)}
      drop schema ${schema} cascade; ${newRun()};
      commit`
    for (let tries = 1; ; tries++) {
      try {
        await pool.query(statements)
        return
      } catch (error) {
        // A deadlock with a worker that had taken its locks in another order.
        if ((error as { code?: string }).code !== '40P01' || tries === 20) throw error
      }
    }
  }
}

function parentsFirst(tables: readonly Table[]): Table[] {
  const ordered: Table[] = []
  while (ordered.length < tables.length) {
    const next = tables.filter(
      (table) =>
        !ordered.includes(table) &&
        table.parents.every((parent) => ordered.some(({ name }) => name === parent)),
    )
    if (next.length === 0) throw new Error('The tables refer to each other in a circle.')
    ordered.push(...next)
  }
  return ordered
}
