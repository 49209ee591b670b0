/**
 * Reads the contacts that earlier releases stored, whose people have no row yet, and ties their recipients. Ends for good once
 * all are read.
 */
import type { App } from '../../app.ts'
import { sql } from '../../db/sql.ts'
import type { Loop, MakeLoops } from '../../loop.ts'

/** Contacts read in one transaction, so that none holds its locks for long. */
const readAtOnce = 1_000
const restMs = 60_000

export const loops: MakeLoops = () => [backfillPeople]

const backfillPeople: Loop = {
  name: 'backfill-people',
  restMs,
  step: async (app) => (await readContacts(app)) || (await tieRecipients(app)),
}

/**
 * Reads the next contacts, by their key. Returns whether there are more. Nobody knows how old these names are, and another
 * account may have seen a newer one: they end no other name.
 */
export function readContacts({ db }: App, limit = readAtOnce): Promise<boolean> {
  return db.transaction(async (tx) => {
    const at = await tx.maybe<{ account_id: string; number: string }>(sql`
      select after_account_id as account_id, after_number::text as number from people_backfill
      where done_at is null for update skip locked`)
    if (!at) return false
    const { read, account_id, number } = await tx.one<{
      read: number
      account_id: string | null
      number: string | null
    }>(sql`
      with page as materialized (
        select c.account_id, c.provider_id as number, c.workspace_id, c.username, c.phone, a.platform
        from contacts c join accounts a on a.id = c.account_id
        where (c.account_id, c.provider_id) > (${at.account_id}, ${at.number}::bigint)
        order by c.account_id, c.provider_id limit ${limit}),
      new as (
        insert into people (id, workspace_id, platform, number)
        select distinct on (workspace_id, platform, number) gen_random_uuid(), workspace_id, platform, number
        from page where number > 0 order by workspace_id, platform, number
        on conflict do nothing returning id, workspace_id, platform, number),
      known as materialized (
        select id, workspace_id, platform, number from new
        union all
        select p.id, p.workspace_id, p.platform, p.number from page g
        -- By key, also in a plan from when there were fewer people.
        cross join lateral (
          select * from people p
          where p.workspace_id = g.workspace_id and p.platform = g.platform and p.number = g.number limit 1) p),
      named as (
        insert into person_names (person_id, kind, value, account_id, workspace_id, platform)
        select distinct k.id, t.kind, t.value, g.account_id, g.workspace_id, g.platform
        from page g join known k on k.workspace_id = g.workspace_id and k.platform = g.platform and k.number = g.number
        cross join lateral (values
          ('username', nullif(lower(g.username), '')), ('phone', nullif(phone_digits(g.phone), ''))) as t (kind, value)
        where t.value is not null order by 1, 2, 3, 4
        on conflict do nothing)
      select count(*)::int as read, (array_agg(account_id order by account_id desc, number desc))[1] as account_id,
        (array_agg(number order by account_id desc, number desc))[1]::text as number
      from page`)
    await tx.run(sql`
      update people_backfill set after_account_id = coalesce(${account_id}, after_account_id),
        after_number = coalesce(${number}::bigint, after_number),
        done_at = case when ${read < limit} then domain_now() end`)
    return read === limit
  })
}

/** Ties the next recipients of before to their people, by their id. Returns whether there are more. */
export function tieRecipients({ db }: App, limit = readAtOnce): Promise<boolean> {
  return db.transaction(async (tx) => {
    const at = await tx.maybe<{ after: string | null }>(sql`
      select after_recipient_id as after from people_backfill where tied_at is null for update skip locked`)
    if (!at) return false
    const { read, last_id } = await tx.one<{ read: number; last_id: string | null }>(sql`
      select read_rows as read, last_id from tie_recipients(${at.after}::uuid, ${limit})`)
    await tx.run(sql`
      update people_backfill set after_recipient_id = coalesce(${last_id}::uuid, after_recipient_id),
        tied_at = case when ${read < limit} then domain_now() end`)
    return read === limit
  })
}
