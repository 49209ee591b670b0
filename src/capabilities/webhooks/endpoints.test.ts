/** What the owner of an endpoint reads and writes, as several processes would. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { emit } from '../../events/emit.ts'
import { sequence } from '../../events/sequencer.ts'
import { newId } from '../../lib/ids.ts'
import { setWorkspaceEnabled } from '../workspaces/workspaces.ts'
import {
  type AttemptResult,
  claimEndpoints,
  countDue,
  findNextDue,
  loadDue,
  recordAttempts,
  releaseLeases,
} from './endpoints.ts'
import { plan } from './planning.ts'
import { createWebhook } from './webhooks.ts'

let service: Service
let tenant: Tenant
let webhook_id: string
beforeAll(async () => {
  service = await openService()
})
afterAll(() => service.close())
beforeEach(async () => {
  await service.app.db.run(sql`update webhooks set active = false, deleted_at = domain_now()`)
  tenant = await service.tenant()
  webhook_id = await endpoint()
})

async function endpoint(events?: readonly string[]): Promise<string> {
  const { app } = service
  const wanted = { workspace_id: tenant.workspace_id, url: 'https://example.com/', events }
  const { webhook } = await app.db.transaction((tx) => createWebhook(app, tx, 'system', wanted))
  return webhook.id
}

async function emitMany(count: number): Promise<void> {
  const { db } = service.app
  const data = { account_id: 'acc_1' }
  const lot = Array.from(
    { length: count },
    () => ({ type: 'message.received', occurred_at: null, data }) as const,
  )
  for (let n = 0; n < count; n += 1_000) {
    await db.transaction((tx) => emit(tx, tenant.workspace_id, lot.slice(n, n + 1_000)))
    await sequence(db)
  }
}

const claim = (owner: string) => claimEndpoints(service.app.db, { owner, most: 10 })
const count = async () => {
  const [row] = await service.app.db.rows<{ position: number; planned: number }>(sql`
    select position::int as position, (select count(*)::int from webhook_deliveries d where d.webhook_id = w.id) as planned
    from webhooks w where id = ${webhook_id}`)
  return row
}

describe('planning', () => {
  test('takes up to 500 events at a time, and no more than a backlog of about 1,000', async () => {
    await emitMany(2_500)
    await plan(service.app.db)
    expect(await count()).toEqual({ position: 500, planned: 500 })
    while ((await plan(service.app.db)) > 0);
    expect(await count()).toEqual({ position: 1_000, planned: 1_000 })
    await service.app.db.run(sql`
      update webhook_deliveries set state = 'delivered', due_at = null, delivered_at = domain_now()
      where webhook_id = ${webhook_id}`)
    await plan(service.app.db)
    expect(await count()).toEqual({ position: 1_500, planned: 1_500 })
  })

  test('skips events of other types without making rows, a window at a time', async () => {
    await service.app.db.run(sql`update webhooks set events = '{pipeline.moved}' where id = ${webhook_id}`)
    await emitMany(6_000)
    await plan(service.app.db)
    expect(await count()).toEqual({ position: 5_000, planned: 0 })
    await plan(service.app.db)
    expect(await count()).toEqual({ position: 6_000, planned: 0 })
  })

  test('makes each delivery once when several processes plan at the same time', async () => {
    await emitMany(900)
    await Promise.all(Array.from({ length: 8 }, () => plan(service.app.db)))
    while ((await plan(service.app.db)) > 0);
    expect(await count()).toEqual({ position: 900, planned: 900 })
  })

  test('does not move an inactive endpoint', async () => {
    await service.app.db.run(sql`update webhooks set active = false where id = ${webhook_id}`)
    await emitMany(10)
    expect(await plan(service.app.db)).toBe(0)
    expect(await count()).toEqual({ position: 0, planned: 0 })
  })
})

describe('an endpoint of a disabled workspace', () => {
  test('is neither claimed nor loaded, and nothing of it is due; enabled, it goes on', async () => {
    const { app } = service
    const { workspace_id: id } = tenant
    await emitMany(1)
    await plan(app.db)
    const [one, two] = [newId(), newId()]
    await setWorkspaceEnabled(app, 'system', { id, enabled: false })
    expect([await claim(one), await countDue(app.db), await findNextDue(app.db)]).toEqual([[], 0, null])
    await setWorkspaceEnabled(app, 'system', { id, enabled: true })
    expect([await claim(one), await countDue(app.db)]).toEqual([[webhook_id], 1])
    // One that a process holds already.
    await setWorkspaceEnabled(app, 'system', { id, enabled: false })
    const load = () => loadDue(app.db, { owner: one, wanted: [{ webhook_id, room: 5 }], busy: [] })
    expect(await load()).toEqual([])
    tenant = await service.tenant()
    const next = await endpoint()
    await emitMany(1)
    await plan(app.db)
    expect(await claim(two)).toEqual([next])
    await setWorkspaceEnabled(app, 'system', { id, enabled: true })
    expect(await load()).toMatchObject([{ due: [{ sequence: 1 }] }])
  })
})

describe('the lease of an endpoint', () => {
  test('excludes other processes until it is released or has expired', async () => {
    const [one, other] = [newId(), newId()]
    expect(await claim(one)).toEqual([])
    await emitMany(1)
    await plan(service.app.db)
    expect(await claim(one)).toEqual([webhook_id])
    expect(await claim(other)).toEqual([])
    await releaseLeases(service.app.db, other, [webhook_id])
    expect(await claim(other)).toEqual([])
    await releaseLeases(service.app.db, one, [webhook_id])
    expect(await claim(other)).toEqual([webhook_id])
    await service.app.db.run(
      sql`update webhooks set lease_until = now() - interval '1 second' where id = ${webhook_id}`,
    )
    expect(await claim(one)).toEqual([webhook_id])
    const wanted = [{ webhook_id, room: 5 }]
    expect(await loadDue(service.app.db, { owner: other, wanted, busy: [] })).toEqual([])
    expect(await loadDue(service.app.db, { owner: one, wanted, busy: [] })).toMatchObject([
      { due: [{ sequence: 1 }] },
    ])
  })

  test("lets only its owner count: a process that has lost it only records the delivery's outcome", async () => {
    const [one, other] = [newId(), newId()]
    await emitMany(2)
    await plan(service.app.db)
    await claim(one)
    const wanted = [{ webhook_id, room: 5 }]
    const [{ due } = { due: [] }] = await loadDue(service.app.db, { owner: one, wanted, busy: [] })
    const attempted = (n: number, more: Partial<AttemptResult>): AttemptResult => ({
      webhook_id,
      url_no: 0,
      delivery_id: due[n]?.id ?? '',
      series_attempts: 0,
      test: false,
      probe: false,
      ok: false,
      ago_ms: 1,
      status: 500,
      ms: 1,
      error: null,
      response: null,
      retry_seconds: 5,
      ...more,
    })
    const failures = async () => {
      const row = await service.app.db.one<{ failures: number }>(
        sql`select consecutive_failures as failures from webhooks where id = ${webhook_id}`,
      )
      return row.failures
    }
    await recordAttempts(service.app, other, [attempted(0, {})])
    expect(await failures()).toBe(0)
    await recordAttempts(service.app, one, [attempted(0, {}), attempted(1, {})])
    expect(await failures()).toBe(2)
    await recordAttempts(service.app, other, [attempted(0, { ok: true, status: 200, retry_seconds: null })])
    expect(await failures()).toBe(2)
    // A delivered row stays delivered, even if another process reports a failure.
    await recordAttempts(service.app, one, [attempted(0, {})])
    const states = await service.app.db.rows<{ state: string; attempts: number }>(sql`
      select state, attempts from webhook_deliveries where webhook_id = ${webhook_id} order by sequence`)
    expect(states).toEqual([
      { state: 'delivered', attempts: 3 },
      { state: 'pending', attempts: 1 },
    ])
  })
})
