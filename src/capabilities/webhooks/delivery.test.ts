import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Browser } from '../../../test/harness/browser.ts'
import { hangMs, until } from '../../../test/harness/process.ts'
import type { Tenant } from '../../../test/harness/service.ts'
import { Receiver, WebhookPlace } from '../../../test/harness/webhooks.ts'
import { sql } from '../../db/sql.ts'
import { version } from '../../lib/version.ts'
import { verifyAudit } from '../audit/audit.ts'
import { createStage } from '../pipeline/pipeline.ts'

let place: WebhookPlace
let receiver: Receiver
let tenant: Tenant
beforeAll(async () => {
  place = await WebhookPlace.open({ PARLEY_CLOCK: 'manual' })
  await place.work()
})
beforeEach(async () => {
  tenant = await place.service.tenant()
  receiver = await Receiver.open()
})
/** Undelivered rows must not be delivered during the next test. */
afterEach(async () => {
  await place.db.run(sql`update webhooks set active = false, deleted_at = domain_now()`)
  await receiver.close()
})
afterAll(() => place.close())

const hmac = (secret: string, body: string) =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`

/** An endpoint that has failed this often. */
async function failing(failures: number, answer = 500) {
  const endpoint = await place.endpoint(tenant, receiver.url)
  receiver.status(answer)
  await place.emitMany(tenant.workspace_id, 1)
  await place.advance(0)
  for (let n = 1; n < failures; n++) await place.advance(11 * 3_600)
  return endpoint
}

describe('a delivery', () => {
  test('carries the bytes of GET /events, signed, with the headers of Standard Webhooks', async () => {
    const { id, secret } = await place.endpoint(tenant, receiver.url)
    await place.emitMany(tenant.workspace_id, 3, (n) => ({ n, text: 'Grüße 😀 "\\ \u2028' }))
    await place.advance(0)
    const response = await fetch(`${place.service.url}/api/v1/events`, {
      headers: { authorization: `Bearer ${tenant.key}` },
    })
    const feed = await response.text()
    expect(receiver.received).toHaveLength(3)
    for (const { body, headers, id: event_id } of receiver.received) {
      expect(feed).toContain(body)
      expect(JSON.parse(body)).toMatchObject({ id: event_id, type: 'message.received', api_version: '1.0.0' })
      expect(headers).toMatchObject({
        'content-type': 'application/json',
        'user-agent': `Parley/${version}`,
        'accept-encoding': 'identity',
        'x-service-signature': hmac(secret, body),
        'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
      })
      expect(headers['x-service-signature-previous']).toBeUndefined()
      // Real time, although the clock is a manual one.
      expect(Math.abs(Number(headers['webhook-timestamp']) - Date.now() / 1000)).toBeLessThan(60)
    }
    expect(await place.deliveries(tenant, id)).toMatchObject(
      [3, 2, 1].map((sequence) => ({ sequence, state: 'delivered', attempts: 1, next_attempt_at: null })),
    )
  })

  test('is not made for types that an endpoint does not get, nor for events before it existed', async () => {
    await place.emitMany(tenant.workspace_id, 2)
    await place.advance(0)
    const all = await place.endpoint(tenant, receiver.url)
    const none = await place.endpoint(tenant, receiver.url, ['pipeline.moved'])
    await place.emitMany(tenant.workspace_id, 2)
    await place.advance(0)
    expect((await place.deliveries(tenant, all.id)).map(({ sequence }) => sequence)).toEqual([4, 3])
    expect(await place.deliveries(tenant, none.id)).toEqual([])
  })

  test('of one workspace reveals nothing to another', async () => {
    const other = await place.service.tenant()
    await place.endpoint(tenant, receiver.url)
    await place.emitMany(other.workspace_id, 2)
    await place.advance(0)
    expect(receiver.received).toEqual([])
  })

  test('is signed with both secrets for 24 hours after a rotation, and no longer', async () => {
    const { id, secret: before } = await place.endpoint(tenant, receiver.url)
    const { body } = await place.call('POST', tenant, `${id}/rotate-secret`)
    const after = String(body.secret)
    const deliverOne = async () => {
      receiver.received.length = 0
      await place.emitMany(tenant.workspace_id, 1)
      await place.advance(0)
      return receiver.received[0]
    }
    const both = await deliverOne()
    expect(both?.headers).toMatchObject({
      'x-service-signature': hmac(after, both?.body ?? ''),
      'x-service-signature-previous': hmac(before, both?.body ?? ''),
      'webhook-signature': expect.stringMatching(/^v1,\S+ v1,\S+$/),
    })
    await place.advance(24 * 3_600 - 60)
    expect((await deliverOne())?.headers['x-service-signature-previous']).toBeDefined()
    await place.advance(120)
    expect((await deliverOne())?.headers['x-service-signature-previous']).toBeUndefined()
  })
})

describe("the trace of a caller's request", () => {
  const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736'
  const parent_id = '00f067aa0ba902b7'
  const traceparent = `00-${trace_id}-${parent_id}-01`
  const traces = () => receiver.received.map(({ headers }) => headers.traceparent)
  const move = async (stage_key: string, headers: Record<string, string>) => {
    const body = { account_id, chat_id, stage_key }
    const { status } = await place.service.post('/pipeline/move', { key: tenant.key, body, headers })
    expect(status).toBe(200)
  }
  let account_id: string
  let chat_id: string
  beforeEach(async () => {
    const { workspace_id } = tenant
    account_id = await place.service.account(workspace_id)
    chat_id = await place.service.chat({ account_id, workspace_id })
    for (const key of ['talks', 'won']) {
      await createStage(place.service.app, 'cli:ana', { workspace_id, key, label: key })
    }
  })

  test('reaches every attempt to deliver what the request caused, each with a parent of its own', async () => {
    await place.endpoint(tenant, receiver.url)
    receiver.status(500)
    await move('talks', { traceparent })
    await place.advance(0)
    receiver.status(200)
    await place.advance(60)
    expect(receiver.received).toHaveLength(2)
    expect(receiver.ids[0]).toBe(receiver.ids[1])
    for (const each of traces()) {
      expect(each).toMatch(new RegExp(`^00-${trace_id}-[0-9a-f]{16}-01$`))
      expect(each).not.toContain(parent_id)
    }
    expect(new Set(traces()).size).toBe(2)
    expect(receiver.received[0]?.body).not.toContain(trace_id)
  })

  test('reaches the event of each chat of a deleted stage, and the test of an endpoint', async () => {
    await move('talks', {})
    const { id } = await place.endpoint(tenant, receiver.url)
    const browser = await Browser.signedIn(place.service, tenant.user_id)
    const deleted = await browser.ask('DELETE', `/w/${tenant.workspace_id}/stages/talks`, {
      headers: { traceparent },
    })
    expect(deleted.status).toBe(200)
    const asked = { key: tenant.key, body: {}, headers: { traceparent } }
    expect((await place.service.post(`/webhooks/${id}/test`, asked)).status).toBe(200)
    await place.advance(0)
    const types = receiver.received.map(({ body }) => JSON.parse(body).type)
    expect(types.toSorted()).toEqual(['pipeline.moved', 'webhook.test'])
    for (const each of traces()) expect(each).toContain(`00-${trace_id}-`)
  })

  test('is that of one request: the next one of the same key has none, nor has a message that arrives', async () => {
    await place.endpoint(tenant, receiver.url)
    await move('talks', { traceparent })
    await move('won', {})
    await place.emitMany(tenant.workspace_id, 1)
    await place.advance(0)
    expect(traces().filter((each) => each !== undefined)).toHaveLength(1)
    expect(receiver.received).toHaveLength(3)
  })

  test.each(['malformed', `${traceparent}-more`])('is ignored if it is malformed: %s', async (given) => {
    await place.endpoint(tenant, receiver.url)
    await move('talks', { traceparent: given })
    await place.advance(0)
    expect(traces()).toEqual([undefined])
  })

  test('brings no other header, whatever a restored row says', async () => {
    await place.endpoint(tenant, receiver.url)
    await place.rest()
    await move('talks', {})
    await place.db.run(sql`update outbox set traceparent = ${`${traceparent}, x`}`)
    await place.work()
    await place.advance(0)
    expect(traces()).toEqual([undefined])
  })
})

describe('an endpoint with loaded deliveries', () => {
  const concurrency = 8

  test.each(['deleted', 'switched off'])('gets none of them once it is %s', async (how) => {
    const { id } = await place.endpoint(tenant, receiver.url)
    const answered = Promise.withResolvers<void>()
    receiver.answer = async (response) => {
      await answered.promise
      response.end()
    }
    await place.emitMany(tenant.workspace_id, 2 * concurrency)
    await until(
      'as many as it may have at once',
      hangMs,
      async () => receiver.received.length === concurrency,
    )
    if (how === 'deleted') {
      // A test goes to an inactive endpoint too, but not to a deleted one.
      await place.call('POST', tenant, `${id}/test`)
      await place.call('DELETE', tenant, id)
    } else await place.call('PATCH', tenant, id, { active: false })
    // Each pass of the deliverer reads the state of all its endpoints, and then delivers: after two passes, it knows.
    for (let pass = 0; pass < 2; pass++) await delivered()
    answered.resolve()
    await until('what was begun is recorded', hangMs, async () => {
      const { count } = await place.db.one<{ count: number }>(sql`
        select count(*)::int as count from webhook_deliveries where webhook_id = ${id} and attempts > 0`)
      return count === concurrency
    })
    await delivered()
    expect(receiver.received).toHaveLength(concurrency)
  })

  /** Delivers an event of another workspace to another endpoint. */
  async function delivered(): Promise<void> {
    const other = await place.service.tenant()
    const witness = await Receiver.open()
    try {
      await place.endpoint(other, witness.url)
      await place.emitMany(other.workspace_id, 1)
      await until('another endpoint gets its event', hangMs, async () => witness.received.length === 1)
    } finally {
      await witness.close()
    }
  }
})

describe('a failing endpoint', () => {
  test('gets nine attempts of one delivery, at the times of the schedule, and then the delivery has failed', async () => {
    const { id } = await place.endpoint(tenant, receiver.url)
    const times: number[] = []
    const now = async () => (await place.service.app.settings.current()).now().getTime() / 1000
    receiver.answer = async (response) => {
      times.push(await now())
      // A success in between keeps the breaker closed, so that the schedule alone decides.
      await place.db.run(sql`update webhooks set consecutive_failures = 0 where id = ${id}`)
      response.writeHead(500).end()
    }
    await place.emitMany(tenant.workspace_id, 1)
    await place.advance(0)
    await place.advance(40 * 3_600)
    const gaps = times.slice(1).map((at, n) => at - (times[n] ?? 0))
    const planned = [5, 30, 300, 1_800, 7_200, 18_000, 36_000, 36_000]
    expect(gaps).toHaveLength(planned.length)
    for (const [n, delay] of planned.entries()) {
      expect(gaps[n]).toBeGreaterThanOrEqual(0.8 * delay - 1)
      expect(gaps[n]).toBeLessThanOrEqual(1.2 * delay + 1)
    }
    expect(new Set(receiver.received.map(({ body, id: event }) => `${event} ${body}`)).size).toBe(1)
    const [delivery] = await place.deliveries(tenant, id)
    expect(delivery).toMatchObject({ state: 'failed', attempts: 9, next_attempt_at: null })
    const { body } = await place.call('GET', tenant, `${id}/deliveries/${delivery?.id}`)
    const { tries, body: text } = body.delivery as { tries: object[]; body: string }
    expect(text).toBe(receiver.received[0]?.body)
    expect(tries).toHaveLength(9)
    expect(tries[0]).toMatchObject({ n: 1, status: 500, error: null, response: '' })
  })

  test('gets one delivery at a time after three failures, with gaps that double', async () => {
    const endpoint = await place.endpoint(tenant, receiver.url)
    let open = 0
    let most = 0
    receiver.answer = async (response) => {
      most = Math.max(most, ++open)
      await sleep(20)
      open -= 1
      response.writeHead(503).end()
    }
    await place.emitMany(tenant.workspace_id, 50)
    await place.advance(0)
    const burst = receiver.received.length
    expect(burst).toBeGreaterThanOrEqual(3)
    // Two more start before the third failure.
    expect(burst).toBeLessThanOrEqual(10)
    most = 0
    const seen: number[] = []
    for (const seconds of [5.1, 10, 20, 40]) {
      const before = receiver.received.length
      await place.advance(seconds - 0.3)
      const early = receiver.received.length - before
      await place.advance(0.3)
      seen.push(early, receiver.received.length - before)
    }
    expect([seen, most]).toEqual([[0, 1, 0, 1, 0, 1, 0, 1], 1])
    expect(await place.webhook(tenant, endpoint.id)).toMatchObject({
      active: true,
      consecutive_failures: burst + 4,
    })
  })

  test('stays active after 19 failures and a success, and becomes inactive after exactly 20', async () => {
    const one = await failing(1)
    await place.db.run(sql`update webhooks set consecutive_failures = 19 where id = ${one.id}`)
    receiver.status(204)
    await place.advance(11 * 3_600)
    expect(await place.webhook(tenant, one.id)).toMatchObject({ active: true, consecutive_failures: 0 })
    receiver.status(410)
    await place.emitMany(tenant.workspace_id, 40)
    await place.advance(24 * 3_600)
    expect(await place.webhook(tenant, one.id)).toMatchObject({
      active: false,
      consecutive_failures: 20,
      disabled_at: expect.any(String),
    })
    // Two of the first endpoint before, one success, and exactly twenty.
    const failures = receiver.received.length - 2
    expect(failures).toBe(20)
    const audited = await place.db.rows(
      sql`select actor from audit where action = 'webhook.disabled' and target = ${one.id}`,
    )
    expect(audited).toEqual([{ actor: 'system' }])
    expect(place.service.log.join('')).toContain('deactivated after too many failures')
    expect(await place.service.app.metrics.metrics()).toMatch(/parley_webhooks_inactive [1-9]/)
    expect(await verifyAudit(place.service.app)).toMatchObject({ ok: true })
    // It gets nothing for a while, and then everything that happened in the meantime.
    await place.emitMany(tenant.workspace_id, 5)
    await place.advance(3_600)
    expect(receiver.received).toHaveLength(22)
    receiver.status(200)
    await place.call('PATCH', tenant, one.id, { active: true })
    await place.advance(12 * 3_600)
    expect(new Set(receiver.ids).size).toBe(46)
    expect((await place.deliveries(tenant, one.id, '&state=pending')).length).toBe(0)
  })

  test('that asks for a day with Retry-After waits an hour, and counts one failure', async () => {
    const { id } = await place.endpoint(tenant, receiver.url)
    receiver.status(429, { 'retry-after': '86400' })
    await place.emitMany(tenant.workspace_id, 1)
    await place.advance(0)
    expect(await place.webhook(tenant, id)).toMatchObject({ consecutive_failures: 1 })
    receiver.status(200)
    await place.advance(3_599)
    expect(receiver.received).toHaveLength(1)
    await place.advance(2)
    expect(receiver.received).toHaveLength(2)
    expect(await place.webhook(tenant, id)).toMatchObject({ consecutive_failures: 0 })
  })

  test('gets what is undelivered at its new url', async () => {
    const { id } = await failing(1)
    const elsewhere = await Receiver.open()
    await place.call('PATCH', tenant, id, { url: elsewhere.url })
    await place.advance(10)
    expect(elsewhere.ids).toEqual([receiver.ids[0]])
    await elsewhere.close()
  })

  test('does not count a late failure of its previous address', async () => {
    const { id } = await place.endpoint(tenant, receiver.url)
    const elsewhere = await Receiver.open()
    const answers: (() => void)[] = []
    receiver.answer = (response) => void answers.push(() => void response.writeHead(500).end())
    await place.emitMany(tenant.workspace_id, 8)
    await until('all are under way', hangMs, () => receiver.received.length === 8)
    await place.call('PATCH', tenant, id, { url: elsewhere.url })
    for (const answer of answers) answer()
    await until('all have failed', hangMs, async () =>
      (await place.deliveries(tenant, id)).every(({ attempts }) => attempts === 1),
    )
    const breaker = await place.db.one(
      sql`select consecutive_failures, probe_at from webhooks where id = ${id}`,
    )
    expect(breaker).toEqual({ consecutive_failures: 0, probe_at: null })
    await place.advance(10)
    expect(new Set(elsewhere.ids)).toEqual(new Set(receiver.ids))
    await elsewhere.close()
  })

  test('that is deleted gets nothing more, and its rows are removed', async () => {
    const { id } = await failing(1)
    expect((await place.call('DELETE', tenant, id)).status).toBe(200)
    await place.advance(3_600)
    expect(receiver.received).toHaveLength(1)
  })
})

describe('the secret', () => {
  test('appears in no log, metric, answer, audit entry or stored operation, before or after a rotation', async () => {
    const { id, secret } = await place.endpoint(tenant, receiver.url)
    const { body } = await place.call('POST', tenant, `${id}/rotate-secret`)
    // The receiver returns what it got.
    receiver.answer = (response, { headers }) => void response.writeHead(500).end(JSON.stringify(headers))
    await place.emitMany(tenant.workspace_id, 3)
    await place.advance(600)
    const deliveries = await place.deliveries(tenant, id)
    const details = await Promise.all(
      deliveries.map(async (each) => (await place.call('GET', tenant, `${id}/deliveries/${each.id}`)).body),
    )
    const tables = await place.db.rows(sql`
      select to_jsonb(a)::text from audit a union all select to_jsonb(o)::text from operations o
      union all select to_jsonb(d)::text from webhook_deliveries d union all select to_jsonb(t)::text from webhook_attempts t`)
    const seen = JSON.stringify([
      place.service.log,
      await place.service.app.metrics.metrics(),
      (await place.service.get('/webhooks', { key: tenant.key })).body,
      (await place.service.get('/events', { key: tenant.key })).body,
      deliveries,
      details,
      tables,
    ])
    expect(seen).toContain('x-service-signature')
    for (const canary of [secret, String(body.secret)]) {
      expect(seen).not.toContain(canary)
      expect(seen).not.toContain(canary.slice(6))
      expect(seen).not.toContain(Buffer.from(canary.slice(6), 'base64').toString('hex'))
    }
  })
})

describe('a long attempt', () => {
  test('keeps its endpoint: the lease is renewed in the meantime', async () => {
    const { id } = await place.endpoint(tenant, receiver.url)
    let answer: () => void = () => {}
    receiver.answer = (response) => {
      answer = () => void response.end()
    }
    await place.emitMany(tenant.workspace_id, 1)
    await until('it is under way', hangMs, () => receiver.received.length === 1)
    const lease = () =>
      place.db.one<{ until: string }>(sql`select lease_until::text as until from webhooks where id = ${id}`)
    const first = await lease()
    await until('the lease is renewed', hangMs, async () => (await lease()).until > first.until)
    answer()
    await place.untilState(id, 'delivered', 1)
  })
})

describe('POST /webhooks/{webhook_id}/test', () => {
  test('200 makes one attempt, also while inactive; a failure does not count, a success closes the breaker', async () => {
    const { id } = await place.endpoint(tenant, receiver.url)
    await place.call('PATCH', tenant, id, { active: false })
    await place.db.run(sql`
      update webhooks set consecutive_failures = 19, probe_at = domain_now() + interval '1 hour', probe_gap_seconds = 5
      where id = ${id}`)
    const ask = async () => {
      const { status, body } = await place.call('POST', tenant, `${id}/test`)
      expect(status).toBe(200)
      await place.advance(0)
      const delivery = body.delivery as unknown as { id: string }
      return (await place.call('GET', tenant, `${id}/deliveries/${delivery.id}`)).body.delivery
    }
    receiver.status(500)
    expect(await ask()).toMatchObject({ type: 'webhook.test', sequence: null, state: 'failed', attempts: 1 })
    await place.advance(3_600)
    expect(receiver.received).toHaveLength(1)
    expect(await place.webhook(tenant, id)).toMatchObject({ active: false, consecutive_failures: 19 })
    receiver.status(200)
    expect(await ask()).toMatchObject({ state: 'delivered', attempts: 1 })
    expect(await place.webhook(tenant, id)).toMatchObject({ active: false, consecutive_failures: 0 })
    expect(JSON.parse(receiver.received[1]?.body ?? '')).toMatchObject({
      type: 'webhook.test',
      sequence: null,
      data: { webhook_id: id },
    })
  })
})

describe('resending', () => {
  test('200 delivers again what was delivered, with the same bytes', async () => {
    const { id } = await place.endpoint(tenant, receiver.url)
    await place.emitMany(tenant.workspace_id, 1)
    await place.advance(0)
    const [delivery] = await place.deliveries(tenant, id)
    const { status, body } = await place.call('POST', tenant, `${id}/deliveries/${delivery?.id}/resend`)
    expect([status, body.delivery]).toMatchObject([200, { state: 'pending', attempts: 1 }])
    await place.advance(0)
    expect(receiver.received).toHaveLength(2)
    expect(receiver.received[0]?.body).toBe(receiver.received[1]?.body)
    expect(await place.deliveries(tenant, id)).toMatchObject([{ state: 'delivered', attempts: 2 }])
  })

  test('200 during the last attempt of a series keeps the new series', async () => {
    const { id } = await place.endpoint(tenant, receiver.url)
    let fail: () => void = () => {}
    receiver.answer = (response) => {
      fail = () => void response.writeHead(500).end()
    }
    const under = (count: number) =>
      until('it is under way', hangMs, () => receiver.received.length === count)
    const failed = (attempts: number) =>
      until('it is recorded', hangMs, async () => {
        const [delivery] = await place.deliveries(tenant, id)
        return delivery?.attempts === attempts && delivery
      })
    await place.emitMany(tenant.workspace_id, 1)
    await under(1)
    fail()
    const delivery = await failed(1)
    await place.db.run(
      sql`update webhook_deliveries set series_attempts = 8, due_at = domain_now() where id = ${delivery.id}`,
    )
    await under(2)
    expect((await place.call('POST', tenant, `${id}/deliveries/${delivery.id}/resend`)).status).toBe(200)
    fail()
    expect(await failed(2)).toMatchObject({ state: 'pending' })
    await under(3)
    receiver.status(200)
    fail()
    expect(await failed(3)).toMatchObject({ state: 'pending' })
    await place.advance(10)
    expect(await failed(4)).toMatchObject({ state: 'delivered' })
  })

  test('200 also sends what has failed since then, once the endpoint is active', async () => {
    const { id } = await place.endpoint(tenant, receiver.url)
    await place.emitMany(tenant.workspace_id, 3)
    await place.advance(0)
    await place.db.run(sql`
      update webhook_deliveries set state = 'failed', delivered_at = null where webhook_id = ${id} and sequence > 1`)
    await place.call('PATCH', tenant, id, { active: false })
    const now = (await place.service.app.settings.current()).now()
    const ago = (seconds: number) => new Date(now.getTime() - seconds * 1_000).toISOString()
    const ask = (since: string) => place.call('POST', tenant, `${id}/resend-failed`, { since })
    expect((await ask(ago(0))).body).toMatchObject({ queued: expect.any(Number) })
    expect((await ask(ago(3_600))).status).toBe(200)
    expect(await place.deliveries(tenant, id, '&state=pending')).toHaveLength(2)
    await place.advance(60)
    expect(receiver.received).toHaveLength(3)
    await place.call('PATCH', tenant, id, { active: true })
    await place.advance(60)
    expect(receiver.received).toHaveLength(5)
    for (const since of [ago(-600), ago(31 * 86_400), 'yesterday', '']) {
      expect(await ask(since)).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
    }
  })

  test('404 for an unknown or malformed delivery, and for one of another endpoint', async () => {
    const [one, other] = [
      await place.endpoint(tenant, receiver.url),
      await place.endpoint(tenant, receiver.url),
    ]
    await place.emitMany(tenant.workspace_id, 1)
    await place.advance(0)
    const [delivery] = await place.deliveries(tenant, other.id)
    for (const id of ['nothing', '0199a1f0-0000-7000-8000-000000000001', delivery?.id]) {
      const path = `${one.id}/deliveries/${id}`
      const answers = [
        await place.call('GET', tenant, path),
        await place.call('POST', tenant, `${path}/resend`),
      ]
      for (const { status, body } of answers) expect([status, body.code]).toEqual([404, 'not_found'])
    }
  })
})

describe('GET /webhooks/{webhook_id}/deliveries', () => {
  test('200 returns all of them once, newest first, and by state', async () => {
    const { id } = await place.endpoint(tenant, receiver.url)
    await place.emitMany(tenant.workspace_id, 25)
    await place.advance(0)
    await place.db.run(sql`
      update webhook_deliveries set state = 'failed', delivered_at = null where webhook_id = ${id} and sequence % 3 = 0`)
    const walk = async (query: string) => {
      const seen: number[] = []
      for (let cursor = ''; ; ) {
        const { status, body } = await place.call('GET', tenant, `${id}/deliveries?limit=4${query}${cursor}`)
        expect(status).toBe(200)
        seen.push(...(body.deliveries as { sequence: number }[]).map(({ sequence }) => sequence))
        if (body.next_cursor === null) return seen
        cursor = `&cursor=${body.next_cursor}`
      }
    }
    const all = Array.from({ length: 25 }, (_, n) => 25 - n)
    expect(await walk('')).toEqual(all)
    expect(await walk('&state=failed')).toEqual(all.filter((n) => n % 3 === 0))
    expect(await walk('&state=pending')).toEqual([])
    const { body } = await place.call('GET', tenant, `${id}/deliveries?limit=4&state=failed`)
    const moved = `${id}/deliveries?limit=4&state=delivered&cursor=${body.next_cursor}`
    expect(await place.call('GET', tenant, moved)).toMatchObject({
      status: 400,
      body: { code: 'invalid_cursor' },
    })
    for (const query of ['state=lost', 'limit=0', 'limit=101']) {
      expect((await place.call('GET', tenant, `${id}/deliveries?${query}`)).status).toBe(400)
    }
  })

  test('200 deletes deliveries after 30 days, and those of a deleted endpoint', async () => {
    const kept = await place.endpoint(tenant, receiver.url)
    const gone = await place.endpoint(tenant, receiver.url)
    await place.emitMany(tenant.workspace_id, 3)
    await place.advance(0)
    await place.call('DELETE', tenant, gone.id)
    await place.advance(31 * 86_400)
    await place.emitMany(tenant.workspace_id, 1)
    await place.advance(0)
    const { forgetDeliveries } = await import('./forgetting.ts')
    while ((await forgetDeliveries(place.db)).more);
    expect((await place.deliveries(tenant, kept.id)).map(({ sequence }) => sequence)).toEqual([4])
    expect(await place.db.maybe(sql`select id from webhooks where id = ${gone.id}`)).toBeUndefined()
    await until('nothing is left', 5_000, async () => {
      const rows = await place.db.rows(sql`select id from webhook_deliveries where webhook_id = ${gone.id}`)
      return rows.length === 0
    })
  })
})
