/** The suppression list as a CSV file: imports one, all or nothing, and exports it, both in pieces. */
import { exportTurns } from '../../access/turns.ts'
import type { App } from '../../app.ts'
import { given } from '../../db/given.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { openThread } from '../../lib/threads.ts'
import { writeCsv } from '../../rules/csv.ts'
import { type Actor, record, userOf } from '../audit/audit.ts'
import type { Entry } from './entries.ts'
import type { FoundEntry, SkippedRow } from './import-table.ts'
import type { ImportPiece, ImportRows } from './import-thread.ts'
import { eachSuppression, lockList } from './stored-entries.ts'

/** Rows of one piece: reading and writing them takes some four milliseconds of this process. */
const exportedAtOnce = 500

const inTurn = exportTurns({
  own: 'Another export of this list is being read.',
  others: 'Other lists are being exported.',
})

/** The same for one caller of a workspace at a time. */
export function exportInTurn(
  app: Pick<App, 'db' | 'sources' | 'long'>,
  workspace_id: string,
  left: AbortSignal | undefined,
): AsyncGenerator<string, void> {
  return inTurn(app, { workspace_id, left }, () => exportSuppressions(app.db, workspace_id))
}

/** The CSV that `importSuppressions` accepts, in pieces. */
export async function* exportSuppressions(db: Db, workspace_id: string): AsyncGenerator<string, void> {
  yield writeCsv([['kind', 'value', 'source', 'created_at', 'evidence']])
  for await (const rows of eachSuppression(db, workspace_id, exportedAtOnce)) {
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
  /** Its bytes, read in the import's transaction, which must not wait for a second connection. */
  readonly bytes: (tx: Tx) => AsyncIterable<Uint8Array> | Iterable<Uint8Array>
  /** How many skipped rows the report names; it is kept in memory until the end of the file. */
  readonly namedMax?: number
  /** Aborted once the caller has left: it waits for no place. */
  readonly left?: AbortSignal | undefined
}

const importedAtOnce = 2_000

/** The workspaces that import a file in this process, and who does it. */
const importing = new Map<string, Actor>()

/** All or nothing, in one transaction: a file that cannot be read to its end imports nothing. */
export async function importSuppressions(app: App, actor: Actor, given: ImportFile): Promise<ImportReport> {
  const { workspace_id, left } = given
  if (importing.has(workspace_id)) throw busy(ownBusy) // guard: a workspace has one place for imports
  // Each takes a connection for as long as it lasts, which may be minutes.
  const most = Math.max(1, Math.floor(app.db.requestsMax / 3))
  if (importing.size >= most) throw busy('Other files are being imported.') // guard: imports leave connections free
  const others = [...importing.values()].filter((each) => each === actor && userOf(each) !== undefined)
  if (others.length > 0) throw busy('You are importing another file, into another list.') // guard: a user has one place for imports
  importing.set(workspace_id, actor)
  try {
    // guard: imports take places
    return await app.long({ workspace_id, left }, () => importFile(app, actor, given))
  } finally {
    importing.delete(workspace_id)
  }
}

const ownBusy = 'Another file is being imported into this list.'

function importFile(
  app: App,
  actor: Actor,
  { workspace_id, file, bytes, namedMax = 100_000 }: ImportFile,
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
    for await (const { found, skipped, unnamed } of parsedElsewhere(app, bytes(tx), namedMax)) {
      for (const row of skipped) report.add(row)
      report.count += unnamed
      for (let at = 0; at < found.length; at += importedAtOnce) {
        batch.push(...found.slice(at, at + importedAtOnce))
        if (batch.length >= importedAtOnce) await store()
      }
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

/** Parses the file in a thread, piece by piece. Ends at once when the service stops. */
async function* parsedElsewhere(
  { stopping }: Pick<App, 'stopping'>,
  bytes: ReturnType<ImportFile['bytes']>,
  namedMax: number,
): AsyncGenerator<ImportRows, void> {
  const thread = openThread<ImportPiece, ImportRows>(new URL('./import-thread.ts', import.meta.url))
  const end = () => thread.end()
  stopping.addEventListener('abort', end) // guard: a stop ends an import
  if (stopping.aborted) end()
  const ask = async (piece: ImportPiece): Promise<ImportRows> => {
    const rows = await thread.ask(piece).catch((error) => {
      throw stopping.aborted ? stopped() : error
    })
    if (rows.refusal) throw new ApiError(rows.refusal.code, { detail: rows.refusal.detail })
    return rows
  }
  try {
    for await (const piece of bytes) yield await ask({ bytes: piece, namedMax })
    yield await ask({ namedMax })
  } finally {
    stopping.removeEventListener('abort', end)
    end()
  }
}

function stopped(): ApiError {
  return new ApiError('store_unavailable', {
    detail: 'Parley is stopping. Nothing was imported: import the file again.',
  })
}

/** Two imports that share rows in another order would wait for each other. */
async function requireOnlyImport(tx: Tx, workspace_id: string): Promise<void> {
  const { free } = await tx.one<{ free: boolean }>(sql`
    select pg_try_advisory_xact_lock(hashtextextended('suppression import ' || ${workspace_id}, 0)) as free`)
  if (!free) throw busy(ownBusy) // guard: one import of a workspace at a time
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
