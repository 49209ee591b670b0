import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { openSecret } from '../../lib/webhook-signatures.ts'
import { verifyAudit } from '../audit/audit.ts'
import { blockedPorts } from './url-rules.ts'

let service: Service
let tenant: Tenant
beforeAll(async () => {
  service = await openService({ env: { PARLEY_WEBHOOK_ALLOW: 'hooks.test, 127.0.0.9' } })
  tenant = await service.tenant()
})
afterAll(() => service.close())

const url = 'https://example.com/hook'

function create(body: unknown, { key }: Tenant = tenant) {
  return service.post('/webhooks', { key, body })
}

interface CreatedWebhook {
  readonly webhook: {
    id: string
    url: string
    events: string[]
    active: boolean
    consecutive_failures: number
  }
  readonly secret: string
}

async function made(owner: Tenant = tenant, body: object = {}): Promise<CreatedWebhook> {
  const answer = await create({ url, ...body }, owner)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  return answer.body as unknown as CreatedWebhook
}

const patch = (id: string, body: object, { key }: Tenant = tenant) =>
  service.call('PATCH', `/webhooks/${id}`, { key, body })

describe('POST /webhooks', () => {
  test('201 with a secret of 32 bytes, which is stored sealed and not shown again', async () => {
    const own = await service.tenant()
    const { webhook, secret } = await made(own)
    expect(webhook).toEqual({
      id: expect.any(String),
      url,
      events: ['*'],
      active: true,
      created_at: expect.any(String),
      consecutive_failures: 0,
      disabled_at: null,
      created_by: { user_id: own.user_id, name: expect.any(String) },
      stop_reason: null,
    })
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(Buffer.from(secret.slice(6), 'base64')).toHaveLength(32)
    const { sealed } = await service.app.db.one<{ sealed: Buffer }>(
      sql`select secret as sealed from webhooks where id = ${webhook.id}`,
    )
    expect(sealed.includes(Buffer.from(secret))).toBe(false)
    expect(openSecret(service.app.secrets, webhook.id, sealed)).toBe(secret)
    const list = await service.get('/webhooks', { key: own.key })
    expect(list.body).toEqual({ webhooks: [webhook] })
    expect(JSON.stringify(list.body)).not.toContain('whsec_')
  })

  test('201 with some events, each once; all are shown as *', async () => {
    const own = await service.tenant()
    const some = await made(own, { events: ['message.received', 'pipeline.moved', 'message.received'] })
    expect(some.webhook.events).toEqual(['message.received', 'pipeline.moved'])
    expect((await made(own, { events: ['*'] })).webhook.events).toEqual(['*'])
  })

  test('201 for plain HTTP, private addresses and port 80 when the operator allows the host', async () => {
    const own = await service.tenant()
    for (const allowed of [
      'http://hooks.test/a',
      'http://127.0.0.9:8080/a',
      'https://127.0.0.9/',
      'http://HOOKS.test.',
    ]) {
      expect((await create({ url: allowed }, own)).status, allowed).toBe(201)
    }
  })

  test.each([
    ['nothing', {}],
    ['no string', { url: 1 }],
    ['an unknown event', { url, events: ['message.sent'] }],
    ['no event', { url, events: [] }],
    ['* next to others', { url, events: ['*', 'message.received'] }],
    ['a test as a subscription', { url, events: ['webhook.test'] }],
    ['active', { url, active: false }],
  ])('400 for %s', async (_, body) => {
    expect(await create(body)).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  })

  test('409 for the eleventh, however many callers create at once; inactive ones count', async () => {
    const own = await service.tenant()
    const first = await made(own)
    await patch(first.webhook.id, { active: false }, own)
    const answers = await Promise.all(Array.from({ length: 14 }, () => create({ url }, own)))
    const refused = answers.filter(({ status }) => status === 409)
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(9)
    expect(refused.map(({ body }) => body.code)).toEqual(Array(5).fill('webhook_limit_reached'))
    const gone = await service.call('DELETE', `/webhooks/${first.webhook.id}`, { key: own.key })
    expect(gone).toMatchObject({ status: 200, body: { ok: true } })
    expect((await create({ url }, own)).status).toBe(201)
  })
})

