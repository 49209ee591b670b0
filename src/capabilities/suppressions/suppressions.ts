/** The people whom a workspace never writes to first. */
import type { App } from '../../app.ts'
import type { AccountKey } from '../../contract.ts'
import { given } from '../../db/given.ts'
import { type Db, type Sql, sql, type Tx } from '../../db/sql.ts'
import { writeCsv } from '../../lib/csv.ts'
import { ApiError } from '../../lib/errors.ts'
import { type ChatNumber, chatIdOf } from '../../lib/shapes.ts'
import { listedDigits } from '../../platform/identifier.ts'
import type { Message } from '../../platform/port.ts'
import { type Actor, record } from '../audit/audit.ts'
import { type Entry, type Kind, kinds, toEntry } from './entries.ts'
import { type FoundEntry, readTable, type SkippedRow, type Text } from './import-table.ts'
import { isOptOut } from './opt-out.ts'

export { isOptOut } from './opt-out.ts'

/** The known names of a person. */
export interface Identity {
  readonly id?: string | null
  readonly username?: string | null
  readonly phone?: string | null
}

/** Whether any known identity of this person is on the list. Throws if the list cannot be read, so that nothing is sent. */
export async function findSuppressed(db: Db, workspace_id: string, identity: Identity): Promise<boolean> {
  const found = await listSuppressed(db, workspace_id, entriesOf(identity))
  return found.size > 0
}

/** Every entry that this person would match. */
export function entriesOf({ id, username, phone }: Identity): Entry[] {
  const digits = listedDigits(phone ?? '')
  return [
    ...(id ? [{ kind: 'platform_id' as const, value: id }] : []),
    ...(username ? [{ kind: 'username' as const, value: username.toLowerCase() }] : []),
    ...(digits === undefined ? [] : [{ kind: 'phone' as const, value: digits }]),
  ]
}

/** Which of these are on the list, as `kind:value`. */
export async function listSuppressed(
  db: Db,
  workspace_id: string,
  entries: readonly Entry[],
): Promise<ReadonlySet<string>> {
  try {
    const rows = await db.rows<Entry>(sql`
      select s.kind, s.value from suppressions s
      join ${given(entries, { kind: 'text', value: 'text' })} as e on e.kind = s.kind and e.value = s.value
      where s.workspace_id = ${workspace_id}`)
    return new Set(rows.map(({ kind, value }) => `${kind}:${value}`))
  } catch (cause) {
    throw new ApiError('suppression_unavailable', { cause })
  }
}

/**
 * Whether a person is on the list under any of these names: rows of a kind and a value in the list's form. Each is looked up
 * by its key, however long the list is.
 */
export function isListed(workspace_id: Sql, names: Sql): Sql {
  return sql`exists (
    select from (values ${names}) as named (kind, value) join suppressions listed
      on listed.workspace_id = ${workspace_id} and listed.kind = named.kind and listed.value = named.value)`
}

/** A phone number in the list's form. */
export const listedPhone = (phone: Sql): Sql => sql`phone_digits(${phone})`

/**
 * The re-check at the boundary for an operation in a private chat, whose row is `o`. Adding to the list waits for crossings
 * in flight, and crossings that start meanwhile check again: once an entry has committed, nothing crosses to that person.
 */
export const forbiddenBySuppression: Sql = sql`forbidden_by_suppression(o.workspace_id, o.account_id, o.chat_id)`

/** Taken last before the commit, so that crossings wait for no more than the commit. */
function lockList(tx: Tx, workspace_id: string): void {
  tx.atCommit(sql`select pg_advisory_xact_lock(suppressions_lock(${workspace_id}))`) // guard: entries wait for crossings
}

export interface Suppression extends Entry {
  readonly source: 'operator' | 'import' | 'opt_out'
  /** For an opt-out, the message that asked; for an import, the file and line. */
  readonly evidence: Readonly<Record<string, unknown>>
  readonly created_at: Date
}

/** One of the kinds, named by its property. */
type GivenEntry = { readonly [K in Kind]?: string | undefined }

