/** Where the time of a send shows: in histograms, and for one operation at the terminal. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hangMs, until } from '../../test/harness/process.ts'
import { Receiver, WebhookPlace } from '../../test/harness/webhooks.ts'
import { openWorkplace, type Workplace } from '../../test/harness/worker.ts'
import { showOperation } from '../capabilities/operations/operations.ts'
import { sql } from '../db/sql.ts'

let place: Workplace
let workspace_id: string
/** The operation of the one send. */
let id: string
beforeAll(async () => {
  place = await openWorkplace()
  const { service } = place
  await place.work()
  const tenant = await service.tenant()
  const account_id = await place.connected(tenant)
  const person = place.person()
  place.write(account_id, person, 'hello')
  await place.untilStored(account_id, 1)
  const { status, body } = await service.post('/messages', {
    key: tenant.key,
    body: { account_id, chat_id: `platform:chat:${person}`, text: 'Good morning' },
    headers: { 'idempotency-key': 'timed' },
  })
  expect(status).toBe(200)
  workspace_id = tenant.workspace_id
  id = String(body.operation_id)
})
afterAll(() => place.close())

async function counts(): Promise<Record<string, number>> {
  const text = await place.service.app.metrics.metrics()
  const lines = text.matchAll(/^(parley_(?:operation|platform)_\w+_seconds)_count (\d+)$/gm)
  return Object.fromEntries([...lines].map(([, name, count]) => [name, Number(count)]))
}

test('a send is counted once in each histogram, and its operation shows its course', async () => {
  expect(await counts()).toEqual({
    parley_operation_wait_seconds: 1,
    parley_platform_call_seconds: 1,
    parley_operation_recording_seconds: 1,
  })
  expect(await showOperation(place.service.app, id)).toMatchObject({
    id,
    workspace_id,
    kind: 'send_message',
    state: 'completed',
    detail: 'The platform accepted it.',
    attempts: 1,
    waited_seconds: expect.any(Number),
    submitted_seconds: expect.any(Number),
    closed_as: null,
  })
})

test('the course of an operation is what its row says, up to the boundary and from there on', async () => {
  const { app } = place.service
  const at = (seconds: number) => new Date(Date.UTC(2026, 10, 2, 9) + seconds * 1_000)
  const public_id = randomUUID()
  await app.db.run(sql`
    update operations set created_at = ${at(0)}, crossed_at = ${at(2)}, finished_at = ${at(5)}, public_id = ${public_id}
    where id = ${id}`)
  const course = { waited_seconds: 2, submitted_seconds: 3, state: 'completed' }
  expect(await showOperation(app, id)).toMatchObject(course)
  expect(await showOperation(app, public_id)).toMatchObject(course)
  // It ended in the queue.
  await app.db.run(sql`update operations set crossed_at = null where id = ${id}`)
  expect(await showOperation(app, id)).toMatchObject({ waited_seconds: 5, submitted_seconds: null })
})

test('an operation that does not exist is not shown', async () => {
  const { service } = place
  await expect(showOperation(service.app, 'x')).rejects.toMatchObject({ code: 'not_found' })
  await expect(showOperation(service.app, id.replace(/^.{8}/, '00000000'))).rejects.toMatchObject({
    code: 'not_found',
  })
})

test('a delivery is counted in the lag of webhooks once its endpoint accepts it', async () => {
  const receiver = await Receiver.open()
  const hooks = await WebhookPlace.open()
  const tenant = await hooks.service.tenant()
  const lag = async () =>
    /^parley_webhook_lag_seconds_count (\d+)$/m.exec(await hooks.service.app.metrics.metrics())?.[1]
  const { id } = await hooks.endpoint(tenant, receiver.url)
  let refused: string | undefined
  receiver.answer = (response, { id: event_id }) => {
    refused ??= event_id
    response.writeHead(event_id === refused ? 500 : 200).end()
  }
  await hooks.work()
  await hooks.emitMany(tenant.workspace_id, 4)
  await hooks.untilState(id, 'delivered', 3)
  await until('the refused one is recorded too', hangMs, async () => {
    const [failed] = (await hooks.deliveries(tenant, id)).filter(({ event_id }) => event_id === refused)
    return (failed?.attempts ?? 0) > 0
  })
  expect(await lag()).toBe('3')
  await hooks.close()
  await receiver.close()
})
