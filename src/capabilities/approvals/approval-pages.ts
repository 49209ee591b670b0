/** A user's requests as the dashboard shows them: those that wait, and how the others ended. */
import type { App } from '../../app.ts'
import { type Db, type Sql, sql } from '../../db/sql.ts'
import type { Paging } from '../../lib/cursor.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { chatPrefix } from '../../lib/shapes.ts'
import type { State } from '../../operation.ts'
import { isUsed, joinOperation } from './use.ts'

/** Only requests to this user, and only while they are a member: any other user finds nothing. */
export function isOwn(user_id: string): Sql {
  return sql`a.user_id = ${user_id} and exists (
    select from memberships m where m.workspace_id = a.workspace_id and m.user_id = a.user_id and m.ended_at is null)`
}

/** The present value of the field that `a` changes, as people read it; null for a message. */
export const fieldNow: Sql = sql`case a.operation
  when 'move_chat' then (
    select array[s.label] from chats h join stages s on s.workspace_id = h.workspace_id and s.key = h.stage_key
    where h.account_id = a.account_id and h.chat_id = a.chat_id)
  when 'set_column' then coalesce((
    select v.value from column_values v
    where v.account_id = a.account_id and v.chat_id = a.chat_id and v.column_id = (a.payload ->> 'column_id')::uuid),
    '{}')
  end`

const fieldName = sql`case a.operation
  when 'move_chat' then 'Stage'
  when 'set_column' then coalesce(
    (select l.name from columns l where l.workspace_id = a.workspace_id and l.id = (a.payload ->> 'column_id')::uuid), '')
  end`

const fieldAfter = sql`case a.operation
  when 'move_chat' then array[coalesce(
    (select s.label from stages s where s.workspace_id = a.workspace_id and s.key = a.payload ->> 'stage_key'),
    a.payload ->> 'stage_key')]
  when 'set_column' then array(select json_array_elements_text(a.payload -> 'value'))
  end`

const isWaiting = sql`(a.state = 'waiting' and a.expires_at > domain_now())`

const state = sql`case
  when ${isUsed} then 'used'
  when a.state = 'waiting' and a.expires_at <= domain_now() then 'expired'
  when a.state = 'approved' and a.token_expires_at <= domain_now() then 'expired'
  else a.state end`

/** This select list is the response body. */
const fields = sql`
  a.id, ${state} as state, a.created_at, a.expires_at, a.decided_at, a.token_expires_at, a.used_at,
  json_build_object('id', w.id, 'name', w.name) as workspace,
  json_build_object('id', k.id, 'name', k.name, 'prefix', k.prefix) as key,
  a.client_name,
  json_build_object('id', c.id, 'name', c.name, 'provider', c.platform) as account,
  a.operation,
  json_build_object('id', ${chatPrefix} || a.chat_id, 'name', coalesce((
    select h.name from chats h where h.account_id = a.account_id and h.chat_id = a.chat_id), '')) as chat,
  a.payload, encode(a.fingerprint, 'hex') as payload_sha256,
  ${fieldName} as field, case when a.state = 'waiting' then ${fieldNow} else a.field_before end as "from",
  ${fieldAfter} as "to",
  coalesce(o.public_id, o.id) as operation_id,
  case when o.id is not null then json_build_object('state', o.state, 'finished_at', o.finished_at,
    'message_id', coalesce(o.reply_body ->> 'message_id', o.proof_message_id::text),
    'code', o.reply_body ->> 'code', 'error', o.reply_body ->> 'error') end as outcome`

const source = sql`approvals a join workspaces w on w.id = a.workspace_id join keys k on k.id = a.key_id
  join accounts c on c.id = a.account_id ${joinOperation}`

export interface Approval {
  readonly id: string
  readonly state: 'waiting' | 'approved' | 'denied' | 'expired' | 'used'
  readonly created_at: Date
  readonly expires_at: Date
  readonly decided_at: Date | null
  readonly token_expires_at: Date | null
  readonly used_at: Date | null
  readonly workspace: { readonly id: string; readonly name: string }
  readonly key: { readonly id: string; readonly name: string; readonly prefix: string }
  readonly client_name: string | null
  readonly account: { readonly id: string; readonly name: string; readonly provider: string }
  readonly operation: string
  readonly chat: { readonly id: string; readonly name: string }
  readonly payload: unknown
  readonly payload_sha256: string
  /** The field that changes, its present value and its new one; null for a message. */
  readonly field: string | null
  readonly from: readonly string[] | null
  readonly to: readonly string[] | null
  readonly operation_id: string | null
  readonly outcome: Outcome | null
}

interface Outcome {
  readonly state: State
  readonly finished_at: string | null
  readonly message_id: string | null
  readonly code: string | null
  readonly error: string | null
}

/** Which requests to list: those that wait for a decision, or all others. */
type ApprovalList = 'waiting' | 'history'

/** Newest first. */
export async function listApprovals(
  { db }: App,
  user_id: string,
  { listed, limit, paging }: { listed: ApprovalList; limit: number; paging: Paging },
): Promise<{ approvals: Approval[]; next_cursor: string | null; has_more: boolean }> {
  const [at, id] = paging.after ?? []
  const older = paging.after ? sql`and (a.created_at, a.id) < (${at}::timestamptz, ${id}::uuid)` : sql``
  const rows = await db.rows<Approval & { at: string }>(sql`
    select ${fields}, a.created_at::text as at from ${source}
    where ${isOwn(user_id)} and ${isWaiting} = ${listed === 'waiting'} ${older}
    order by a.created_at desc, a.id desc limit ${limit + 1}`)
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const has_more = rows.length > limit
  return {
    approvals: page.map(({ at: _, ...approval }) => approval),
    next_cursor: has_more && last ? paging.next([last.at, last.id]) : null,
    has_more,
  }
}

export async function requireApproval(db: Db, user_id: string, id: string): Promise<Approval> {
  const row = isUuid(id)
    ? await db.maybe<Approval>(sql`select ${fields} from ${source} where a.id = ${id} and ${isOwn(user_id)}`)
    : undefined
  if (!row) throw new ApiError('not_found', { detail: 'You have no such request.' })
  return row
}
