/**
 * What happens to attempts when a worker stops. Its wait for them is made shorter (`patched.ts`) than a call may
 * take.
 */
import { getEventListeners } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loops } from '../../src/capabilities/webhooks/loops.ts'
import { sql } from '../../src/db/sql.ts'
import { hangMs, until } from '../harness/process.ts'
import type { Tenant } from '../harness/service.ts'
import { Receiver, WebhookPlace } from '../harness/webhooks.ts'

let place: WebhookPlace
let tenant: Tenant
let receiver: Receiver
let id: string
/** Answers the latest request. */
let answer: () => void
beforeEach(async () => {
  place = await WebhookPlace.open()
  tenant = await place.service.tenant()
  receiver = await Receiver.open()
  receiver.answer = (response) => {
    answer = () => void response.end()
  }
  id = (await place.endpoint(tenant, receiver.url)).id
})
afterEach(async () => {
  await place.close()
  await receiver.close()
})

/** A worker whose one attempt hangs. */
async function hanging(): Promise<void> {
  await place.work()
  await place.emitMany(tenant.workspace_id, 1)
  await until('it is under way', hangMs, () => receiver.received.length === 1)
}

const failedAttempts = async () => (await place.db.rows(sql`select n from webhook_attempts`)).length

test('a stop lets an attempt finish: it is recorded and not repeated', async () => {
  await hanging()
  const lease = () =>
    place.db.one<{ until: string }>(sql`select lease_until::text as until from webhooks where id = ${id}`)
  const before = await lease()
  const stopped = place.rest()
  // The stop waits from then on: without the wait the attempt would have been cut off by now.
  await until('the stop has begun', hangMs, async () => (await lease()).until !== before.until)
  await turn()
  answer()
  await stopped
  expect(await place.deliveries(tenant, id)).toMatchObject([{ state: 'delivered', attempts: 1 }])
  await place.work()
  await place.emitMany(tenant.workspace_id, 1)
  await until('the next one comes', hangMs, () => receiver.received.length === 2)
  expect(new Set(receiver.ids).size).toBe(2)
})

test('a stop cuts off an attempt that continues: its result is unknown, so it is repeated', async () => {
  await hanging()
  await place.rest()
  expect(await place.deliveries(tenant, id)).toMatchObject([{ state: 'pending', attempts: 0, last: null }])
  expect(await place.webhook(tenant, id)).toMatchObject({ active: true, consecutive_failures: 0 })
  expect(await failedAttempts()).toBe(0)
  receiver.status(200)
  await place.work()
  await place.untilState(id, 'delivered', 1)
  expect(await place.deliveries(tenant, id)).toMatchObject([{ state: 'delivered', attempts: 1 }])
  const [first, second] = receiver.received
  expect([second?.id, second?.body]).toEqual([first?.id, first?.body])
})

test('a stop keeps the endpoint while it waits, and releases it immediately', async () => {
  await hanging()
  await place.db.pool.query(`
    create table renewals (seconds float8);
    create function note_renewal() returns trigger language plpgsql as $$ begin
      insert into renewals values (extract(epoch from new.lease_until - real_now()));
      return new;
    end $$;
    create trigger note_renewal after update of lease_until on webhooks
      for each row when (new.lease_until is not null) execute function note_renewal()`)
  await place.rest()
  const renewals = await place.db.rows<{ seconds: number }>(sql`select seconds from renewals`)
  expect(Math.max(...renewals.map(({ seconds }) => seconds))).toBeGreaterThan(5)
  const { owner } = await place.db.one<{ owner: string | null }>(
    sql`select lease_owner as owner from webhooks where id = ${id}`,
  )
  expect(owner).toBeNull()
})

test("a worker's steps leave nothing behind on the signal that ends them", async () => {
  const { app } = place.service
  const all = loops(app)
  const stopping = new AbortController()
  const step = (name: string) => all.find((loop) => loop.name === name)?.step(app, stopping.signal)
  await place.call('POST', tenant, `${id}/test`)
  for (let n = 0; n < 5; n++) await step('deliver-webhooks')
  expect(receiver.received).toHaveLength(1)
  expect(getEventListeners(stopping.signal, 'abort')).toEqual([])
  stopping.abort()
  await step('deliver-webhooks')
})
