/** What an erasure would remove of a person, and what stays. */
import { createHash } from 'node:crypto'
import { canonicalize } from 'json-canonicalize'
import { type Db, sql } from '../../db/sql.ts'
import { type ErasedPerson, namesOf } from '../people/people.ts'

export interface Counts {
  readonly messages: number
  readonly chats: number
  readonly files: number
  readonly campaigns: number
  readonly notes: number
  readonly column_values: number
  readonly names: number
  /** That these operations happened stays. */
  readonly operations: number
}

/** Messages of a person in groups go as well, and are counted while they go: no index finds them. */
export function countStored(db: Db, { id, workspace_id, platform, number }: ErasedPerson): Promise<Counts> {
  return db.one<Counts>(sql`
    with own as materialized (
      select id as account_id from accounts where workspace_id = ${workspace_id} and platform = ${platform}),
    told as materialized (
      select m.account_id, m.id, m.random_id, jsonb_array_length(m.attachments) as files
      from own join messages m on m.account_id = own.account_id and m.chat_id = ${number} and m.deleted_at is null)
    select (select count(*)::int from told) as messages,
      (select coalesce(sum(files), 0)::int from told) as files,
      (select count(*)::int from own join chats c on c.account_id = own.account_id and c.chat_id = ${number}) as chats,
      (select count(*)::int from (
        select r.campaign_id from own join campaign_recipients r on r.account_id = own.account_id and r.chat_id = ${number}
        union
        select r.campaign_id from campaign_recipients r
        where r.workspace_id = ${workspace_id} and r.person_id = ${id} and r.ended_at is null
        union
        select k.id from campaigns k where k.workspace_id = ${workspace_id} and exists (
          select from campaign_people t where t.campaign_id = k.id and t.person_id = ${id})) written) as campaigns,
      (select count(*)::int from own join notes n on n.account_id = own.account_id and n.chat_id = ${number}) as notes,
      (select count(*)::int from own join column_values v on v.account_id = own.account_id and v.chat_id = ${number})
        as column_values,
      (select count(distinct (kind, value))::int from (${namesOf(id)}) own) as names,
      (select count(*)::int from told join operations o on o.account_id = told.account_id and o.random_id = told.random_id)
        as operations`)
}

/** Changes with every figure: an erasure runs only as it was shown. */
export function hashOf({ id }: Pick<ErasedPerson, 'id'>, counts: Counts): string {
  return createHash('sha256').update(canonicalize({ id, counts })).digest('hex')
}
