/** Columns whose values are sealed: how a rotation finds every one, and seals it again. */
import type { SealedPurpose, Secrets } from '../lib/secrets.ts'
import { isLocked } from './errors.ts'
import { type Db, type Sql, sql } from './sql.ts'

interface SealedRow {
  readonly key: string
  /** What the value is bound to. */
  readonly place: string
  readonly sealed: Buffer
}

interface Replacement {
  readonly key: string
  readonly before: Buffer
  readonly after: Buffer
}

/** The slice that owns the table states it; `lists/sealed-columns.ts` lists them all. */
export interface SealedColumn {
  /** Table and column. */
  readonly name: string
  readonly purpose: SealedPurpose
  /** The next values in the order of their keys. */
  list(db: Db, after: string | null, limit: number): Promise<readonly SealedRow[]>
  /** Replaces a value that is still the one before; 0: it has changed since. */
  replace(db: Db, replacement: Replacement): Promise<number>
}

interface ColumnPlace extends Pick<SealedColumn, 'name' | 'purpose'> {
  readonly table: Sql
  readonly key: Sql
  readonly column: Sql
  /** What the place is made of, where that is not the key. */
  readonly bound?: Sql
  readonly placeOf: (bound: string) => string
}

export function sealedColumn({
  name,
  purpose,
  table,
  key,
  column,
  bound = key,
  placeOf,
}: ColumnPlace): SealedColumn {
  return {
    name,
    purpose,
    list: async (db, after, limit) => {
      const rows = await db.rows<{ key: string; bound: string; sealed: Buffer }>(sql`
        select ${key} as key, ${bound} as bound, ${column} as sealed from ${table}
        where ${column} is not null and (${after}::text is null or ${key} > ${after}) order by ${key} limit ${limit}`)
      return rows.map((row) => ({ ...row, place: placeOf(row.bound) }))
    },
    replace: (db, { key: of, before, after }) =>
      db.run(sql`
        update ${table} set ${column} = ${after}
        where ${key} = ${of} and ${column} = ${before} -- guard: a value that was written meanwhile stays
      `),
  }
}

const rowsAtOnce = 100

async function* rowsOf(db: Db, column: SealedColumn): AsyncGenerator<SealedRow, void> {
  for (let after: string | null = null; ; ) {
    const rows: readonly SealedRow[] = await column.list(db, after, rowsAtOnce)
    yield* rows
    if (rows.length < rowsAtOnce) return // guard: every value of a column is read
    after = rows.at(-1)?.key ?? null
  }
}

/** How the values of a column are sealed. */
export interface ColumnUse {
  readonly name: string
  readonly total: number
  /** With another secret that this process knows than the one in use. */
  readonly old: number
  /** With none that this process knows. The keys of the first few. */
  readonly lost: number
  readonly lost_keys: readonly string[]
}

const lostShown = 5

/** Opens every value and changes none. */
export async function inspectColumn(db: Db, secrets: Secrets, column: SealedColumn): Promise<ColumnUse> {
  const use = { total: 0, old: 0, lost: 0, lost_keys: [] as string[] }
  for await (const row of rowsOf(db, column)) {
    use.total += 1
    const opened = tryOpen(secrets, column, row)
    if (!opened) {
      use.lost += 1
      if (use.lost <= lostShown) use.lost_keys.push(row.key)
    } else if (opened.secret_id !== secrets.id) use.old += 1
  }
  return { name: column.name, ...use }
}

/** How many values were sealed again, how many changed meanwhile, and how many none of the secrets opens. */
interface ResealedColumn {
  readonly resealed: number
  readonly changed: number
  readonly lost: number
}

/**
 * Seals with the secret in use what another known secret sealed. Each value is a statement of its own, which holds no lock for
 * long. A kill loses nothing: what was sealed again stays, and the rest is found again.
 */
export async function resealColumn(db: Db, secrets: Secrets, column: SealedColumn): Promise<ResealedColumn> {
  const done = { resealed: 0, changed: 0, lost: 0 }
  for await (const row of rowsOf(db, column)) {
    const opened = tryOpen(secrets, column, row)
    if (!opened) {
      done.lost += 1
      continue
    }
    if (opened.secret_id === secrets.id) continue
    const { key, place, sealed } = row
    const after = secrets.seal(column.purpose, place, opened.plain)
    // crash point 25: a value is about to be sealed again
    const replaced = await column.replace(db, { key, before: sealed, after }).catch(waitForLock)
    if (replaced > 0) done.resealed += 1
    else done.changed += 1
  }
  return done
}

/** The next pass comes back to a row that another transaction has. A full disk ends the run. */
function waitForLock(error: unknown): number {
  if (isLocked(error)) return 0 // guard: only a locked row is tried again
  throw error
}

function tryOpen(secrets: Secrets, { purpose }: SealedColumn, { place, sealed }: SealedRow) {
  try {
    return secrets.openAny(purpose, place, sealed)
  } catch {
    return undefined
  }
}
