/** What release 0.3 stored of login codes and of strangers: erased by the migration, and again when a new worker connects. */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { migrationsDirectory } from '../../db/migrate.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { claimAccounts } from '../../ledger/leases.ts'
import { createAccount, tidyAccount } from './accounts.ts'

let service: Service
let tenant: Tenant

beforeAll(async () => {
  service = await openService()
  tenant = await service.tenant()
})
afterAll(() => service.close())

/**
 * An account with a code, replies, a group, a looked-up contact, recipients of campaigns, a group that it left and strangers, as
 * release 0.3 stored them.
 */
async function prepare(platform = 'telegram') {
  const { app } = service
  const { workspace_id } = tenant
  const { id: account_id } = await createAccount(app, 'system', {
    workspace_id,
    platform,
    name: 'Sales',
  })
  const worker_id = randomUUID()
  const claim = { worker_id, platform, limit: 100, takeover_seconds: 0, neighbours: [] }
  const lease = (await claimAccounts(app.db, claim)).find((each) => each.account_id === account_id)
  await app.db.run(sql`update accounts set platform_user_id = 1 where id = ${account_id}`)
  for (const [chat_id, kind] of [
    [777_000, 'private'],
    [7, 'private'],
    [10, 'private'],
    [-3, 'group'],
  ] as const) {
    await app.db.run(sql`
      insert into chats (account_id, chat_id, workspace_id, kind) values (${account_id}, ${chat_id}, ${workspace_id}, ${kind})`)
    await app.db.run(sql`
      insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sender_id, sent_at)
      values (${account_id}, ${chat_id}, ${Math.abs(chat_id)}, ${workspace_id}, 'Login code: 48151', false,
        ${chat_id < 0 ? 8 : chat_id}, domain_now() - ${chat_id === 10 ? 60 : 0} * interval '1 hour')`)
    await app.db.run(sql`
      insert into search_stale (account_id, workspace_id, sent_at, chat_id, id, listing)
      values (${account_id}, ${workspace_id}, domain_now(), ${chat_id}, 900, 1)`)
    await app.db.run(sql`
      insert into deleted_messages (account_id, workspace_id, chat_id, id)
      values (${account_id}, ${workspace_id}, ${chat_id}, 900)`)
    await app.db.run(sql`
      insert into chat_sync (account_id, workspace_id, chat_id) values (${account_id}, ${workspace_id}, ${chat_id})`)
    await app.db.run(sql`
      insert into events (workspace_id, sequence, id, type, occurred_at, data)
      select ${workspace_id}, coalesce(max(sequence), 0) + 1, ${randomUUID()}, 'message.deleted', domain_now(),
        json_build_object('account_id', ${account_id}::text, 'chat_id', ${`platform:chat:${chat_id}`}::text, 'message_ids', json_build_array('48151'))
      from events where workspace_id = ${workspace_id}`)
  }
  await app.db.run(sql`
    insert into search_segments (account_id, workspace_id, messages, oldest_at, newest_at, format)
    values (${account_id}, ${workspace_id}, 3, domain_now() - interval '1 day', domain_now() + interval '1 day', 2),
      (${account_id}, ${workspace_id}, 3, domain_now() - interval '3 days', domain_now() - interval '2 days', 2)`)
  const contacts = [777_000, 7, 9]
  for (const number of contacts) {
    await app.db.run(sql`
      insert into contacts (account_id, provider_id, workspace_id) values (${account_id}, ${number}, ${workspace_id})`)
  }
  await addRecipients(account_id)
  for (const number of [1, 7, 8, 9, 10, 11, 12, 13, 50, 51, 777_000, -3, -4]) {
    await app.db.run(
      sql`insert into platform_peers (account_id, number, text) values (${account_id}, ${number}, '{}')`,
    )
  }
  return { account_id, held: { worker_id, account_id, workspace_id, epoch: lease?.epoch ?? '' } }
}

