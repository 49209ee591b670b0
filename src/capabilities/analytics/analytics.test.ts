import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import type { Message } from '../../platform/port.ts'
import { deleteMessages, storeEdits, storeMessages } from '../messages/messages.ts'
import { updateWorkspace } from '../workspaces/workspaces.ts'

let service: Service
const now = new Date('2026-11-15T09:30:00.000Z')

beforeAll(async () => {
  service = await openService()
  await service.app.db.run(sql`insert into manual_clock (at) values (${now})`)
})
afterAll(() => service.close())

interface Figures {
  readonly from: string | null
  readonly to: string
  readonly messages: { received: number; sent: number }
  readonly campaign_sends: object
  readonly totals: Record<string, number>
  readonly campaigns: readonly Record<string, unknown>[]
}

async function read({ key }: Tenant, period?: string): Promise<Figures> {
  const { status, body } = await service.get(`/analytics${period ? `?period=${period}` : ''}`, { key })
  expect(status).toBe(200)
  return body as unknown as Figures
}

function messageOf(id: number, at: Date, is_sender: boolean): Message {
  const rest = { sender_id: null, edited_at: null, attachments: [], random_id: null }
  return { id: String(id), text: 'hello', is_sender, timestamp: at.toISOString(), ...rest }
}

const store = (account: { account_id: string; workspace_id: string }, messages: readonly Message[]) =>
  service.app.db.transaction((tx) =>
    storeMessages(
      tx,
      account,
      messages.map((message) => ({ chat_id: '1', message, announce: false })),
    ),
  )

async function newAccount(tenant: Tenant) {
  return { workspace_id: tenant.workspace_id, account_id: await service.account(tenant.workspace_id) }
}

