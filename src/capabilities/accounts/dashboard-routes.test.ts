/** Accounts at the dashboard. `test/people.test.ts` tests who may call which route, and about whose accounts. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import { listAccountViews, withoutCommands } from './account-views.ts'
import { findProxy } from './accounts.ts'

let service: Service
let tenant: Tenant
let owner: string

beforeAll(async () => {
  service = await openService({ env: { PARLEY_PROXY_ALLOW: '10.1.2.3' } })
  tenant = await service.tenant()
  owner = await signIn(service, tenant.user_id)
})
afterAll(() => service.close())

const ask = (method: string, path: string, body?: unknown) =>
  askDashboard(service, method, `/w/${tenant.workspace_id}/accounts${path}`, { cookie: owner, body })

type View = Record<string, unknown> & { id: string }

async function create(body: object = {}): Promise<View> {
  const made = await ask('POST', '', { name: 'Sales', ...body })
  expect(made.status).toBe(201)
  return made.body.account as View
}

function audited(id: string) {
  return service.app.db.rows<{ actor: string; action: string; detail: string }>(
    sql`select actor, action, detail from audit where target = ${id} order by seq`,
  )
}

describe('GET /accounts', () => {
  test("200 with state, today's usage and limits, flood waits, 30 days, strikes, and waiting recipients", async () => {
    const { id } = await create({ cold_per_day: 10 })
    const { db } = service.app
    const { workspace_id, user_id } = tenant
    const day = sql`(domain_now() at time zone 'UTC')::date`
    await db.run(sql`
      update accounts set status = 'READY', platform_user_id = 77, username = 'acme_sales', phone = '+436641234118'
      where id = ${id}`)
    await db.run(sql`
      insert into account_hosts (account_id, workspace_id, heard_at, flood_until, lookup_flood_until, reading_flood_until)
      values (${id}, ${workspace_id}, '2026-11-01T10:00:00Z', domain_now() + interval '1 hour', '2020-01-01', null)`)
    await db.run(sql`
      insert into account_sync (account_id, workspace_id, phase, chats_total, chats_synced, history_total)
      values (${id}, ${workspace_id}, 'history', 60, 37, 50)`)
    await db.run(sql`
      insert into account_days (account_id, workspace_id, day, used, used_cold, lookups, sent)
      values (${id}, ${workspace_id}, ${day}, 12, 8, 6, 13), (${id}, ${workspace_id}, ${day} - 29, 0, 0, 0, 4),
        (${id}, ${workspace_id}, ${day} - 30, 0, 0, 0, 99)`)
    await db.run(sql`
      insert into account_strikes (account_id, workspace_id, at, kind, seconds)
      values (${id}, ${workspace_id}, domain_now() - interval '2 days', 'flood_wait', 1920),
        (${id}, ${workspace_id}, domain_now() - interval '1 day', 'peer_flood', null),
        (${id}, ${workspace_id}, domain_now() - interval '31 days', 'flood_wait', 1)`)
    for (const [name, status, daily_quota] of [
      ['Autumn lamps', 'sending', 30],
      ['Winter lamps', 'paused', 25],
      ['Old lamps', 'completed', 200],
    ] as const) {
      const campaign_id = newId()
      await db.run(sql`
        insert into campaigns (id, workspace_id, user_id, kind, name, status, pause_reason, message_text,
          daily_quota_per_account)
        values (${campaign_id}, ${workspace_id}, ${user_id}, 'contacts', ${name}, ${status},
          ${status === 'paused' ? 'requested' : null}, 'hello', ${daily_quota})`)
      await db.run(sql`
        insert into campaign_accounts (campaign_id, account_id, workspace_id, queued, waiting, completed)
        values (${campaign_id}, ${id}, ${workspace_id}, 20, ${name === 'Winter lamps' ? 0 : 7}, 3)`)
    }
    const { status, body } = await ask('GET', '')
    expect([status, body.timezone, body.platforms]).toEqual([200, 'UTC', []])
    const [account] = (body.accounts as View[]).filter((each) => each.id === id)
    expect(account).toMatchObject({
      name: 'Sales',
      platform: 'telegram',
      status: 'READY',
      status_reason: 'No running worker can drive it.',
      platform_user: { id: '77', username: 'acme_sales', phone: '+43 … 118' },
      live: false,
      not_live_since: '2026-11-01T10:00:00.000Z',
      sync: { phase: 'history', done: 37, total: 50 },
      today: {
        campaign_messages: { used: 12, limit: 30 },
        first_messages: { used: 8, limit: 10 },
        lookups: { used: 6, limit: 200 },
      },
      sends_wait_until: expect.any(String),
      lookups_wait_until: null,
      reading_waits_until: null,
      sent_per_day: [4, ...Array(28).fill(0), 13],
      strikes: [
        { kind: 'peer_flood', seconds: null },
        { kind: 'flood_wait', seconds: 1920 },
      ],
      waiting: [
        { name: 'Winter lamps', recipients: 20 },
        { name: 'Autumn lamps', recipients: 27 },
      ],
    })
    expect((await ask('GET', `/${id}`)).body).toEqual({ account })
  })

  test('200 with the same number of statements for one account and for many', async () => {
    const { db, config } = service.app
    const count = async () => {
      let statements = 0
      const rows: typeof db.rows = (statement) => {
        statements++
        return db.rows(statement)
      }
      const { workspace_id, user_id } = tenant
      const caller = { workspace_id, user_id, scopes: [], via: { kind: 'terminal' } } as const
      await listAccountViews({ config, db: { rows } as typeof db }, caller)
      return statements
    }
    const before = await count()
    for (let n = 0; n < 5; n++) await create()
    expect([before, await count()]).toEqual([3, 3])
  })
})

describe('POST /accounts', () => {
  test('201 with the proxy without its credentials, which are in no answer, row or log', async () => {
    const proxy = 'socks5://canaryname:canarysecret@proxy.example.com:1080'
    const account = await create({ proxy, cold_per_day: null })
    expect(account).toMatchObject({ status: 'CONNECTING', proxy: 'socks5://proxy.example.com:1080' })
    expect(await audited(account.id)).toEqual([
      {
        actor: `user:${tenant.user_id}`,
        action: 'account.created',
        detail: '{"name":"Sales","platform":"telegram","proxy":"socks5://proxy.example.com:1080"}',
      },
    ])
    const rows = await service.app.db.rows(sql`select to_jsonb(a)::text as row from accounts a`)
    expect(JSON.stringify([account, rows, service.log])).not.toContain('canary')
  })

  test.each([
    [{}, 'name'],
    [{ name: ' ' }, 'name'],
    [{ name: 'x', platform: 'other' }, 'platform'],
    [{ name: 'x', cold_per_day: -1 }, 'cold_per_day'],
    [{ name: 'x', cold_per_day: 1.5 }, 'cold_per_day'],
    [{ name: 'x', status: 'READY' }, 'status'],
    [{ name: 'x', proxy: '' }, 'proxy must begin'],
    [{ name: 'x', proxy: 'ftp://proxy.example.com:21' }, 'proxy must begin'],
    [{ name: 'x', proxy: 'socks5://proxy.example.com' }, 'proxy must name a host and a port'],
    [{ name: 'x', proxy: 'socks5://proxy.example.com:0' }, 'proxy must'],
    [{ name: 'x', proxy: 'socks5://proxy.example.com:1080/path' }, 'proxy must end after the port'],
    [{ name: 'x', proxy: 'http://a:b@proxy.example.com:3128?x' }, 'proxy must'],
    [
      { name: 'x', proxy: 'tg://proxy?server=a.example&port=443&secret=ee00' },
      'MTProxy links are not supported',
    ],
    [{ name: 'x', proxy: 'https://t.me/proxy?server=a.example&port=443&secret=ee' }, 'MTProxy links'],
    [{ name: 'x', proxy: 'socks5://127.0.0.1:1080' }, 'unless PARLEY_PROXY_ALLOW of the service lists it'],
    [{ name: 'x', proxy: 'socks5://10.0.0.1:1080' }, 'must not use the address'],
    [{ name: 'x', proxy: 'http://[::1]:3128' }, 'must not use the address'],
    [{ name: 'x', proxy: 'http://0x7f000001:3128' }, 'must not use the address'],
    [{ name: 'x', proxy: 'socks5://169.254.169.254:80' }, 'must not use the address'],
    [{ name: 'x', proxy: 'socks5://%31%32%37.0.0.1:1080' }, 'must not use the address "127.0.0.1"'],
    [{ name: 'x', proxy: 'socks5://①②⑦.0.0.1:1080' }, 'must not use the address "127.0.0.1"'],
    [{ name: 'x', proxy: 'socks5://localhost:1080' }, 'must not use the local name'],
    [{ name: 'x', proxy: 'socks5://db.internal:1080' }, 'must not use the local name'],
    [{ name: 'x', proxy: `socks5://${'a'.repeat(256)}:b@proxy.example.com:1080` }, '255 bytes'],
    [{ name: 'x', proxy: 'socks5://%ff:b@proxy.example.com:1080' }, 'percent-encoded'],
  ])('400 for %j', async (body, sentence) => {
    const refused = await ask('POST', '', body)
    expect(refused).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
    expect(refused.body.error).toContain(sentence)
  })

  test('201 with a private proxy that PARLEY_PROXY_ALLOW lists', async () => {
    expect(await create({ proxy: 'http://10.1.2.3:3128' })).toMatchObject({ proxy: 'http://10.1.2.3:3128' })
  })
})

describe('PATCH /accounts/{account_id}', () => {
  test('200 changes what is named and nothing else, with one audit row for each', async () => {
    const { id } = await create({ cold_per_day: 5 })
    expect((await ask('PATCH', `/${id}`, { name: 'Support' })).body.account).toMatchObject({
      name: 'Support',
      cold_per_day: 5,
    })
    const proxy = 'https://a:canarysecret@proxy.example.com:443'
    await ask('PATCH', `/${id}`, { cold_per_day: null, proxy })
    expect((await ask('GET', `/${id}`)).body.account).toMatchObject({
      name: 'Support',
      cold_per_day: null,
      proxy: 'https://proxy.example.com:443',
    })
    await ask('PATCH', `/${id}`, { proxy: null })
    expect((await ask('GET', `/${id}`)).body.account).toMatchObject({ name: 'Support', proxy: null })
    expect((await audited(id)).slice(1).map(({ action, detail }) => `${action} ${detail}`)).toEqual([
      'account.renamed {"name":"Support"}',
      'account.limited {"cold_per_day":null}',
      'account.proxy_set {"proxy":"https://proxy.example.com:443"}',
      'account.proxy_set {"proxy":null}',
    ])
  })

  test('200 with another proxy takes the account from its worker; with another name it does not', async () => {
    const { id } = await create()
    const { db } = service.app
    await db.run(sql`
      insert into account_hosts (account_id, workspace_id, lease_owner, lease_until)
      values (${id}, ${tenant.workspace_id}, ${newId()}, real_now() + interval '1 hour')`)
    const epoch = async () =>
      (
        await db.one<{ at: string }>(
          sql`select lease_epoch as at from account_hosts where account_id = ${id}`,
        )
      ).at
    await ask('PATCH', `/${id}`, { name: 'Support' })
    expect(await epoch()).toBe('0')
    await ask('PATCH', `/${id}`, { proxy: 'socks5://proxy.example.com:1080' })
    expect(await epoch()).toBe('1')
  })

  test.each([{}, { name: '' }, { name: null }, { proxy: 'socks5://10.0.0.1:1' }, { id: 'acc_other' }])(
    '400 for %j, and changes nothing',
    async (body) => {
      const { id } = await create()
      const before = (await ask('GET', `/${id}`)).body
      expect((await ask('PATCH', `/${id}`, body)).status).toBe(400)
      expect((await ask('GET', `/${id}`)).body).toEqual(before)
    },
  )
})

test('the sealed proxy of one account cannot be opened for another', async () => {
  const proxy = 'socks5://proxy.example.com:1080'
  const [first, second] = [await create({ proxy }), await create({ proxy })]
  expect(await findProxy(service.app, second.id)).toMatchObject({
    scheme: 'socks5',
    host: 'proxy.example.com',
  })
  await service.app.db.run(sql`
    update accounts set proxy_sealed = (select proxy_sealed from accounts where id = ${first.id}) where id = ${second.id}`)
  expect(await findProxy(service.app, second.id)).toBe('unreadable')
})

describe('POST /accounts/{account_id}/disable', () => {
  test('200, then enable connects it again; a repeat changes nothing', async () => {
    const { id } = await create()
    for (const [verb, status] of [
      ['disable', 'DISABLED'],
      ['disable', 'DISABLED'],
      ['enable', 'CONNECTING'],
      ['enable', 'CONNECTING'],
    ]) {
      expect(await ask('POST', `/${id}/${verb}`)).toMatchObject({
        status: 200,
        body: { account: { status } },
      })
    }
    expect((await audited(id)).slice(1).map(({ action }) => action)).toEqual([
      'account.disabled',
      'account.enabled',
    ])
  })
})

test.each([
  [
    'The login was ended at Telegram. Run parley account login acc_1. (X)',
    'The login was ended at Telegram. Log it in. (X)',
  ],
  [
    'Appeal in the official app, then run parley account enable acc_1. (X)',
    'Appeal in the official app, then enable it. (X)',
  ],
  [
    'If it was interrupted, run parley account logout acc_1 or parley account enable acc_1.',
    'If it was interrupted, log it out or enable it.',
  ],
  [null, null],
])('a sentence of the terminal names no command at the dashboard: %s', (reason, shown) => {
  expect(withoutCommands(reason)).toBe(shown)
})

test('POST /accounts 409 beyond the limit of the operator, also at once; a disabled account makes room, and enabling needs it', async () => {
  const other = await service.tenant('Limited')
  const cookie = await signIn(service, other.user_id)
  const at = (path: string, body?: unknown) =>
    askDashboard(service, 'POST', `/w/${other.workspace_id}/accounts${path}`, { cookie, body })
  const { config } = service.app
  Object.assign(config, { workspace_accounts: 3 })
  try {
    const made = await Promise.all(Array.from({ length: 5 }, () => at('', { name: 'Sales' })))
    expect(made.map(({ status }) => status).toSorted()).toEqual([201, 201, 201, 409, 409])
    const created = made.find(({ status }) => status === 201)?.body.account as View
    expect((await at(`/${created.id}/disable`)).status).toBe(200)
    expect((await at('', { name: 'Sales' })).status).toBe(201)
    expect(await at(`/${created.id}/enable`)).toMatchObject({ status: 409, body: { code: 'conflict' } })
    Object.assign(config, { workspace_accounts: 4 })
    expect((await at(`/${created.id}/enable`)).status).toBe(200)
    // A lower limit disables none, and enabling again what is enabled takes no place.
    Object.assign(config, { workspace_accounts: 1 })
    expect((await at(`/${created.id}/enable`)).status).toBe(200)
  } finally {
    Object.assign(config, { workspace_accounts: undefined })
  }
})