/** 11 is in a chat of a campaign, 12 is written to by the workspace, and 13 was. */
async function addRecipients(account_id: string): Promise<void> {
  const { db } = service.app
  const { workspace_id, user_id } = tenant
  const campaign_id = randomUUID()
  await db.run(sql`
    insert into campaigns (id, workspace_id, user_id, kind, status, message_text)
    values (${campaign_id}, ${workspace_id}, ${user_id}, 'contacts', 'queued', 'Hello')`)
  for (const number of [12, 13]) {
    await db.run(sql`
      insert into people (id, workspace_id, platform, number)
      values (${randomUUID()}, ${workspace_id}, 'telegram', ${number}) on conflict do nothing`)
  }
  await db.run(sql`
    insert into campaign_recipients (id, campaign_id, workspace_id, position, contact, account_id, chat_id, person_id, status,
      next_action_at, ended_at)
    select gen_random_uuid(), ${campaign_id}, ${workspace_id}, n, 'number:' || n,
      case when n = 11 then ${account_id} end, case when n = 11 then n end,
      (select id from people p where p.workspace_id = ${workspace_id} and p.platform = 'telegram' and p.number = n and n > 11),
      case when n = 12 then 'queued' else 'failed' end, domain_now(), case when n <> 12 then domain_now() end
    from unnest(array[11, 12, 13]) n`)
}

async function stored(account_id: string) {
  const { db } = service.app
  const column = (rows: { n: string }[]) => rows.map(({ n }) => Number(n))
  const of = async (query: Sql) => column(await db.rows(query))
  const events = await db.rows<{ type: string; data: Record<string, unknown> }>(sql`
    select type, data from events where workspace_id = ${tenant.workspace_id}
      and (data ->> 'account_id' = ${account_id} or data ->> 'erased' = 'true') order by sequence desc limit 4`)
  return {
    chats: await of(sql`select chat_id as n from chats where account_id = ${account_id} order by 1`),
    messages: await of(sql`select chat_id as n from messages where account_id = ${account_id} order by 1`),
    peers: await of(sql`select number as n from platform_peers where account_id = ${account_id} order by 1`),
    contacts: await of(
      sql`select provider_id as n from contacts where account_id = ${account_id} order by 1`,
    ),
    synced: await of(sql`select chat_id as n from chat_sync where account_id = ${account_id} order by 1`),
    deleted: await of(
      sql`select chat_id as n from deleted_messages where account_id = ${account_id} order by 1`,
    ),
    pending: await of(
      sql`select chat_id as n from search_pending where account_id = ${account_id} order by 1`,
    ),
    stale: await of(sql`
      select chat_id as n from search_stale where account_id = ${account_id} and id = 900 order by 1`),
    segments: await of(
      sql`select format as n from search_segments where account_id = ${account_id} order by oldest_at desc`,
    ),
    events: events.map(({ type, data }) => [type, Object.keys(data)]),
  }
}

const tidied = {
  chats: [-3, 7, 10],
  messages: [-3, 7, 10],
  // The groups, the account itself, the people of chats, the sender in a group, the contact, the recipients.
  peers: [-4, -3, 1, 7, 8, 9, 10, 11, 12],
  contacts: [7, 9],
  synced: [-3, 7, 10],
  deleted: [-3, 7, 10],
  pending: [-3, 7, 10],
  stale: [-3, 7, 10],
  // Built again without the digits of the code.
  segments: [0, 2],
  events: [
    ['message.deleted', ['account_id', 'chat_id', 'message_ids']],
    ['message.deleted', ['account_id', 'chat_id', 'message_ids']],
    ['message.deleted', ['account_id', 'chat_id', 'message_ids']],
    ['message.deleted', ['erased']],
  ],
}

