/** The suppression list as a CSV file: imports one, all or nothing, and exports it, both in pieces. */
import type { App } from '../../app.ts'
import { given } from '../../db/given.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { writeCsv } from '../../lib/csv.ts'
import { ApiError } from '../../lib/errors.ts'
import { type Actor, record } from '../audit/audit.ts'
import type { Entry } from './entries.ts'
import { type FoundEntry, readTable, type SkippedRow, type Text } from './import-table.ts'
import { eachSuppression, lockList } from './stored-entries.ts'

/** The CSV that `importSuppressions` accepts, in pieces. */
export async function* exportSuppressions(db: Db, workspace_id: string): AsyncGenerator<string, void> {
  yield writeCsv([['kind', 'value', 'source', 'created_at', 'evidence']])
  for await (const rows of eachSuppression(db, workspace_id)) {
    yield writeCsv(
      rows.map(({ kind, value, source, created_at, evidence }) => [
        kind,
        value,
        source,
        created_at.toISOString(),
        JSON.stringify(evidence),
      ]),
    )
  }
}

export interface ImportReport {
  readonly added: number
  /** How many rows added nothing. */
  readonly skipped_count: number
  /** The first of them with their reasons, in the order of the file. */
  readonly skipped: readonly SkippedRow[]
}

interface ImportFile {
  readonly workspace_id: string
  /** Its name, which every entry keeps as evidence. */
  readonly file: string
  /** Opened in the import's transaction, which must not wait for a second connection. */
  readonly text: (tx: Tx) => Text
  /** How many skipped rows the report names; it is kept in memory until the end of the file. */
  readonly namedMax?: number
}

const importedAtOnce = 2_000

/** Each import occupies a connection for seconds, so that this many leave most of the pool to other requests. */
const importsMax = 4
let imports = 0

/** All or nothing, in one transaction: a file that cannot be read to its end imports nothing. */
export async function importSuppressions(app: App, actor: Actor, given: ImportFile): Promise<ImportReport> {
  if (imports >= importsMax) throw busy('Other files are being imported.') // guard: imports leave connections free
  imports++
  try {
    return await importFile(app, actor, given)
  } finally {
    imports--
  }
}

function importFile(
  app: App,
  actor: Actor,
  { workspace_id, file, text, namedMax = 100_000 }: ImportFile,
): Promise<ImportReport> {
  return app.db.transaction(async (tx) => {
    await requireOnlyImport(tx, workspace_id)
    const report = new Report(namedMax)
    let added = 0
    let batch: FoundEntry[] = []
    let storing: Promise<void> = Promise.resolve()
    /** The database stores one batch while this process parses the next. */
    const store = async () => {
      const entries = batch
      batch = []
      await storing
      storing = storeBatch(tx, { workspace_id, file, entries, report }).then((count) => {
        added += count
      })
      storing.catch(() => {})
    }
    for await (const row of readTable(text(tx))) {
      if ('reason' in row) report.add(row)
      else batch.push(row)
      if (batch.length === importedAtOnce) await store()
    }
    await store()
    await storing
    lockList(tx, workspace_id)
    const { count: skipped } = report
    await record(app, tx, actor, {
      action: 'suppression.imported',
      target: workspace_id,
      workspace_id,
      detail: { added, skipped },
    })
    return { added, skipped_count: skipped, skipped: report.rows() }
  })
}

/** Two imports that share rows in another order would wait for each other. */
async function requireOnlyImport(tx: Tx, workspace_id: string): Promise<void> {
  const { free } = await tx.one<{ free: boolean }>(sql`
    select pg_try_advisory_xact_lock(hashtextextended('suppression import ' || ${workspace_id}, 0)) as free`)
  if (!free) throw busy('Another file is being imported into this list.') // guard: one import of a workspace at a time
}

function busy(why: string): ApiError {
  return new ApiError('rate_limited', { detail: `${why} Retry in some seconds.`, retry_after: 10 })
}

/** Counts every skipped row and keeps the first ones. */
class Report {
  count = 0
  readonly #namedMax: number
  #rows: SkippedRow[] = []

  constructor(namedMax: number) {
    this.#namedMax = namedMax
  }

  add(row: SkippedRow): void {
    this.count++
    this.#rows.push(row)
    if (this.#rows.length >= 2 * this.#namedMax) this.#rows = this.rows()
  }

  /** Rows are found invalid before those of their batch are found to be on the list. */
  rows(): SkippedRow[] {
    return this.#rows.sort((a, b) => a.line - b.line).slice(0, this.#namedMax)
  }
}

interface Batch {
  readonly workspace_id: string
  readonly file: string
  readonly entries: readonly FoundEntry[]
  readonly report: Report
}

/** Returns how many entries were not on the list, and reports the others. */
async function storeBatch(tx: Tx, { workspace_id, file, entries, report }: Batch): Promise<number> {
  if (entries.length === 0) return 0
  // Asks for the time once: the column's default would ask for each row.
  const added = await tx.run(sql`
    insert into suppressions (workspace_id, kind, value, source, evidence, created_at)
    select ${workspace_id}, kind, value, 'import', jsonb_build_object('file', ${file}::text, 'line', line),
      (select domain_now())
    from ${given(entries, {
      kind: ['text', ({ entry }) => entry.kind],
      value: ['text', ({ entry }) => entry.value],
      line: 'int',
      place: 'ordinality',
    })} as entry
    order by kind, value, place
    on conflict do nothing`)
  if (added < entries.length) {
    for (const row of await findSkipped(tx, workspace_id, entries)) report.add(row)
  }
  return added
}

/** Which rows of a batch that was just stored were on the list before, or earlier in the file. */
async function findSkipped(
  tx: Tx,
  workspace_id: string,
  batch: readonly FoundEntry[],
): Promise<SkippedRow[]> {
  const entries = batch.map(({ entry }) => entry)
  // The list may grow a thousandfold meanwhile: a plan cached while it was small would scan it for each batch. Not set for
  // the whole import, because every function that PostgreSQL calls for a row would be planned again too.
  await tx.run(sql`set local plan_cache_mode = force_custom_plan`)
  // A row that this transaction wrote holds its line number. Each is looked up by its key, because the planner's
  // statistics do not cover rows that are being imported.
  const rows = await tx.rows<Entry & { line: number | null }>(sql`
    select entry.kind, entry.value, s.line
    from ${given(entries, { kind: 'text', value: 'text' })} as entry
    cross join lateral (
      select case when xmin = pg_current_xact_id()::xid then (evidence ->> 'line')::int end as line
      from suppressions
      where workspace_id = ${workspace_id} and kind = entry.kind and value = entry.value limit 1) s`)
  await tx.run(sql`set local plan_cache_mode = auto`)
  const lines = new Map(rows.map(({ kind, value, line }) => [`${kind} ${value}`, line]))
  // If a line names one identity twice, the first one was stored.
  const stored = new Set<string>()
  const skipped: SkippedRow[] = []
  for (const { line, entry } of batch) {
    const name = `${entry.kind} ${entry.value}`
    const before = lines.get(name) ?? null
    if (before === line && !stored.has(name)) stored.add(name)
    else skipped.push({ line, reason: before === null ? onTheList : `Duplicate of line ${before}.` })
  }
  return skipped
}

const onTheList = 'Already on the list.'