describe('GET /analytics', () => {
  test('200: a day has its full length, also where a clock change skips or repeats midnight', async () => {
    const tenant = await service.tenant('Clocks')
    const account = await newAccount(tenant)
    const begins = async (timezone: string, today: string) => {
      await updateWorkspace(service.app, 'system', { id: account.workspace_id, timezone })
      await service.app.db.run(sql`update manual_clock set at = ${today}::timestamptz`)
      return read(tenant)
    }
    try {
      // 00:00 to 01:00 comes twice: at 00:00Z with +00:00, and at 01:00Z with -01:00.
      await store(account, [messageOf(1, new Date('2026-10-25T00:30:00Z'), false)])
      const azores = await begins('Atlantic/Azores', '2026-10-31T12:00:00Z')
      expect([azores.from, azores.messages.received]).toEqual(['2026-10-25T00:00:00.000Z', 1])
      const havana = await begins('America/Havana', '2026-11-07T12:00:00Z')
      expect(havana.from).toBe('2026-11-01T04:00:00.000Z')
      // The day begins at 01:00.
      const santiago = await begins('America/Santiago', '2026-09-12T12:00:00Z')
      expect(santiago.from).toBe('2026-09-06T04:00:00.000Z')
      const berlin = await begins('Europe/Berlin', '2026-10-31T12:00:00Z')
      expect(berlin.from).toBe('2026-10-24T22:00:00.000Z')
    } finally {
      await service.app.db.run(sql`update manual_clock set at = ${now}`)
    }
  })

  test('200 with zeros for a workspace in which nothing has happened', async () => {
    const tenant = await service.tenant('Empty')
    expect(await read(tenant)).toEqual({
      period: '7d',
      from: '2026-11-09T00:00:00.000Z',
      to: '2026-11-15T09:30:00.000Z',
      messages: { received: 0, sent: 0 },
      campaign_sends: { sent: 0, failed: 0, ambiguous: 0 },
      totals: { campaigns: 0, sent: 0, failed: 0, replies: 0, opt_outs: 0, reply_rate: 0 },
      campaigns: [],
    })
    expect(await read(tenant, '30d')).toMatchObject({ from: '2026-10-17T00:00:00.000Z' })
    expect(await read(tenant, 'all')).toMatchObject({ from: null, messages: { received: 0, sent: 0 } })
  })

  test('200 counts each message once, on its day in the workspace, however it arrived', async () => {
    const tenant = await service.tenant('Counting')
    const account = await newAccount(tenant)
    const edge = new Date('2026-11-09T00:00:00.000Z')
    const before = new Date(edge.getTime() - 1)
    const messages = [messageOf(1, edge, false), messageOf(2, before, false), messageOf(3, now, true)]
    await store(account, messages)
    // Seen again, edited and deleted, a message is one message.
    await store(account, messages)
    const edited = { ...messageOf(1, edge, false), text: 'hello!', edited_at: now.toISOString() }
    const unseen = { ...messageOf(4, now, false), edited_at: now.toISOString() }
    const seen = [edited, unseen].map((message) => ({ chat_id: '1' as const, message, announce: false }))
    await service.app.db.transaction((tx) => storeEdits(tx, account, seen))
    await service.app.db.transaction((tx) =>
      deleteMessages(tx, account, [{ chat_id: '1', message_ids: ['3'] }]),
    )
    expect((await read(tenant)).messages).toEqual({ received: 2, sent: 1 })
    expect((await read(tenant, '30d')).messages).toEqual({ received: 3, sent: 1 })
    expect((await read(tenant, 'all')).messages).toEqual({ received: 3, sent: 1 })
    expect((await read(await service.tenant('Stranger'), 'all')).messages).toEqual({ received: 0, sent: 0 })
    // A rolled-back message was never stored.
    const broken = service.app.db.transaction(async (tx) => {
      await storeMessages(tx, account, [{ chat_id: '1', message: messageOf(9, now, true), announce: false }])
      throw new Error('on purpose')
    })
    await expect(broken).rejects.toThrow('on purpose')
    expect((await read(tenant, 'all')).messages).toEqual({ received: 3, sent: 1 })
  })

  test("200 equals a count of the rows, in any time zone, also after the workspace's has changed", async () => {
    const tenant = await service.tenant('Zones')
    const { workspace_id } = tenant
    const accounts = [await newAccount(tenant), await newAccount(tenant)]
    let id = 0
    const ago = fc.integer({ min: 0, max: 40 * 96 })
    const batch = fc.array(fc.record({ ago, is_sender: fc.boolean(), account: fc.nat(1) }), { maxLength: 30 })
    const zone = fc.constantFrom(
      'UTC',
      'Europe/Berlin',
      'Asia/Kathmandu',
      'America/St_Johns',
      'Pacific/Chatham',
    )
    await fc.assert(
      fc.asyncProperty(batch, zone, async (messages, timezone) => {
        await updateWorkspace(service.app, 'system', { id: workspace_id, timezone })
        for (const [at, account] of accounts.entries()) {
          const theirs = messages.filter((each) => each.account === at)
          await store(
            account,
            theirs.map((each) =>
              messageOf(++id, new Date(now.getTime() - each.ago * 900_000), each.is_sender),
            ),
          )
        }
        for (const [period, days] of [
          ['7d', 7],
          ['30d', 30],
          ['all', 100_000],
        ] as const) {
          const counted = await service.app.db.one(sql`
            select count(*) filter (where not is_sender)::int as received,
              count(*) filter (where is_sender)::int as sent
            from messages where workspace_id = ${workspace_id}
              and (sent_at at time zone ${timezone})::date > (${now}::timestamptz at time zone ${timezone})::date - ${days}::int`)
          expect((await read(tenant, period)).messages).toEqual(counted)
        }
      }),
      { numRuns: 15 },
    )
  })

  test('200 counts correctly when many transactions store at once', async () => {
    const tenant = await service.tenant('Many')
    const account = await newAccount(tenant)
    await Promise.all(
      Array.from({ length: 20 }, (_, at) => {
        // Each message arrives twice, from two sides, like an answer and its echo.
        const some = Array.from({ length: 5 }, (__, n) =>
          messageOf(Math.floor(at / 2) * 5 + n + 1, new Date(now.getTime() - n * 7_200_000), true),
        )
        return store(account, at % 2 ? some : some.reverse())
      }),
    )
    expect((await read(tenant, 'all')).messages).toEqual({ received: 0, sent: 50 })
    expect((await read(tenant)).messages).toEqual({ received: 0, sent: 50 })
  })

  test('200 with the results of campaigns, newest first, without legacy ones', async () => {
    const tenant = await service.tenant('Campaigns')
    const other = await service.tenant('Other')
    const { account_id, workspace_id } = await newAccount(tenant)
    const make = async (at: string, kind: string, counts: readonly number[]) => {
      const id = newId()
      await service.app.db.run(sql`
        insert into campaigns (id, workspace_id, user_id, kind, status, message_text, created_at)
        values (${id}, ${workspace_id}, ${tenant.user_id}, ${kind}, 'completed', 'Hello', ${at})`)
      const [sent = 0, failed = 0, ambiguous = 0, reached = 0, replied = 0, optedOut = 0] = counts
      await service.app.db.run(sql`
        insert into campaign_counts (workspace_id, at, campaign_id, account_id, sent, failed, ambiguous, reached, replied,
          opted_out)
        select ${workspace_id}, at, ${id}, ${account_id}, ${sent}, ${failed}, ${ambiguous}, ${reached}, ${replied}, ${optedOut}
        from unnest(array[${at}, '-infinity']::timestamptz[]) at`)
      return id
    }
    const old = await make('2026-09-01T10:00:00Z', 'scoped', [10, 1, 1, 8, 2, 2])
    const fresh = await make('2026-11-14T10:00:00Z', 'contacts', [6, 0, 0, 3, 1, 1])
    await make('2026-11-14T11:00:00Z', 'legacy', [0])
    const week = await read(tenant)
    expect(week.totals).toEqual({
      campaigns: 1,
      sent: 6,
      failed: 0,
      replies: 1,
      opt_outs: 1,
      reply_rate: 0.3333,
    })
    expect(week.campaign_sends).toEqual({ sent: 6, failed: 0, ambiguous: 0 })
    expect(week.campaigns.map(({ id }) => id)).toEqual([fresh, old])
    expect(week.campaigns[1]).toMatchObject({
      sent: 10,
      failed: 1,
      ambiguous: 1,
      replies: 2,
      opt_outs: 2,
      reply_rate: 0.25,
    })
    const all = await read(tenant, 'all')
    expect(all.totals).toEqual({
      campaigns: 2,
      sent: 16,
      failed: 1,
      replies: 3,
      opt_outs: 3,
      reply_rate: 0.2727,
    })
    expect((await read(other, 'all')).campaigns).toEqual([])
    for (let n = 0; n < 55; n++) await make(`2026-10-01T10:${String(n).padStart(2, '0')}:00Z`, 'scoped', [])
    expect((await read(tenant)).campaigns).toHaveLength(50)
  })

  test('200 prints JSON as every other operation does', async () => {
    const { key } = await service.tenant('Print')
    const answer = await fetch(`${service.url}/api/v1/analytics`, {
      headers: { authorization: `Bearer ${key}` },
    })
    const text = await answer.text()
    expect(text).toBe(JSON.stringify(JSON.parse(text)))
  })

  test('400 for another period; 503 while its tables are missing', async () => {
    const { key } = await service.tenant('Bad')
    for (const period of ['1d', '', 'ALL', '7d&period=7d']) {
      expect((await service.get(`/analytics?period=${period}`, { key })).status, period).toBe(400)
    }
    for (const table of ['message_counts', 'campaigns', 'campaign_counts']) {
      await service.app.db.pool.query(`alter table ${table} rename to away`)
      try {
        expect(await service.get('/analytics', { key })).toMatchObject({
          status: 503,
          body: { code: 'schema_unavailable' },
        })
      } finally {
        await service.app.db.pool.query(`alter table away rename to ${table}`)
      }
    }
  })
})