export async function addSuppression(
  app: App,
  actor: Actor,
  { workspace_id, ...given }: GivenEntry & { workspace_id: string },
): Promise<Entry & { added: boolean }> {
  const entry = requireEntry(given)
  const added = await app.db.transaction(async (tx) => {
    const rows = await insert(tx, workspace_id, [{ ...entry, evidence: {} }], 'operator')
    if (rows > 0) await note(app, tx, actor, { workspace_id, action: 'added', entry })
    return rows > 0
  })
  return { ...entry, added }
}

/** Removes opt-outs as well; the audit log records who did it, and the reason if there is one. */
export async function removeSuppression(
  app: App,
  actor: Actor,
  { workspace_id, reason, ...given }: GivenEntry & { workspace_id: string; reason?: string | undefined },
): Promise<Entry & { removed: boolean }> {
  const entry = requireEntry(given)
  const removed = await app.db.transaction(async (tx) => {
    const row = await tx.maybe<Pick<Suppression, 'source'>>(sql`
      delete from suppressions where workspace_id = ${workspace_id} and kind = ${entry.kind} and value = ${entry.value}
      returning source`)
    if (row) {
      const detail = { ...row, ...(reason !== undefined && { reason }) } // guard: the reason of a removal
      await note(app, tx, actor, { workspace_id, action: 'removed', entry, detail })
    }
    return row !== undefined
  })
  return { ...entry, removed }
}

function requireEntry(given: GivenEntry): Entry {
  const named = kinds.filter((kind) => given[kind] !== undefined)
  const [kind, another] = named
  if (kind === undefined || another !== undefined) {
    throw new ApiError('invalid_request', {
      detail: 'Give exactly one of platform_id, username and phone.',
      missing: 'identity',
    })
  }
  const entry = toEntry(kind, given[kind] ?? '')
  if (typeof entry === 'string') throw new ApiError('invalid_request', { detail: entry })
  return entry
}

/** The audit log gets no phone numbers and no names: only the kind, and the value if it is an id. */
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
  for await (const rows of suppressionsIn(db, workspace_id)) all.push(...rows)
  return all
}

const readAtOnce = 5_000

/** In batches, so that no statement reads the whole list. */
async function* suppressionsIn(db: Db, workspace_id: string): AsyncGenerator<Suppression[], void> {
  let last: Entry | undefined
  do {
    const beyond = last ? sql`and (kind, value) > (${last.kind}, ${last.value})` : sql``
    const rows: Suppression[] = await db.rows<Suppression>(sql`
      select kind, value, source, evidence, created_at from suppressions
      where workspace_id = ${workspace_id} ${beyond} order by kind, value limit ${readAtOnce}`)
    yield rows
    last = rows.length < readAtOnce ? undefined : rows.at(-1)
  } while (last)
}

