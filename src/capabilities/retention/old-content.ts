/** What is older than a workspace keeps it: the same rows are counted for a preview and cleared by the loop. */
import { type Db, type Sql, sql } from '../../db/sql.ts'

/** Days; null: kept. */
export interface Retention {
  readonly messages_days: number | null
  readonly operations_days: number | null
  readonly recipients_days: number | null
  readonly notes_days: number | null
}

/** Each is counted up to this. */
export const oldMax = 100_000

export interface OldContent {
  readonly messages: number
  /** Files of these messages. */
  readonly files: number
  readonly operations: number
  readonly recipients: number
  readonly notes: number
}

interface Walk {
  readonly workspace_id: string
  readonly days: number
  readonly limit: number
  /** Where an earlier step of the same round ended: dead index entries before it are not read again. */
  readonly after: Date | null
}

const before = (days: number): Sql => sql`(select domain_now()) - make_interval(days => ${days}::int)`
const since = (after: Date | null): Sql => sql`coalesce(${after}::timestamptz, '-infinity')`

/** Messages of all accounts, oldest first: each account's by the index of its recent messages. */
export function oldMessages({ workspace_id, days, limit, after }: Walk): Sql {
  return sql`
    select m.account_id, m.chat_id, m.id, m.sent_at as at, m.attachments
    from accounts a cross join lateral (
      select * from messages m
      where m.account_id = a.id and m.deleted_at is null and m.sent_at < ${before(days)} and m.sent_at >= ${since(after)}
      order by m.sent_at, m.id limit ${limit}) m
    where a.workspace_id = ${workspace_id} order by m.sent_at, m.id limit ${limit}`
}

export function oldOperations({ workspace_id, days, limit, after }: Walk): Sql {
  return sql`
    select id, finished_at as at from operations
    where workspace_id = ${workspace_id} and cleared_at is null
      and state in ('completed', 'refused', 'released') -- guard: only ended operations are cleared
      and finished_at < ${before(days)} and finished_at >= ${since(after)}
    order by finished_at limit ${limit}`
}

export function oldNotes({ workspace_id, days, limit, after }: Walk): Sql {
  return sql`
    select id, created_at as at from notes
    where workspace_id = ${workspace_id} and text <> ''
      and created_at < ${before(days)} and created_at >= ${since(after)}
    order by created_at limit ${limit}`
}

function oldRecipients({ workspace_id, days, limit }: Walk): Sql {
  return sql`
    select r.id from campaigns k cross join lateral (
      select r.id from campaign_recipients r
      where r.campaign_id = k.id and r.position > coalesce(k.names_cleared_to, -1) limit ${limit}) r
    where k.workspace_id = ${workspace_id} and k.status in ('completed', 'cancelled') and k.names_cleared_at is null
      and coalesce(k.completed_at, k.cancelled_at) < ${before(days)}
    limit ${limit}`
}

export async function countOld(db: Db, workspace_id: string, retention: Retention): Promise<OldContent> {
  const count = async (old: (walk: Walk) => Sql, days: number | null): Promise<number> => {
    if (days === null) return 0
    const walk = { workspace_id, days, limit: oldMax, after: null }
    return (await db.one<{ n: number }>(sql`select count(*)::int as n from (${old(walk)}) o`)).n
  }
  const countMessages = async (days: number | null): Promise<{ messages: number; files: number }> => {
    if (days === null) return { messages: 0, files: 0 }
    const walk = { workspace_id, days, limit: oldMax, after: null }
    return db.one(sql`
      select count(*)::int as messages, coalesce(sum(jsonb_array_length(attachments)), 0)::int as files
      from (${oldMessages(walk)}) o`)
  }
  const { messages_days, operations_days, recipients_days, notes_days } = retention
  const [messages, operations, recipients, notes] = await Promise.all([
    countMessages(messages_days),
    count(oldOperations, operations_days),
    count(oldRecipients, recipients_days),
    count(oldNotes, notes_days),
  ])
  return { ...messages, operations, recipients, notes }
}
