/** The rows of the suppression list: writes them under the lock that crossings wait for, reads them in batches. */
import { given } from '../../db/given.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import type { Entry } from './entries.ts'

export interface Suppression extends Entry {
  readonly source: 'operator' | 'import' | 'opt_out'
  /** For an opt-out, the message that asked; for an import, the file and line. */
  readonly evidence: Readonly<Record<string, unknown>>
  readonly created_at: Date
}

/** Of entry `s`. */
export const entryColumns = {
  workspace_id: sql`s.workspace_id`,
  kind: sql`s.kind`,
  value: sql`s.value`,
  created_at: sql`s.created_at`,
}

/** Taken last before the commit, so that crossings wait for no more than the commit. */
export function lockList(tx: Tx, workspace_id: string): void {
  tx.atCommit(sql`select pg_advisory_xact_lock(suppressions_lock(${workspace_id}))`) // guard: entries wait for crossings
}

/** Returns how many were not on the list. */
export async function insertEntries(
  tx: Tx,
  workspace_id: string,
  entries: readonly (Entry & { readonly evidence: object })[],
  source: Suppression['source'],
): Promise<number> {
  lockList(tx, workspace_id)
  return tx.run(sql`
    insert into suppressions (workspace_id, kind, value, source, evidence)
    select ${workspace_id}, kind, value, ${source}, evidence
    from ${given(entries, { kind: 'text', value: 'text', evidence: 'jsonb', place: 'ordinality' })} as entry
    order by kind, value, place
    on conflict do nothing`)
}

export async function listSuppressions(db: Db, workspace_id: string): Promise<Suppression[]> {
  const all: Suppression[] = []
  for await (const rows of eachSuppression(db, workspace_id)) all.push(...rows)
  return all
}

const readAtOnce = 5_000

/** In batches, so that no statement reads the whole list. */
export async function* eachSuppression(
  db: Db,
  workspace_id: string,
  atOnce = readAtOnce,
): AsyncGenerator<Suppression[], void> {
  let last: Entry | undefined
  do {
    const beyond = last ? sql`and (kind, value) > (${last.kind}, ${last.value})` : sql``
    const rows: Suppression[] = await db.rows<Suppression>(sql`
      select kind, value, source, evidence, created_at from suppressions
      where workspace_id = ${workspace_id} ${beyond} order by kind, value limit ${atOnce}`)
    yield rows
    last = rows.length < atOnce ? undefined : rows.at(-1)
  } while (last)
}