describe('what release 0.3 stored of login codes and strangers', () => {
  test('is erased by the migration, of all accounts of Telegram, and events keep their number and kind', async () => {
    // In the sandbox 777000 may be anybody.
    const { account_id: elsewhere } = await prepare('sandbox')
    const { account_id } = await prepare()
    const { db } = service.app
    await db.run(sql`
      insert into outbox (workspace_id, type, occurred_at, data)
      select workspace_id, type, occurred_at, data from events
      where data ->> 'account_id' in (${account_id}, ${elsewhere}) order by data ->> 'account_id' = ${elsewhere}, sequence`)
    for (const [file, start] of [
      ['0052_login_codes.sql', 'select erase_service_chat(id)'],
      ['0053_outbox.sql', 'update outbox'],
      ['0054_erased_events.sql', 'update events'],
    ] as const) {
      const text = readFileSync(join(migrationsDirectory, file), 'utf8')
      const from = text.indexOf(start)
      expect(from).toBeGreaterThan(0)
      await db.pool.query(text.slice(from))
    }
    expect(await stored(account_id)).toEqual(tidied)
    const waiting = await db.rows<{ data: object }>(sql`select data from outbox order by id`)
    expect(waiting.map(({ data }) => 'erased' in data)).toEqual([true, ...Array(7).fill(false)])
    const { kept } = await db.one<{ kept: number }>(sql`
      select count(*)::int as kept from events where data ->> 'account_id' = ${elsewhere}`)
    expect(kept).toBe(4)
    await db.run(sql`delete from outbox`)
    const { body } = await service.call('GET', '/events', { key: tenant.key })
    expect(JSON.stringify((body.events as { data: unknown }[]).at(-4))).toContain('"data":{"erased":true}')
  })

  test('is erased once more by the first worker of this release, and not after that', async () => {
    const { account_id, held } = await prepare()
    await tidyAccount(service.app, held)
    expect(await stored(account_id)).toEqual(tidied)
    await service.app.db.run(sql`insert into platform_peers values (${account_id}, 60, '{}')`)
    await tidyAccount(service.app, held)
    expect((await stored(account_id)).peers).toContain(60)
  })

  test.each([
    ['chats', sql`delete from chats where chat_id = 777000 and account_id = `],
    ['messages', sql`delete from messages where chat_id = 777000 and account_id = `],
  ])('is erased as well where it is not among the %s', async (_, remove) => {
    const { account_id, held } = await prepare()
    await service.app.db.run(sql`${remove}${account_id}`)
    await tidyAccount(service.app, held)
    const { peers, contacts, chats, messages } = await stored(account_id)
    const { peers: known, contacts: people, ...rest } = tidied
    expect({ peers, contacts, chats, messages }).toEqual({
      peers: known,
      contacts: people,
      chats: rest.chats,
      messages: rest.messages,
    })
  })

  test('stays where it belongs to another account, and in the sandbox, where 777000 may be anybody', async () => {
    const { held } = await prepare()
    const others = [await prepare(), await prepare('sandbox')]
    const kept = async () => Promise.all(others.map(({ account_id }) => stored(account_id)))
    const before = await kept()
    expect(before[0]?.peers).toContain(777_000)
    expect(before[0]?.segments).toEqual([2, 2])
    await tidyAccount(service.app, held)
    const [, ofSandbox] = others
    if (ofSandbox) await tidyAccount(service.app, ofSandbox.held)
    expect(await kept()).toEqual(before)
  })

  test('is not touched by a worker that has lost the lease', async () => {
    const { account_id, held } = await prepare()
    await expect(tidyAccount(service.app, { ...held, epoch: '99' })).rejects.toThrow('lease')
    expect((await stored(account_id)).peers).toContain(50)
  })
})

test('only an admin or owner sees that a login code came, and when', async () => {
  const { account_id } = await prepare()
  await service.app.db.run(sql`
    update account_hosts set login_code_at = domain_now() - interval '1 hour' where account_id = ${account_id}`)
  const { user_id, workspace_id } = tenant
  const cookie = await signIn(service, user_id)
  const seen = async () => {
    const { body } = await askDashboard(service, 'GET', `/w/${workspace_id}/accounts/${account_id}`, {
      cookie,
    })
    return (body.account as { login_code_at: string | null }).login_code_at
  }
  expect(await seen()).toEqual(expect.any(String))
  await service.app.db.run(sql`update memberships set role = 'member' where user_id = ${user_id}`)
  expect(await seen()).toBeNull()
  await service.app.db.run(sql`update memberships set role = 'owner' where user_id = ${user_id}`)
})
