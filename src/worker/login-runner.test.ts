/** Which logins a worker runs at a time. The platform never ends one. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { hangMs, until } from '../../test/harness/process.ts'
import { openService, type Service, type Tenant } from '../../test/harness/service.ts'
import { sql } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import type { Platform } from '../platform/port.ts'
import { LoginRunner } from './login-runner.ts'

let service: Service
let greedy: Tenant
let other: Tenant
let runner: LoginRunner
beforeAll(async () => {
  service = await openService()
  greedy = await service.tenant('Greedy')
  other = await service.tenant('Other')
})
afterAll(() => service.close())
afterEach(async () => {
  await runner.stop()
  await service.app.db.run(sql`delete from account_logins`)
})

const platform = {
  name: 'telegram',
  login: () => ({ answer() {}, close: async () => {} }),
} as unknown as Platform

function openRunner(atOnceMax: number): void {
  runner = new LoginRunner(service.app, {
    worker_id: newId(),
    platforms: new Map([['telegram', platform]]),
    atOnceMax,
  })
}

/** A login by QR code that waits for a worker. */
async function begin({ workspace_id, user_id }: Tenant): Promise<string> {
  const { db } = service.app
  const account_id = await service.account(workspace_id)
  await db.run(
    sql`update accounts set platform = 'telegram', status = 'NEEDS_LOGIN' where id = ${account_id}`,
  )
  await db.run(sql`
    insert into account_logins (account_id, workspace_id, actor, way, state, attempt, begins, alive_until, begun_at)
    values (${account_id}, ${workspace_id}, ${`user:${user_id}`}, 'qr', 'qr', ${newId()}, array[domain_now()],
      real_now() + interval '1 hour', clock_timestamp())`)
  return account_id
}

const step = () => runner.loop.step(service.app, new AbortController().signal)

async function stateOf(account_id: string): Promise<string> {
  const { worker_id, state, failure } = await service.app.db.one<{
    worker_id: string | null
    state: string
    failure: { code: string; error: string; retry_after: number } | null
  }>(sql`select worker_id, state, failure from account_logins where account_id = ${account_id}`)
  if (failure) return `${failure.code}: ${failure.error}`
  return worker_id === null ? 'waits' : state
}

const statesOf = (ids: readonly string[]) => Promise.all(ids.map(stateOf))

test('the first logins of two workspaces come before the second of one', async () => {
  openRunner(2)
  const ids = [await begin(greedy), await begin(greedy), await begin(greedy), await begin(other)]
  await step()
  expect(await statesOf(ids)).toEqual(['qr', 'waits', 'waits', 'qr'])
})

test('the newest login of the workspace with the most gives way to one that has none, and says why', async () => {
  openRunner(3)
  const ids = [await begin(greedy), await begin(greedy), await begin(greedy)]
  await step()
  expect(await statesOf(ids)).toEqual(['qr', 'qr', 'qr'])
  // Its own next one waits.
  const fourth = await begin(greedy)
  await step()
  expect(await statesOf([...ids, fourth])).toEqual(['qr', 'qr', 'qr', 'waits'])
  const late = await begin(other)
  await until('the other workspace has a place', hangMs, async () => {
    await step()
    return (await stateOf(late)) === 'qr' || undefined
  })
  for (let n = 0; n < 3; n++) await step()
  expect(await statesOf([...ids, fourth, late])).toEqual([
    'qr',
    'qr',
    expect.stringMatching(/^rate_limited: Other workspaces wait to log in, and this one has the most/),
    'waits',
    'qr',
  ])
})
