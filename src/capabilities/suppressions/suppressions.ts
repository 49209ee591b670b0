/** Whom a workspace never writes to first. */
import type { App } from '../../app.ts'
import type { Owner } from '../../contract.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { writeCsv } from '../../lib/csv.ts'
import { ApiError, Refusal } from '../../lib/errors.ts'
import { chatPrefix } from '../../lib/shapes.ts'
import type { Message } from '../../platform/port.ts'
import { type Actor, record } from '../audit/audit.ts'
import { type Entry, type Kind, kinds, phoneDigits, toEntry } from './entries.ts'
import { isOptOut } from './opt-out.ts'
import { readTable, type Skipped } from './table.ts'

export { phoneDigits } from './entries.ts'

/** As much of a person as is known. */
export interface Identity {
  readonly id?: string | null
  readonly username?: string | null
  readonly phone?: string | null
}

/** Whether any of what is known of this person is on the list. A list that cannot be read says yes to nobody. */
export async function findSuppressed(
  db: Db,
  workspace_id: string,
  { id, username, phone }: Identity,
): Promise<boolean> {
  try {
    const row = await db.maybe(sql`
      select 1 from suppressions where workspace_id = ${workspace_id} and (
        (kind = 'platform_id' and value = ${id ?? null})
        or (kind = 'username' and value = ${username?.toLowerCase() ?? null})
        or (kind = 'phone' and value = ${phone === null || phone === undefined ? null : phoneDigits(phone)}))
      limit 1`)
    return row !== undefined
  } catch (cause) {
    throw new ApiError('suppression_unavailable', { cause })
  }
}

export interface Suppression extends Entry {
  readonly source: 'operator' | 'import' | 'opt_out'
  /** For an opt-out the message that asked. */
  readonly evidence: Readonly<Record<string, unknown>>
  readonly created_at: Date
}

/** One of the kinds, named by its property. */
export type Given = { readonly [K in Kind]?: string | undefined }

export async function addSuppression(
  app: App,
  actor: Actor,
  { workspace_id, ...given }: Given & { workspace_id: string },
): Promise<Entry & { added: boolean }> {
  const entry = requireEntry(given)
  const added = await app.db.transaction(async (tx) => {
    const rows = await insert(tx, workspace_id, [entry], 'operator')
    if (rows > 0) await note(app, tx, actor, { workspace_id, action: 'added', entry })
    return rows > 0
  })
  return { ...entry, added }
}

/** Also one that somebody asked for: the audit log keeps who took it off. */
export async function removeSuppression(
  app: App,
  actor: Actor,
  { workspace_id, ...given }: Given & { workspace_id: string },
): Promise<Entry & { removed: boolean }> {
  const entry = requireEntry(given)
  const removed = await app.db.transaction(async (tx) => {
    const row = await tx.maybe<Pick<Suppression, 'source'>>(sql`
      delete from suppressions where workspace_id = ${workspace_id} and kind = ${entry.kind} and value = ${entry.value}
      returning source`)
    if (row) await note(app, tx, actor, { workspace_id, action: 'removed', entry, detail: row })
    return row !== undefined
  })
  return { ...entry, removed }
}

function requireEntry(given: Given): Entry {
  const named = kinds.filter((kind) => given[kind] !== undefined)
  const [kind, another] = named
  if (kind === undefined || another !== undefined) {
    throw new Refusal('Name exactly one of --platform-id, --username and --phone.')
  }
  const entry = toEntry(kind, given[kind] ?? '')
  if (typeof entry === 'string') throw new Refusal(entry)
  return entry
}

/** The audit log has no phone numbers and no names: the kind, and for an id the id. */
function note(
  app: App,
  tx: Tx,
  actor: Actor,
  {
    workspace_id,
    action,
    entry: { kind, value },
    detail = {},
  }: { workspace_id: string; action: string; entry: Entry; detail?: object },
): Promise<void> {
  const target = kind === 'platform_id' ? value : kind
  return record(app, tx, actor, {
    action: `suppression.${action}`,
    target,
    workspace_id,
    detail: { kind, ...detail },
  })
}

async function insert(
  tx: Tx,
  workspace_id: string,
  entries: readonly Entry[],
  source: Suppression['source'],
): Promise<number> {
  return tx.run(sql`
    insert into suppressions (workspace_id, kind, value, source)
    select ${workspace_id}, kind, value, ${source}
    from unnest(${entries.map(({ kind }) => kind)}::text[], ${entries.map(({ value }) => value)}::text[])
      as entry (kind, value)
    order by kind, value
    on conflict do nothing`)
}

