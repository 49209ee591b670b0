/** What a dashboard user reads about an unknown outcome: nothing about API keys, and no command. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../test/harness/person.ts'
import { hangMs, until } from '../../test/harness/process.ts'
import type { Answer, Tenant } from '../../test/harness/service.ts'
import { openWorkplace, type Workplace } from '../../test/harness/worker.ts'
import { sql } from '../db/sql.ts'

let workplace: Workplace
let tenant: Tenant
let cookie: string
let message: { account_id: string; chat_id: string; text: string }

beforeAll(async () => {
  workplace = await openWorkplace()
  await workplace.work()
  tenant = await workplace.service.tenant()
  cookie = await signIn(workplace.service, tenant.user_id)
  const account_id = await workplace.connected(tenant)
  const person = workplace.person('Mara')
  workplace.write(account_id, person, 'hello')
  await workplace.untilStored(account_id, 1)
  message = { account_id, chat_id: `platform:chat:${person}`, text: 'Good morning' }
})
afterAll(() => workplace.close())

const inDashboard = (method: string, path: string, key?: string) =>
  askDashboard(workplace.service, method, `/w/${tenant.workspace_id}${path}`, {
    cookie,
    ...(key !== undefined && { body: message, headers: { 'idempotency-key': key } }),
  })
const inApi = (key: string) =>
  workplace.service.post('/messages', {
    key: tenant.key,
    body: message,
    headers: { 'idempotency-key': key },
  })

/** Words for programs and operators. */
const foreignWords = /Idempotency-Key|same key|GET \/|X-Operation-Id|parley /

function sentenceOf({ body }: Answer): string {
  return String(body.error)
}

test('503 outcome_ambiguous, and 409 for a repeat', async () => {
  // A reconnected account would receive the message, and its outcome would be known.
  const { account_id } = message
  workplace.fault({ on: 'connect', fault: 'unavailable', times: 0, account_id })
  workplace.fault({ on: 'send', fault: 'drop_after', times: 1, account_id })
  const key = randomUUID()
  const first = await inDashboard('POST', '/messages', key)
  expect(first).toMatchObject({ status: 503, body: { code: 'outcome_ambiguous' } })
  expect(sentenceOf(first)).not.toMatch(foreignWords)
  const repeat = await inDashboard('POST', '/messages', key)
  expect(repeat).toMatchObject({ status: 409, body: { code: 'outcome_ambiguous' } })
  expect(sentenceOf(repeat)).toBe(sentenceOf(first))
  // Says what the program can do, and where the operation's id is.
  expect(sentenceOf(await inApi(key))).toMatch(/same Idempotency-Key.*X-Operation-Id/)

  const id = String(first.headers.get('x-operation-id'))
  const { body } = await inDashboard('GET', `/operations/${id}`)
  expect(body.operation).toMatchObject({
    state: 'ambiguous',
    detail: expect.not.stringMatching(foreignWords),
  })
  workplace.sandbox.world.clearFaults()
})

/** The message expires before any worker takes it. */
function expire(key: string, asking: () => Promise<Answer>): Promise<Answer> {
  const { db } = workplace
  return db.transaction(async (tx) => {
    // Nothing crosses the boundary in the meantime.
    await tx.run(sql`select 1 from settings where name = 'dispatch' for update`)
    const answer = asking()
    await until('it is queued', hangMs, async () => {
      const ended = sql`
        update operations set state = 'released', reason = 'expired', finished_at = domain_now()
        where idempotency_key = ${key} and state = 'queued'`
      return (await db.run(ended)) > 0
    })
    return answer
  })
}

test('503 when provably nothing was sent', async () => {
  await until('the account is connected again', hangMs, async () => {
    return (await inApi(randomUUID())).status === 200
  })
  const [key, other] = [randomUUID(), randomUUID()]
  const refused = await expire(key, () => inDashboard('POST', '/messages', key))
  expect(refused).toMatchObject({ status: 503, body: { code: 'provider_unavailable' } })
  expect(sentenceOf(refused)).toMatch(/Nothing was sent; you can send it again\.$/)
  const told = await expire(other, () => inApi(other))
  expect(sentenceOf(told)).toMatch(/Nothing was sent; you can retry with the same key\.$/)
})
