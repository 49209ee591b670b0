/** The audit log: every change by an operator. Each row's hash covers the row before it. */
import { canonicalize } from 'json-canonicalize'
import type { App } from '../../app.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import type { Secrets } from '../../lib/secrets.ts'

/** Who made a change: `cli:<login>`, `user:<id>`, `key:<id>` or `system`. */
export type Actor = `cli:${string}` | `user:${string}` | `key:${string}` | 'system'

/** A user at the dashboard, or the user who owns the key. */
export function actorOf({ user_id }: { readonly user_id: string }): Actor {
  return `user:${user_id}`
}

/** The user who acts; undefined at the terminal and for Parley itself. */
export function userOf(actor: Actor): string | undefined {
  return actor.startsWith('user:') ? actor.slice('user:'.length) : undefined
}

interface Change {
  readonly action: string
  readonly target: string
  readonly workspace_id?: string
  /** What changed. Never a secret, a text or a phone number. */
  readonly detail?: Readonly<Record<string, unknown>>
}

interface AuditRow {
  readonly seq: string
  readonly at: Date
  readonly workspace_id: string | null
  readonly actor: string
  readonly action: string
  readonly target: string
  readonly detail: string
  readonly hash: Buffer
}

interface Head {
  readonly seq: string
  readonly hash: string
}

/** What appending needs. A restore has only this part of an App. */
export type Recorder = Pick<App, 'secrets' | 'log'>

/** Appends in the change's transaction. Appends wait for each other, which costs little: operators rarely change things. */
export async function record(app: Recorder, tx: Tx, actor: Actor, change: Change): Promise<void> {
  const { action, target, workspace_id = null, detail = {} } = change
  const head = await lockHead(tx)
  const { at } = await tx.one<{ at: Date }>(sql`select date_trunc('milliseconds', domain_now()) as at`)
  const seq = String(BigInt(head.seq) + 1n)
  const row = { seq, at, workspace_id, actor, action, target, detail: canonicalize(detail) }
  const hash = hashOf(app.secrets, row, head.hash)
  await tx.run(sql`
    insert into audit (seq, at, workspace_id, actor, action, target, detail, hash)
    values (${seq}, ${at}, ${workspace_id}, ${actor}, ${action}, ${target}, ${row.detail}, ${hash})`)
  await tx.run(sql`
    update settings set value = ${JSON.stringify({ seq, hash: hash.toString('hex') })}::jsonb
    where name = 'audit_head'`)
  // The head is logged outside the database, so that cutting rows off the end leaves a trace.
  app.log.info({ seq, actor, action, target, hash: hash.toString('hex') }, 'audit')
}

async function lockHead(tx: Tx): Promise<Head> {
  await tx.run(sql`
    insert into settings (name, value) values ('audit_head', '{"seq": "0", "hash": ""}'::jsonb)
    on conflict (name) do nothing`)
  const { value } = await tx.one<{ value: Head }>(sql`
    select value from settings where name = 'audit_head' for update`)
  return value
}

function hashOf(secrets: Secrets, row: Omit<AuditRow, 'hash'>, before: string): Buffer {
  const { seq, at, workspace_id, actor, action, target, detail } = row
  return secrets.sign(
    'audit',
    before,
    canonicalize({ seq, at: at.toISOString(), workspace_id, actor, action, target, detail }),
  )
}

interface AuditEntry extends Omit<AuditRow, 'hash' | 'detail'> {
  readonly detail: Readonly<Record<string, unknown>>
}

/** Newest first. Without a workspace: all workspaces, and the instance's own changes. */
export function listAudit(
  db: Db,
  { workspace_id, limit }: { workspace_id?: string | undefined; limit: number },
): Promise<AuditEntry[]> {
  const own = workspace_id === undefined ? sql`true` : sql`workspace_id = ${workspace_id}`
  return db.rows<AuditEntry>(sql`
    select seq, at, actor, action, target, workspace_id, detail::jsonb as detail from audit
    where ${own} order by seq desc limit ${limit}`)
}

export interface Verdict {
  readonly ok: boolean
  readonly rows: number
  /** The first row that was changed or is missing, and why. */
  readonly seq?: string
  readonly problem?: string
}

/** Walks the whole chain in pages and reports the first row that was changed or is missing. Stores the result. */
export async function verifyAudit(app: App): Promise<Verdict> {
  const verdict = await walkChain(app)
  await storeVerdict(app.db, verdict)
  return verdict
}

/** Stored, so that a failed verification stays on the operators' pages until one succeeds. */
async function storeVerdict(db: Db, verdict: Verdict): Promise<void> {
  await db.run(sql`
    insert into settings (name, value)
    values ('audit_verdict', ${JSON.stringify(verdict)}::jsonb || jsonb_build_object('at', domain_now()))
    on conflict (name) do update set value = excluded.value`)
}

export interface StoredVerdict extends Verdict {
  readonly at: Date
}

/** The result of the last verification, by any operator or at the terminal. */
export async function findVerdict(db: Db): Promise<StoredVerdict | null> {
  const row = await db.maybe<{ value: Verdict; at: Date }>(sql`
    select value - 'at' as value, (value ->> 'at')::timestamptz as at from settings where name = 'audit_verdict'`)
  return row ? { ...row.value, at: row.at } : null
}

async function walkChain(app: App): Promise<Verdict> {
  // Read first, because rows recorded during the walk come after it.
  const head = await findHead(app.db)
  let before: Head = { seq: '0', hash: '' }
  for (;;) {
    const page = await listAfter(app.db, before.seq)
    for (const row of page) {
      const seq = String(BigInt(before.seq) + 1n)
      if (row.seq !== seq) return broken(before, seq, `row ${seq} is missing`)
      if (!hashOf(app.secrets, row, before.hash).equals(row.hash)) {
        const other =
          seq === '1' ? 'PARLEY_SECRET is not the secret that created it' : 'the row before it was'
        return broken(before, seq, `row ${seq} was changed, or ${other}`)
      }
      before = { seq, hash: row.hash.toString('hex') }
    }
    if (page.length === 0) break
  }
  if (BigInt(head.seq) > BigInt(before.seq)) {
    const seq = String(BigInt(before.seq) + 1n)
    return broken(before, seq, `rows from ${seq} to the end are missing`)
  }
  return { ok: true, rows: Number(before.seq) }
}

/** Whether the chain begins under this secret. If not, the instance was set up with another one. */
export async function beginsUnderSecret({
  db,
  secrets,
}: {
  readonly db: Db
  readonly secrets: Secrets
}): Promise<boolean> {
  const [first] = await listAfter(db, '0', 1)
  return first?.seq !== '1' || hashOf(secrets, first, '').equals(first.hash)
}

async function findHead(db: Db): Promise<Head> {
  const row = await db.maybe<{ value: Head }>(sql`select value from settings where name = 'audit_head'`)
  return row?.value ?? { seq: '0', hash: '' }
}

function broken(before: Head, seq: string, problem: string): Verdict {
  return { ok: false, rows: Number(before.seq), seq, problem }
}

function listAfter(db: Db, seq: string, limit = 1000): Promise<AuditRow[]> {
  return db.rows<AuditRow>(sql`
    select seq, at, workspace_id, actor, action, target, detail, hash
    from audit where seq > ${seq} order by seq limit ${limit}`)
}