export function listSuppressions(db: Db, workspace_id: string): Promise<Suppression[]> {
  return db.rows<Suppression>(sql`
    select kind, value, source, evidence, created_at from suppressions
    where workspace_id = ${workspace_id} order by kind, value`)
}

/** What `importSuppressions` takes again. */
export async function exportSuppressions(db: Db, workspace_id: string): Promise<string> {
  const rows = await listSuppressions(db, workspace_id)
  const head = ['kind', 'value', 'source', 'created_at', 'evidence']
  return writeCsv([
    head,
    ...rows.map(({ kind, value, source, created_at, evidence }) => [
      kind,
      value,
      source,
      created_at.toISOString(),
      JSON.stringify(evidence),
    ]),
  ])
}

export interface ImportReport {
  readonly added: number
  /** Every row that added nothing, and why. */
  readonly skipped: readonly Skipped[]
}

const importedAtOnce = 1_000

/** All or nothing: a file that breaks off on the way leaves no half of itself. */
export async function importSuppressions(
  app: App,
  actor: Actor,
  { workspace_id, text }: { workspace_id: string; text: string },
): Promise<ImportReport> {
  const skipped: Skipped[] = []
  const found = new Map<string, { line: number; entry: Entry }>()
  for (const row of readTable(text)) {
    if ('reason' in row) {
      skipped.push(row)
      continue
    }
    const name = `${row.entry.kind} ${row.entry.value}`
    const before = found.get(name)
    if (before) skipped.push({ line: row.line, reason: `It is on line ${before.line} already.` })
    else found.set(name, row)
  }
  const rows = [...found.values()]
  return app.db.transaction(async (tx) => {
    let added = 0
    for (let at = 0; at < rows.length; at += importedAtOnce) {
      const some = rows.slice(at, at + importedAtOnce)
      const known = await findKnown(
        tx,
        workspace_id,
        some.map(({ entry }) => entry),
      )
      for (const { line, entry } of some) {
        if (known.has(`${entry.kind} ${entry.value}`))
          skipped.push({ line, reason: 'It is on the list already.' })
      }
      const entries = some.map(({ entry }) => entry)
      added += await insert(tx, workspace_id, entries, 'import')
    }
    const detail = { added, skipped: skipped.length }
    await record(app, tx, actor, {
      action: 'suppression.imported',
      target: workspace_id,
      workspace_id,
      detail,
    })
    return { added, skipped: skipped.sort((a, b) => a.line - b.line) }
  })
}

async function findKnown(db: Db, workspace_id: string, entries: readonly Entry[]): Promise<Set<string>> {
  const rows = await db.rows<Entry>(sql`
    select s.kind, s.value
    from unnest(${entries.map(({ kind }) => kind)}::text[], ${entries.map(({ value }) => value)}::text[])
      as entry (kind, value)
    join suppressions s on s.workspace_id = ${workspace_id} and s.kind = entry.kind and s.value = entry.value`)
  return new Set(rows.map(({ kind, value }) => `${kind} ${value}`))
}

/** A live message of the other side of a private chat. */
export interface Heard {
  readonly chat_id: string
  readonly message: Message
}

/** Whoever asks to stop is on the list with the message that asked, and the first one is kept. */
export function noteOptOuts(
  app: App,
  tx: Tx,
  { account_id, workspace_id }: Owner,
  heard: readonly Heard[],
): void {
  const asked = heard.filter(({ message }) => isOptOut(app.config.opt_out_words, message.text))
  if (asked.length === 0) return
  const evidence = asked.map(({ chat_id, message }) =>
    JSON.stringify({
      account_id,
      chat_id: `${chatPrefix}${chat_id}`,
      message_id: message.id,
      text: message.text,
      timestamp: message.timestamp,
    }),
  )
  tx.atCommit(sql`
    insert into suppressions (workspace_id, kind, value, source, evidence)
    select ${workspace_id}, 'platform_id', value, 'opt_out', evidence
    from unnest(${asked.map(({ chat_id, message }) => message.sender_id ?? chat_id)}::text[],
      ${evidence}::jsonb[]) with ordinality as entry (value, evidence, place)
    order by value, place
    on conflict do nothing`)
}
