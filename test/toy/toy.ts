/** A toy slice outside src/: reminders that fall due in domain time, and waving to a person. */
import type { App } from '../../src/app.ts'
import { type Actor, record } from '../../src/capabilities/audit/audit.ts'
import type { Caller } from '../../src/contract.ts'
import { type Db, sql, type Tx } from '../../src/db/sql.ts'
import { ApiError } from '../../src/lib/errors.ts'
import { newId } from '../../src/lib/ids.ts'

interface Reminder {
  readonly id: string
  readonly note: string
  readonly due_at: Date
  readonly told_at: Date | null
}

export function listReminders(db: Db, { workspace_id }: Caller): Promise<Reminder[]> {
  return db.rows<Reminder>(sql`
    select id, note, due_at, told_at from toy_reminders where workspace_id = ${workspace_id} order by due_at, id`)
}

export function addReminder(
  tx: Tx,
  { workspace_id }: Caller,
  { note, in_seconds }: { note: string; in_seconds: number },
): Promise<Reminder> {
  return tx.one<Reminder>(sql`
    insert into toy_reminders (id, workspace_id, note, due_at)
    values (${newId()}, ${workspace_id}, ${note}, domain_now() + make_interval(secs => ${in_seconds}))
    returning id, note, due_at, told_at`)
}

/** Emits what is due, the oldest first, one at a time. */
export async function tellDue(db: Db): Promise<boolean> {
  const told = await db.run(sql`
    update toy_reminders set told_at = domain_now() where id = (
      select id from toy_reminders where told_at is null and due_at <= domain_now()
      order by due_at, id limit 1 for update skip locked)`)
  return told > 0
}

export async function countDue(db: Db): Promise<number> {
  const { due } = await db.one<{ due: number }>(sql`
    select count(*)::int as due from toy_reminders where told_at is null and due_at <= domain_now()`)
  return due
}

export async function findNextDue(db: Db): Promise<Date | null> {
  const { due_at } = await db.one<{ due_at: Date | null }>(
    sql`select min(due_at) as due_at from toy_reminders where told_at is null`,
  )
  return due_at
}

/** An operator's action. The same refusal would be a 404 over HTTP. */
export async function forgetReminder(app: App, actor: Actor, id: string): Promise<{ id: string }> {
  return app.db.transaction(async (tx) => {
    const gone = await tx.maybe<{ workspace_id: string }>(sql`
      delete from toy_reminders where id::text = ${id} returning workspace_id`)
    if (!gone) throw new ApiError('not_found', { detail: `There is no reminder "${id}".` })
    await record(app, tx, actor, { action: 'reminder.forgotten', target: id, ...gone })
    return { id }
  })
}