describe('the URL of a webhook', () => {
  const refused: readonly string[] = [
    'example.com/hook',
    'ftp://example.com/',
    'http://example.com/',
    'https://user@example.com/',
    'https://user:pass@example.com/',
    'https://example.com/#part',
    'https://example.com/#',
    'https://example.com:22/',
    'https://example.com:25/',
    'https://example.com:80/',
    'https://example.com:1023/',
    ...[...blockedPorts].map((port) => `https://example.com:${port}/`),
    `https://example.com/${'a'.repeat(2049)}`,
    'https://exa\nmple.com/',
    'https://example.com/\tx',
    'https://example.com\\@127.0.0.2/',
    'https://localhost/',
    'https://localhost./',
    'https://LOCALHOST/',
    'https://foo.localhost/',
    'https://localhost../',
    'https://127.0.0.1../',
    'https://a..example.com/',
    'https://printer.local/',
    'https://metadata.google.internal/',
    'https://nas.home.arpa/',
    'https://intranet/',
    'https://①②⑦.0.0.1/',
    'https://0x7f.1/',
    'https://2130706433/',
    'https://127.1/',
    'https://0177.0.0.1/',
    'https://[::1]/',
    'https://[::ffff:7f00:1]/',
    'https://[::7f00:1]/',
    'https://[fe80::1]/',
    'https://[fd00:ec2::254]/',
    'https://[64:ff9b::a9fe:a9fe]/',
    'https://[2002:7f00:1::]/',
    'https://[2001:0:7f00:1::]/',
    'https://0.0.0.0/',
    'https://10.1.2.3/',
    'https://100.64.0.1/',
    'https://169.254.169.254/latest/meta-data',
    'https://168.63.129.16/',
    'https://172.16.0.1/',
    'https://192.168.1.1/',
    'https://192.0.2.1/',
    'https://198.18.0.1/',
    'https://224.0.0.1/',
    'https://255.255.255.255/',
    'https:///',
    'https://',
    '',
  ]
  test.each(refused.map((each) => [each.slice(0, 60), each]))(
    '400 for %s, in a sentence',
    async (_, given) => {
      const own = await service.tenant()
      for (const answer of [await create({ url: given }, own), await patchUrl(own, given)]) {
        expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
        expect(answer.body.error).toMatch(/^url .*\.$/)
      }
    },
  )

  async function patchUrl(own: Tenant, given: string) {
    const { webhook } = await made(own)
    const answer = await patch(webhook.id, { url: given }, own)
    const { body } = await service.get('/webhooks', { key: own.key })
    expect(body).toMatchObject({ webhooks: [{ url }] })
    return answer
  }

  test.each([
    'https://example.com',
    'https://example.com:443/',
    'https://example.com:8443/a?b=c',
    'https://example.com:65535/',
    'https://8.8.8.8/',
    'https://[2606:4700::1111]/',
    'https://bücher.example/',
  ])('201 for %s, unchanged', async (given) => {
    const own = await service.tenant()
    expect((await made(own, { url: given })).webhook.url).toBe(given)
  })

  test('its length is counted in characters', async () => {
    const long = `https://example.com/${'😀'.repeat(2_028)}`
    expect((await create({ url: long }, await service.tenant())).status).toBe(201)
    expect((await create({ url: `${long}a` })).status).toBe(400)
  })
})

