/**
 * Previews and forecasts that take long: which callers wait for them, and which do not. The waits are made short
 * (`patched.ts`).
 */
import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import { hangMs, until } from '../harness/process.ts'
import { openService, type Service, type Tenant } from '../harness/service.ts'

let service: Service
let busy: Tenant
let other: Tenant
/** A campaign whose forecast takes seconds. */
let long: string

beforeAll(async () => {
  service = await openService()
  await service.open('extended')
  busy = await service.tenant('Busy')
  other = await service.tenant('Other')
  for (const tenant of [busy, other]) await service.allow(tenant)
  const made = await service.post('/campaigns', {
    key: busy.key,
    headers: { 'idempotency-key': 'long' },
    body: await bodyOf(busy),
  })
  expect(made.status, made.body.error).toBe(201)
  long = (made.body.campaign as { id: string }).id
  await service.app.db.run(sql`
    insert into campaign_recipients (id, campaign_id, workspace_id, position, contact, identifier, next_action_at)
    select gen_random_uuid(), ${long}, ${busy.workspace_id}, n, 'username:more_' || n, '@more_' || n, domain_now()
    from generate_series(1, 40000) n`)
})
afterAll(() => service.close())

async function bodyOf({ workspace_id }: Tenant): Promise<object> {
  return {
    message_text: 'Hello',
    daily_quota_per_account: 1,
    account_id: await service.account(workspace_id),
    contacts: [{ identifier: '@first_one' }],
    steps: Array.from({ length: 5 }, () => ({ branch: 'no_reply', wait_hours: 1, variants: ['Again'] })),
  }
}

/** The niceness of each thread of this process whose priority is not the process's own. */
function listLowered(): number[] {
  const all = readdirSync('/proc/self/task').map((id) => {
    const stat = readFileSync(`/proc/self/task/${id}/stat`, 'utf8')
    // The name of a thread may have spaces.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])
  })
  return all.filter((nice) => nice !== getPriority())
}

async function closedCount(): Promise<number> {
  const { values } = (await service.app.metrics.getSingleMetric('parley_http_dropped_total')?.get()) ?? {
    values: [],
  }
  return values.find(({ labels }) => labels.reason === 'closed')?.value ?? 0
}

test('429 with Retry-After for the same workspace while one runs, 200 for another one; and a caller who leaves ends it', async () => {
  const bodies = { busy: await bodyOf(busy), other: await bodyOf(other) }
  const leaving = new AbortController()
  const forecast = fetch(`${service.url}/api/v1/campaigns/${long}/forecast`, {
    headers: { authorization: `Bearer ${busy.key}` },
    signal: leaving.signal,
  }).catch(() => 'left')
  // A thread lowers its priority before its first play.
  const linux = process.platform === 'linux'
  await until('a thread plays', hangMs, async () => !linux || listLowered().length > 0 || undefined)
  const refused = await until('the workspace waits', hangMs, async () => {
    const answer = await service.post('/campaigns/preview', { key: busy.key, body: bodies.busy })
    return answer.status === 429 ? answer : undefined
  })
  expect(refused.body.code).toBe('rate_limited')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await service.post('/campaigns/preview', { key: other.key, body: bodies.other })).status).toBe(200)
  const before = await closedCount()
  leaving.abort()
  expect(await forecast).toBe('left')
  await until('the forecast is given up', hangMs, async () => (await closedCount()) > before || undefined)
  const answer = await service.post('/campaigns/preview', { key: busy.key, body: bodies.busy })
  expect(answer.status, answer.body.error).toBe(200)
  expect(service.log.filter((line) => line.includes('failed unexpectedly'))).toEqual([])
})

test.runIf(process.platform === 'linux')(
  'campaigns are played with a lower priority than all other threads',
  async () => {
    await service.post('/campaigns/preview', { key: other.key, body: await bodyOf(other) })
    const lowered = listLowered()
    expect(lowered.length).toBeGreaterThan(0)
    for (const nice of lowered) expect(nice).toBe(Math.min(19, getPriority() + 10))
  },
)
