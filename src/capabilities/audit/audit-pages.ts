/** The audit log as operators read it at the dashboard: by key, with filters, and with names beside ids. */
import type { App } from '../../app.ts'
import type { UserCaller } from '../../contract.ts'
import { type Db, sql } from '../../db/sql.ts'
import { type Paging, readPaging } from '../../lib/cursor.ts'

export interface AuditFilters {
  readonly workspace_id?: string | undefined
  readonly action?: string | undefined
  readonly actor?: string | undefined
}

interface ShownRow {
  readonly seq: string
  readonly at: Date
  readonly actor: string
  /** The user's e-mail address; null for other actors. */
  readonly actor_email: string | null
  readonly action: string
  readonly target: string
  readonly workspace_id: string | null
  readonly workspace_name: string | null
  readonly detail: Readonly<Record<string, unknown>>
}

export function readAuditPaging(
  { secrets }: Pick<App, 'secrets'>,
  { cursor, ...filters }: AuditFilters & { cursor?: string | undefined },
): Paging {
  return readPaging(secrets, { workspace_id: null, operation: 'list_audit', filters }, cursor)
}

/** The rows of one page, by descending `seq`: each filter has an index that ends with it. */
export function auditRows(
  { workspace_id, action, actor }: AuditFilters,
  { before, limit }: { before: string | undefined; limit: number },
) {
  return sql`
    select seq, at, workspace_id, actor, action, target, detail from audit
    where ${before === undefined ? sql`true` : sql`seq < ${before}::bigint`}
      and ${workspace_id === undefined ? sql`true` : sql`workspace_id = ${workspace_id}`}
      and ${action === undefined ? sql`true` : sql`action = ${action}`}
      and ${actor === undefined ? sql`true` : sql`actor = ${actor}`}
    order by seq desc limit ${limit}`
}

/** Newest first. */
export async function listAuditPage(
  { db }: App,
  { user_id }: UserCaller,
  { filters, limit, paging }: { filters: AuditFilters; limit: number; paging: Paging },
): Promise<{ rows: ShownRow[]; next_cursor: string | null; has_more: boolean }> {
  const before = paging.after?.[0]
  const found = await db.rows<ShownRow>(sql`
    select a.seq::text as seq, a.at, a.actor, u.email as actor_email, a.action, a.target, a.workspace_id,
      w.name as workspace_name, case
        -- Why a member removed a person from the suppression list may name the person.
        when a.action like 'suppression.%' and not exists (
          select from memberships m where m.workspace_id = a.workspace_id and m.user_id = ${user_id}
            and m.ended_at is null)
          then a.detail::jsonb - 'reason' -- guard: operators do not read who is on a list
        else a.detail::jsonb end as detail
    from (${auditRows(filters, { before: before == null ? undefined : String(before), limit: limit + 1 })}) a
      left join users u on a.actor = 'user:' || u.id
      left join workspaces w on w.id = a.workspace_id
    order by a.seq desc`)
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  const has_more = found.length > limit
  return { rows, next_cursor: has_more && last ? paging.next([last.seq]) : null, has_more }
}

/** Every action that the log has. Jumps from one to the next in the index instead of reading all rows. */
export async function listActions(db: Db): Promise<string[]> {
  const rows = await db.rows<{ action: string }>(sql`
    with recursive known (action) as (
      (select action from audit order by action limit 1)
      union all
      select (select a.action from audit a where a.action > k.action order by a.action limit 1)
      from known k where k.action is not null)
    select action from known where action is not null order by action`)
  return rows.map(({ action }) => action)
}