describe('PATCH /webhooks/{webhook_id}', () => {
  test('200 changes the given fields and nothing else', async () => {
    const own = await service.tenant()
    const { webhook } = await made(own)
    const events = ['campaign.replied']
    expect((await patch(webhook.id, { events }, own)).body).toEqual({ webhook: { ...webhook, events } })
    expect((await patch(webhook.id, { active: false }, own)).body).toEqual({
      webhook: { ...webhook, events, active: false },
    })
  })

  test('200 with active or another url resets its failures, and with the same url does not', async () => {
    const own = await service.tenant()
    const { webhook } = await made(own)
    const fail = () =>
      service.app.db.run(sql`
        update webhooks set consecutive_failures = 7, probe_at = domain_now(), probe_gap_seconds = 5,
          disabled_at = domain_now() where id = ${webhook.id}`)
    const breaker = () =>
      service.app.db.one(sql`
        select consecutive_failures, probe_at is null as closed from webhooks where id = ${webhook.id}`)
    await fail()
    await patch(webhook.id, { url, events: ['*'], active: false }, own)
    expect(await breaker()).toEqual({ consecutive_failures: 7, closed: false })
    await patch(webhook.id, { url: 'https://example.com/other' }, own)
    expect(await breaker()).toEqual({ consecutive_failures: 0, closed: true })
    await fail()
    const { body } = await patch(webhook.id, { active: true }, own)
    expect(await breaker()).toEqual({ consecutive_failures: 0, closed: true })
    expect(body).toMatchObject({ webhook: { active: true, disabled_at: null } })
  })

  test('400 without a field, before the webhook is looked up', async () => {
    expect(await patch('nothing', {})).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  })

  test('404 for an unknown, malformed, foreign or deleted one, on every operation', async () => {
    const own = await service.tenant()
    const foreign = await made(await service.tenant())
    const deleted = await made(own)
    await service.call('DELETE', `/webhooks/${deleted.webhook.id}`, { key: own.key })
    const ids = ['nothing', '0199a1f0-0000-7000-8000-000000000001', foreign.webhook.id, deleted.webhook.id]
    for (const id of ids) {
      for (const [method, path, body] of [
        ['PATCH', '', { active: true }],
        ['DELETE', '', undefined],
        ['POST', '/rotate-secret', undefined],
        ['POST', '/test', undefined],
        ['POST', '/resend-failed', { since: new Date().toISOString().slice(0, 10) }],
        ['GET', '/deliveries', undefined],
        ['GET', `/deliveries/${id}`, undefined],
        ['POST', `/deliveries/${id}/resend`, undefined],
      ] as const) {
        const answer = await service.call(method, `/webhooks/${id}${path}`, { key: own.key, body })
        expect([answer.status, answer.body.code], `${method} ${path}`).toEqual([404, 'webhook_not_found'])
      }
    }
  })
})

describe('POST /webhooks/{webhook_id}/rotate-secret', () => {
  test('200 with a new secret, also for an id in capitals; both secrets can be decrypted', async () => {
    const own = await service.tenant()
    const { webhook, secret } = await made(own)
    const { body } = await service.post(`/webhooks/${webhook.id.toUpperCase()}/rotate-secret`, {
      key: own.key,
    })
    expect(body).toMatchObject({ webhook, secret: expect.stringMatching(/^whsec_/) })
    expect(body.secret).not.toBe(secret)
    const row = await service.app.db.one<{ secret: Buffer; previous_secret: Buffer }>(
      sql`select secret, previous_secret from webhooks where id = ${webhook.id}`,
    )
    const open = (sealed: Buffer) => openSecret(service.app.secrets, webhook.id, sealed)
    expect([open(row.secret), open(row.previous_secret)]).toEqual([body.secret, secret])
  })
})

describe('the audit log', () => {
  test('has every change and its actor, and neither secrets nor paths of URLs', async () => {
    const own = await service.tenant()
    const { webhook, secret } = await made(own, { url: 'https://example.com/token-of-theirs' })
    await patch(webhook.id, { active: false }, own)
    await service.post(`/webhooks/${webhook.id}/rotate-secret`, { key: own.key })
    await service.call('DELETE', `/webhooks/${webhook.id}`, { key: own.key })
    const rows = await service.app.db.rows<{ action: string; actor: string; detail: string }>(
      sql`select action, actor, detail from audit where target = ${webhook.id} order by seq`,
    )
    const actions = ['webhook.created', 'webhook.updated', 'webhook.secret_rotated', 'webhook.deleted']
    expect(rows.map(({ action }) => action)).toEqual(actions)
    expect(new Set(rows.map(({ actor }) => actor))).toEqual(new Set([`user:${own.user_id}`]))
    expect(JSON.stringify(rows)).not.toMatch(/whsec_|token-of-theirs/)
    expect(service.log.join('')).not.toContain(secret)
    expect(await verifyAudit(service.app)).toMatchObject({ ok: true })
  })
})
