/** Whom a campaign or broadcast would reach in a stage or column, before there is one: how many, who, and who is left out. */
import type { App } from '../../app.ts'
import type { Account, Caller } from '../../contract.ts'
import { given } from '../../db/given.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { type Paging, type Position, readPaging } from '../../lib/cursor.ts'
import { type ExclusionReason, whyExcluded } from '../campaigns/campaigns.ts'
import { type ChatFilters, chatsMatching, countedMax, requireFilters, startOfChats } from '../chats/chats.ts'
import { leftOutBy, recipientsMax } from './broadcast.ts'

/** Reasons that can be told before there is a text. */
export const leftOutReasons = [
  'not_ready',
  'no_person',
  'suppressed',
  'nameless',
] as const satisfies readonly ExclusionReason[]
type LeftOutReason = (typeof leftOutReasons)[number]

interface AudienceQuery extends ChatFilters {
  readonly account_id?: string | undefined
  readonly needs_name: 'true' | 'false'
  readonly cursor?: string | undefined
  readonly limit: number
}

/** A cursor is valid only for its filters. */
export function readAudiencePaging(
  { secrets }: App,
  { workspace_id }: Caller,
  { cursor, limit: _, ...filters }: AudienceQuery,
): Paging {
  return readPaging(secrets, { workspace_id, operation: 'get_audience', filters }, cursor)
}

interface AudienceChats {
  readonly accounts: readonly Account[]
  readonly filters: ChatFilters
  /** `ExclusionReason` of a chat `c` of the account `a`. */
  readonly reason: Sql
}

interface AudienceRow {
  readonly account_id: string
  readonly chat_id: string
  readonly name: string
  readonly username: string | null
  readonly reason: LeftOutReason | null
  readonly at: string
  readonly number: string
}

export async function describeAudience(
  app: App,
  caller: Caller,
  accounts: readonly Account[],
  { query, paging: { after, next } }: { query: AudienceQuery; paging: Paging },
): Promise<Record<string, unknown>> {
  const { stage_key, column_id, column_value, needs_name, limit } = query
  const { workspace_id } = caller
  const filters = { stage_key, column_id, column_value }
  await requireFilters(app, caller, filters)
  const left = leftOutBy({ workspace_id, named: needs_name === 'true' })
  const reason = sql`case when a.status <> 'READY' then 'not_ready' else ${left} end`
  const chats = { accounts, filters, reason }
  const counts = await app.db.one<{ chats: number; can_receive: number }>(audienceCounts(chats))
  const rows = await app.db.rows<AudienceRow>(audiencePage(chats, { after, limit: limit + 1 }))
  const page = rows.slice(0, limit)
  const last = rows.length > limit ? page.at(-1) : undefined
  const names = new Map(accounts.map(({ id, name }) => [id, name]))
  return {
    counts,
    broadcast: (await isRefused(app, caller, query)) ? null : broadcastOf(query, counts.can_receive),
    people: page.map(({ at: _, number: __, ...one }) => ({
      ...one,
      sentence: one.reason && whyExcluded(one.reason, names.get(one.account_id)),
    })),
    next_cursor: last ? next([last.at, last.number, last.account_id]) : null,
    has_more: last !== undefined,
  }
}

/** `POST /broadcast` refuses a hidden stage. */
async function isRefused(
  { db }: App,
  { workspace_id }: Caller,
  { stage_key }: AudienceQuery,
): Promise<boolean> {
  if (stage_key === undefined) return false
  const { hidden } = await db.one<{ hidden: boolean }>(sql`
    select coalesce(bool_or(hidden), true) as hidden from stages
    where workspace_id = ${workspace_id} and key = ${stage_key}`)
  return hidden
}

/** A broadcast has one account, and a stage or a column. */
function broadcastOf({ account_id, stage_key, column_id }: AudienceQuery, can_receive: number) {
  if (account_id === undefined || (stage_key === undefined) === (column_id === undefined)) return null
  return {
    max: recipientsMax,
    recipients: Math.min(recipientsMax, can_receive),
    capped: can_receive > recipientsMax,
  }
}

const columns = sql`c.account_id, c.chat_id, c.kind, c.name, c.username, c.participants, c.last_message_at`

const named = (accounts: readonly Account[]): Sql =>
  sql`${given(accounts, { id: 'text', status: 'text' })} as a`

/** Of the newest chats, so that an audience of any size takes the same time. */
export function audienceCounts({ accounts, filters, reason }: AudienceChats): Sql {
  const counts = leftOutReasons.map((one) => sql`${one}::text, count(*) filter (where reason = ${one})`)
  const [first = sql``, ...others] = counts
  const each = others.reduce((list, one) => sql`${list}, ${one}`, first)
  return sql`
    select count(*)::int as chats, (count(*) filter (where reason is null))::int as can_receive,
      json_build_object(${each}) as left_out
    from (
      select ${reason} as reason
      from (
        select a.status, page.* from ${named(accounts)}
        cross join lateral (
          select ${columns} from ${chatsMatching(filters)}
          order by c.last_message_at desc, c.chat_id desc limit ${countedMax}) page
        limit ${countedMax}) c
      cross join lateral (select c.status) a) counted`
}

export function audiencePage(
  { accounts, filters, reason }: AudienceChats,
  { after = startOfChats, limit }: { after: Position | undefined; limit: number },
): Sql {
  const [at, chat_id, account_id] = after
  return sql`
    select c.account_id, 'platform:chat:' || c.chat_id as chat_id, c.name, c.username, ${reason} as reason,
      c.last_message_at::text as at, c.chat_id::text as number
    from (
      select a.status, page.*
      from (
        select ${at}::timestamptz as at, ${chat_id}::bigint as chat_id, ${account_id}::text as account_id offset 0) asked
      cross join ${named(accounts)}
      cross join lateral (
        select * from (
          select ${columns} from ${chatsMatching(filters)}
            and (c.last_message_at, c.chat_id) <= (asked.at, asked.chat_id)
            and (c.last_message_at, c.chat_id, c.account_id) < (asked.at, asked.chat_id, asked.account_id)
          order by c.last_message_at desc, c.chat_id desc limit 101) longest
        order by last_message_at desc, chat_id desc limit (select ${limit}::int)) page
      order by last_message_at desc, chat_id desc, account_id desc limit (select ${limit}::int)) c
    cross join lateral (select c.status) a
    order by c.last_message_at desc, c.chat_id desc, c.account_id desc`
}
