/**
 * What the look-ups of people read: a handful of rows each, however many names and entries of the suppression list there are, and
 * however few there were when PostgreSQL planned them, or looked at them last. `PEOPLE_ROWS=1000000` makes as many entries, and as many names.
 */
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { insertCampaign } from '../../../test/harness/campaigns.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { foundPage } from '../person-record/find-people.ts'
import { campaignRows, namesOf, type PersonRow, suppressionRows } from '../person-record/stored-parts.ts'
import { entryColumns } from '../suppressions/stored-entries.ts'
import { peopleUnder, tieOf } from './people.ts'

const rows = Number(process.env.PEOPLE_ROWS ?? 20_000)
/** Of a person, half of them usernames. */
const names = 20
const people = rows / names
const atOnce = 50_000
/** Before the tables grow. PostgreSQL decides after five runs whether it keeps a plan. */
const few = 5
const runs = 6
/** In one batch. */
const many = 50
const seedMsMax = 1_800_000
const tables = [
  'people',
  'person_names',
  'suppressions',
  'campaign_recipients',
  'campaign_people',
  'contacts',
  'messages',
]

let service: Service
let tenant: Tenant
let account_id: string
let campaign_id: string
/** The person whose number is 1. */
let first: PersonRow
const sessions = new Map<string, pg.Client>()

beforeAll(async () => {
  service = await openService({ plans: 'shipped' })
  tenant = await service.tenant()
  account_id = await service.account(tenant.workspace_id)
  await service.app.db.run(sql`
    insert into account_hosts (account_id, workspace_id, observed_at) values (${account_id}, ${tenant.workspace_id}, now() + interval '1 day')
    on conflict (account_id) do update set observed_at = excluded.observed_at`)
  campaign_id = await insertCampaign(service.app.db, tenant, { kind: 'contacts' })
  const seeding = await open()
  // It would look again within a minute: what is measured is the minute before.
  for (const table of tables) await seeding.query(`alter table ${table} set (autovacuum_enabled = false)`)
  // Nothing that it would end is here, and one statement for each entry is measured below.
  await seeding.query('alter table suppressions disable trigger suppressions_end_recipients')
  await fill(seeding, 1, few)
  first = await service.app.db.one<PersonRow>(sql`
    select id, workspace_id, platform, number::text from people where workspace_id = ${tenant.workspace_id} and number = 1`)
  for (const name of ['planned for few', 'planned once for few']) {
    const client = await open()
    if (name.includes('once')) await client.query('set plan_cache_mode = force_generic_plan')
    for (const [, statement] of lookUps) {
      for (let run = 0; run < runs; run++) await countRows(client, statement(1))
    }
    sessions.set(name, client)
  }
  await seeding.query('analyze')
  for (let from = few + 1; from <= people; from += atOnce / names) {
    await fill(seeding, from, Math.min(people, from + atOnce / names - 1))
  }
  await seeding.query('alter table suppressions enable trigger suppressions_end_recipients')
  await seeding.end()
}, seedMsMax)
afterAll(async () => {
  for (const client of sessions.values()) await client.end()
  await service.close()
})

async function open(): Promise<pg.Client> {
  const client = await service.app.db.client()
  await client.query(`set statement_timeout = 0`)
  return client
}

const usernameOf = (person: number) => `person_${person}_2`
const phoneOf = (person: number) => `${4_900_000_000 + person * names + 1}`

/** A name that was seen before yesterday. It counts while the account has a chat with the person. */
const olderOf = (person: number) => `older_${person}`