/** The CSV that `importSuppressions` accepts, in pieces. */
export async function* exportSuppressions(db: Db, workspace_id: string): AsyncGenerator<string, void> {
  yield writeCsv([['kind', 'value', 'source', 'created_at', 'evidence']])
  for await (const rows of suppressionsIn(db, workspace_id)) {
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
  /** Every row that added nothing, and why. */
  readonly skipped: readonly SkippedRow[]
}

const importedAtOnce = 1_000
/** The report is kept in memory until the end of the file, so it is limited. */
const skippedMax = 1_000_000

/** All or nothing, in one transaction: an interrupted upload imports nothing. */
export async function importSuppressions(
  app: App,
  actor: Actor,
  { workspace_id, file, text }: { workspace_id: string; file: string; text: Text },
): Promise<ImportReport> {
  return app.db.transaction(async (tx) => {
    // The list may grow a thousandfold meanwhile: a plan cached while it was small would scan it for each batch.
    await tx.run(sql`set local plan_cache_mode = force_custom_plan`)
    const skipped: SkippedRow[] = []
    let added = 0
    let batch: FoundEntry[] = []
    const store = async () => {
      added += await insert(
        tx,
        workspace_id,
        batch.map(({ line, entry }) => ({ ...entry, evidence: { file, line } })),
        'import',
      )
      skipped.push(...(await findSkipped(tx, workspace_id, batch)))
      batch = []
      if (skipped.length > skippedMax) {
        throw new ApiError('invalid_request', {
          detail: `More than ${skippedMax} rows are invalid or already on the list. Nothing was imported.`,
        })
      }
    }
    for await (const row of readTable(text)) {
      if ('reason' in row) skipped.push(row)
      else batch.push(row)
      if (batch.length === importedAtOnce || skipped.length > skippedMax) await store()
    }
    await store()
    await record(app, tx, actor, {
      action: 'suppression.imported',
      target: workspace_id,
      workspace_id,
      detail: { added, skipped: skipped.length },
    })
    return { added, skipped: skipped.sort((a, b) => a.line - b.line) }
  })
}

/** Which rows of a batch that was just stored were on the list before, or earlier in the file. */
async function findSkipped(
  tx: Tx,
  workspace_id: string,
  batch: readonly FoundEntry[],
): Promise<SkippedRow[]> {
  if (batch.length === 0) return []
  const entries = batch.map(({ entry }) => entry)
  // A row that this transaction wrote holds its line number. Each is looked up by its key, because the planner's
  // statistics do not cover rows that are being imported.
  const rows = await tx.rows<Entry & { line: number | null }>(sql`
    select entry.kind, entry.value, s.line
    from ${given(entries, { kind: 'text', value: 'text' })} as entry
    cross join lateral (
      select case when xmin = pg_current_xact_id()::xid then (evidence ->> 'line')::int end as line
      from suppressions
      where workspace_id = ${workspace_id} and kind = entry.kind and value = entry.value limit 1) s`)
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

/** A message from the other side of a private chat. */
interface IncomingMessage {
  readonly chat_id: ChatNumber
  readonly message: Message
  /** A live message. One from history may be older than anything that Parley did. */
  readonly announce: boolean
}

/**
 * Adds everyone who asks to stop, with the message as evidence. A second request keeps the first evidence. A message from
 * history counts only if this workspace had written to the person before it: earlier requests are for people to judge.
 */
export function noteOptOuts(
  app: App,
  tx: Tx,
  { account_id, workspace_id }: AccountKey,
  incoming: readonly IncomingMessage[],
): void {
  const asked = incoming.filter(({ message }) => isOptOut(app.config.opt_out_words, message.text))
  if (asked.length === 0) return
  const evidenceOf = ({ chat_id, message }: IncomingMessage) => ({
    account_id,
    chat_id: chatIdOf(chat_id),
    message_id: message.id,
    text: message.text,
    timestamp: message.timestamp,
  })
  tx.atCommit(sql`
    with asked as materialized ${given(asked, {
      value: ['text', ({ chat_id, message }) => message.sender_id ?? chat_id],
      evidence: ['jsonb', evidenceOf],
      chat_id: 'bigint',
      at: ['timestamptz', ({ message }) => message.timestamp],
      live: ['boolean', ({ announce }) => announce],
      place: 'ordinality',
    })},
    written as materialized (
      select chat_id, ${firstWrittenAt(workspace_id, sql`chats.chat_id`)} as at
      from (select distinct chat_id from asked where not live) chats)
    insert into suppressions (workspace_id, kind, value, source, evidence)
    select ${workspace_id}, 'platform_id', value, 'opt_out', evidence from asked left join written using (chat_id)
    where asked.live
      or written.at <= asked.at -- guard: history asks to stop after a message of ours
    order by value, place
    on conflict do nothing`)
  lockList(tx, workspace_id)
}

/**
 * When an account of the workspace first wrote to a person: by its messages, and by campaign messages, of which one in
 * flight or unknown counts from its crossing. Platforms report whole seconds.
 */
const firstWrittenAt = (workspace_id: string, chat_id: Sql): Sql => sql`least(
  (select min(m.sent_at) from accounts a
    join messages m on m.account_id = a.id and m.chat_id = ${chat_id} and m.is_sender and m.random_id is not null
    where a.workspace_id = ${workspace_id}), -- guard: written by what was sent
  (select min(date_trunc('second', coalesce((o.reply_body ->> 'timestamp')::timestamptz, o.crossed_at))) from accounts a
    join campaign_recipients r on r.account_id = a.id and r.chat_id = ${chat_id}
    join operations o on o.recipient_id = r.id and o.state in ('completed', 'submitting', 'ambiguous')
    where a.workspace_id = ${workspace_id}) -- guard: written by a campaign
  )`