/** People by their numbers, each with as many names and an older one, a chat, a recipient that the campaign has written to, and an entry for each name. */
async function fill(client: pg.Client, from: number, to: number): Promise<void> {
  const { workspace_id } = tenant
  const given = [workspace_id, from, to]
  await client.query(
    `insert into people (id, workspace_id, platform, number)
     select gen_random_uuid(), $1, 'sandbox', n from generate_series($2::bigint, $3::bigint) n`,
    given,
  )
  await client.query(
    `insert into person_names (person_id, kind, value, account_id, workspace_id, platform, last_seen_at)
     select p.id, case when k % 2 = 0 then 'username' else 'phone' end,
       case when k % 2 = 0 then 'person_' || p.number || '_' || k else (4900000000 + p.number * ${names} + k)::text end,
       $4, $1, 'sandbox', now()
     from people p, generate_series(1, ${names}) k where p.workspace_id = $1 and p.number between $2 and $3`,
    [...given, account_id],
  )
  await client.query(
    `insert into person_names (person_id, kind, value, account_id, workspace_id, platform, last_seen_at)
     select p.id, 'username', 'older_' || p.number, $4, $1, 'sandbox', now() - interval '3 days'
     from people p where p.workspace_id = $1 and p.number between $2 and $3`,
    [...given, account_id],
  )
  await client.query(
    `insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at)
     select $4, n, n, $1, 'Hello', false, now() - interval '4 days' from generate_series($2::bigint, $3::bigint) n`,
    [...given, account_id],
  )
  await client.query(
    `insert into suppressions (workspace_id, kind, value, source)
     select $1, 'username', 'listed_' || n * ${names} + k, 'operator'
     from generate_series($2::bigint, $3::bigint) n, generate_series(1, ${names}) k`,
    given,
  )
  await client.query(
    `insert into campaign_recipients (id, campaign_id, workspace_id, account_id, chat_id, person_id, contact, position,
       next_action_at)
     select gen_random_uuid(), $4, $1, $5, p.number, p.id, 'username:person_' || p.number || '_2', p.number, now()
     from people p where p.workspace_id = $1 and p.number between $2 and $3`,
    [...given, campaign_id, account_id],
  )
  await client.query(
    `insert into campaign_people (campaign_id, person_id, workspace_id, recipient_id)
     select r.campaign_id, r.person_id, r.workspace_id, r.id from campaign_recipients r
     where r.campaign_id = $1 and r.position between $2 and $3 and r.position > 1`,
    [campaign_id, from, to],
  )
}

/** By name: the look-up of one person by their number here. */
const lookUps: readonly (readonly [string, (person: number) => Sql])[] = [
  ['is_listed, by number', (n) => sql`select is_listed(${tenant.workspace_id}, ${account_id}, ${n}, '{}')`],
  [
    'is_listed, by names',
    (n) => sql`
      select is_listed(${tenant.workspace_id}, ${account_id}, null,
        ${[`username:${usernameOf(n)}`, `phone:${phoneOf(n)}`]}::text[])`,
  ],
  [
    'forbidden_by_suppression',
    (n) => sql`select forbidden_by_suppression(${tenant.workspace_id}, ${account_id}, ${n})`,
  ],
  [
    'recipient_forbidden',
    (n) => sql`
      select recipient_forbidden(${tenant.workspace_id}, ${account_id}, ${n}, ${[`phone:${phoneOf(n)}`]}::text[])`,
  ],
  ['person_of', (n) => sql`select person_of(${tenant.workspace_id}, ${account_id}, ${n})`],
  [
    'person_of, of a new person',
    () => sql`select person_of(${tenant.workspace_id}, ${account_id}, 9000000000)`,
  ],
  [
    'knows_names',
    (n) => sql`
      select knows_names((select id from people
        where workspace_id = ${tenant.workspace_id} and platform = 'sandbox' and number = ${n}), ${account_id})`,
  ],
  [
    'people_named, names_of',
    (n) => sql`
      select names_of(p.id) from people_named(${tenant.workspace_id}, 'username', ${usernameOf(n)}) p`,
  ],
  ['learn_names, nothing new', (n) => learned(n, usernameOf(n), phoneOf(n))],
  ['learn_names, a new name', (n) => learned(n, 'another_name', phoneOf(n))],
  ['learn_names, a name that changes hands', (n) => learned(n + 1, usernameOf(n), phoneOf(n))],
  ['learn_names, a new person', () => learned(9_000_000_000, 'a_new_person', '4999999')],
  [
    'learn_names, fifty people',
    (n) => sql`
      select learn_names(${tenant.workspace_id}, ${account_id}, array_agg(k), array_agg('person_' || k || '_2'),
        array_agg((4900000000 + k * ${names}::bigint + 1)::text))
      from generate_series(${n}::bigint, ${n + many - 1}::bigint) k`,
  ],
  [
    'take_person',
    (n) => sql`
      update campaign_recipients set status = 'submitting'
      where campaign_id = ${campaign_id} and position = ${n} and status = 'queued'`,
  ],
  [
    'end_suppressed',
    (n) => sql`
      insert into suppressions (workspace_id, kind, value, source)
      values (${tenant.workspace_id}, 'username', ${usernameOf(n)}, 'operator')`,
  ],
  [
    'end_suppressed, by number',
    (n) => sql`
      insert into suppressions (workspace_id, kind, value, source)
      values (${tenant.workspace_id}, 'platform_id', ${String(n)}, 'operator')`,
  ],
  [
    'the people under an entry',
    (n) => sql`
      select ${peopleUnder(entryColumns)} from (
        select ${tenant.workspace_id}::uuid as workspace_id, 'phone' as kind, ${phoneOf(n)}::text as value,
          now() as created_at) s`,
  ],
  ['people found by a username', (n) => found(`@${usernameOf(n)}`)],
  ['people found by a phone number', (n) => found(`+${phoneOf(n)}`)],
  ['people found by a number', (n) => found(`platform:chat:${n}`)],
  ['people found by words', () => found('ines garcia')],
  [
    'the tie of a recipient',
    (n) => sql`
      select ${tieOf({ workspace_id: sql`g.workspace_id`, contact: sql`g.contact` }, sql`${[account_id]}::text[]`)}
      from (select ${tenant.workspace_id}::uuid as workspace_id, ${`username:${olderOf(n)}`}::text as contact) g`,
  ],
  ['the names of a person', () => namesOf(first, shown)],
  ['the suppression of a person', () => suppressionRows(first, shown)],
  ['the campaigns of a person', () => campaignRows(first, shown)],
]

const shown = 100
const found = (q: string) => foundPage(tenant.workspace_id, { q, limit: 51 })

function learned(number: number, username: string, phone: string): Sql {
  return sql`
    select learn_names(${tenant.workspace_id}, ${account_id}, array[${number}::bigint], array[${username}::text],
      array[${phone}::text])`
}

/** The rows of each table that the statement reads, before it is taken back. */
async function countRows(client: pg.Client, statement: Sql): Promise<Record<string, number>> {
  const read = async () => {
    const { rows: found } = await client.query<{ name: string; rows: string }>(
      `select relname as name, seq_tup_read + coalesce(idx_tup_fetch, 0) as rows from pg_stat_xact_user_tables
       where relname = any($1)`,
      [tables],
    )
    return new Map(found.map((row) => [row.name, Number(row.rows)]))
  }
  await client.query('begin')
  try {
    const before = await read()
    await client.query({ ...statement, values: [...statement.values] })
    const after = await read()
    const counted = [...after].map(([name, count]) => [name, count - (before.get(name) ?? 0)] as const)
    return Object.fromEntries(counted.filter(([, count]) => count > 0))
  } finally {
    await client.query('rollback')
  }
}

const planned = ['planned for few', 'planned once for few', 'planned now']

async function sessionOf(name: string): Promise<pg.Client> {
  const client = sessions.get(name) ?? (await open())
  sessions.set(name, client)
  return client
}

/** It asks for the names of a person at most three times, and for the rows that it changes. */
function expectFew(counted: Record<string, number>, each: number): void {
  for (const [table, count] of Object.entries(counted)) {
    expect([table, count]).toEqual([
      table,
      Math.min(count, each * (table === 'person_names' ? names * 4 : names + few)),
    ])
  }
}

describe.each(planned)('%s', (session) => {
  test.each(lookUps)('%s reads the names of one person and a few rows besides', async (name, statement) => {
    const client = await sessionOf(session)
    // The first plans.
    await countRows(client, statement(1))
    const counted = await countRows(client, statement(1))
    if (process.env.PEOPLE_ROWS) process.stdout.write(`${session}, ${name}: ${JSON.stringify(counted)}\n`)
    expectFew(counted, name.includes('fifty') ? many : 1)
  })
})

describe('until every contact of before was read', () => {
  /** Each with the same contacts. */
  const accounts = 3
  beforeAll(async () => {
    const { db } = service.app
    for (let more = 1; more < accounts; more++) await service.account(tenant.workspace_id)
    // What they would teach is there already.
    await db.run(sql`alter table contacts disable trigger contacts_new_names`)
    await db.run(sql`
      insert into contacts (account_id, provider_id, workspace_id, username, phone)
      select a.id, n, a.workspace_id, 'person_' || n || '_2', (4900000000 + n * ${names}::bigint + 1)::text
      from generate_series(1, ${people}::int) n, accounts a where a.workspace_id = ${tenant.workspace_id}`)
    await db.run(sql`alter table contacts enable trigger contacts_new_names`)
    await db.run(sql`update people_backfill set done_at = null`)
  })
  afterAll(() => service.app.db.run(sql`update people_backfill set done_at = domain_now()`))
  const asking = ['is_listed, by number', 'is_listed, by names', 'recipient_forbidden', 'end_suppressed']
  const statements = lookUps.filter(([name]) => asking.includes(name))

  describe.each(planned)('%s', (session) => {
    test.each(statements)('%s reads the contacts of one person besides', async (_, statement) => {
      const client = await sessionOf(session)
      await countRows(client, statement(1))
      const counted = await countRows(client, statement(1))
      expectFew(counted, 1)
      expect(counted.contacts).toBeGreaterThanOrEqual(accounts)
    })
  })
})
