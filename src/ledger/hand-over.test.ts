/** Accounts that change hands: operations wait for the next worker, where one may connect the account in time. */
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hangMs, until } from '../../test/harness/process.ts'
import type { Answer, Tenant } from '../../test/harness/service.ts'
import { openNeighbour, openWorkplace, type Workplace } from '../../test/harness/worker.ts'
import { type Sql, sql } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import type { Running } from '../worker/run-loops.ts'
import { claimAccount } from './leases.ts'
import { handOverSeconds } from './liveness.ts'

let place: Workplace
let tenant: Tenant
let account_id: string
let person: number
let worker: Running
beforeEach(async () => {
  place = await openWorkplace()
  tenant = await place.service.tenant()
  worker = await place.work()
  account_id = await place.connected(tenant)
  person = place.person()
  place.write(account_id, person, 'hello')
  await place.untilStored(account_id, 1)
})
afterEach(() => place.close())

function send(text: string, from = account_id): Promise<Answer> {
  return place.service.post('/messages', {
    key: tenant.key,
    body: { account_id: from, chat_id: `platform:chat:${person}`, text },
    headers: { 'idempotency-key': randomUUID() },
  })
}

const refused = { status: 503, body: { code: 'session_unavailable' } }

function accepted(text: string): number {
  return place.sandbox.world.state.journal.filter((entry) => 'text' in entry && entry.text === text).length
}

async function host(set: Sql): Promise<void> {
  await place.db.run(sql`update account_hosts set ${set} where account_id = ${account_id}`)
}

async function untilQueued(count = 1): Promise<void> {
  await until('the send is queued', hangMs, async () => {
    const { queued } = await place.db.one<{ queued: number }>(
      sql`select count(*)::int as queued from operations where account_id = ${account_id} and state = 'queued'`,
    )
    return queued === count
  })
}

/** A worker that was killed: its lease stays, and its account looks live. */
async function kill(more: Sql = sql`lease_until = real_now()`): Promise<void> {
  await host(sql`observed_at = real_now()`)
  await worker.stop()
  await host(sql`lease_owner = ${newId()}, handed_over_at = null, observed_at = real_now(), ${more}`)
}

describe('a send to an account that was live', () => {
  test('200 after its worker stopped: it stays queued until the next worker has caught up', async () => {
    await worker.stop()
    const sending = send('between two workers')
    await untilQueued()
    await place.work()
    expect(await sending).toMatchObject({ status: 200 })
    expect(accepted('between two workers')).toBe(1)
    const { handed_over_at } = await place.db.one<{ handed_over_at: Date | null }>(
      sql`select handed_over_at from account_hosts where account_id = ${account_id}`,
    )
    expect(handed_over_at).toBe(null)
  })

  test('200 after its worker was killed and another one has claimed it', async () => {
    place.fault({ on: 'connect', fault: 'unavailable', times: 0 })
    await kill()
    await place.work()
    await until('it is claimed', hangMs, () =>
      place.db.maybe(
        sql`select 1 from account_hosts where account_id = ${account_id} and observed_at is null`,
      ),
    )
    const sending = send('after a kill')
    await untilQueued()
    place.sandbox.world.clearFaults()
    expect(await sending).toMatchObject({ status: 200 })
    expect(accepted('after a kill')).toBe(1)
  })

  test('503 at once when no worker may claim the lease while the caller waits', async () => {
    await kill(sql`lease_until = real_now() - interval '5 s', takeover_seconds = 90`)
    expect(await send('to nobody')).toMatchObject(refused)
    // A worker that signed off waits for nothing, and one on the same disk claims the lease as soon as it has run out.
    const claimable = [
      sql`lease_until = real_now() - interval '5 s', takeover_seconds = 0`,
      sql`lease_until = real_now() - interval '1 s', takeover_seconds = 90`,
      sql`lease_until = real_now() - interval '87 s', takeover_seconds = 90`,
      sql`lease_until = null, takeover_seconds = 90`,
    ]
    const sending: Promise<Answer>[] = []
    for (const set of claimable) {
      await host(set)
      sending.push(send('to the next worker'))
      await untilQueued(sending.length)
    }
    await host(sql`lease_until = null`)
    await place.work()
    expect((await Promise.all(sending)).map(({ status }) => status)).toEqual(claimable.map(() => 200))
  })

  test('503 at once when the hand-over takes too long', async () => {
    await worker.stop()
    const late = sql`real_now() - make_interval(secs => ${handOverSeconds + 1})`
    await host(sql`handed_over_at = ${late}`)
    expect(await send('too late')).toMatchObject(refused)
  })

  test('503 at once after a login has claimed it', async () => {
    await worker.stop()
    expect(await claimAccount(place.db, { worker_id: newId(), account_id })).toMatchObject({ account_id })
    expect(await send('during a login')).toMatchObject(refused)
  })
})

describe('a send to an account that was not live', () => {
  test('503 at once while its session is lost, and after its worker stopped', async () => {
    place.fault({ on: 'connect', fault: 'unavailable', times: 0 })
    place.sandbox.world.occupy(account_id, { wake() {}, evict() {} })
    await until('its session is lost', hangMs, () =>
      place.db.maybe(
        sql`select 1 from account_hosts where account_id = ${account_id} and observed_at is null`,
      ),
    )
    expect(await send('while it is lost')).toMatchObject(refused)
    await worker.stop()
    expect(await send('after that')).toMatchObject(refused)
    await place.work()
    expect(await send('under the next worker')).toMatchObject(refused)
  })
})

test('200 for every send while workers join and stop one after the other', async () => {
  const accounts = [account_id]
  while (accounts.length < 4) accounts.push(await place.connected(tenant))
  for (const other of accounts.slice(1)) {
    place.write(other, person, 'hello')
    await place.untilStored(other, 1)
  }
  const answers: string[] = []
  let over = false
  const calling = accounts.map(async (from) => {
    for (let n = 0; !over; n++) {
      const { status, body } = await send(`${from} ${n}`, from)
      answers.push(status === 200 ? '200' : `${status} ${body.code}`)
    }
  })
  const spread = (shares: string) =>
    until(`the accounts are spread ${shares}`, hangMs, async () => {
      const rows = await place.db.rows<{ count: number }>(sql`
        select count(*)::int as count from account_hosts where observed_at is not null group by lease_owner order by count`)
      return rows.map(({ count }) => count).join() === shares
    })
  const neighbours = await Promise.all([1, 2].map(() => openNeighbour(place.service.database.url)))
  for (const neighbour of neighbours) {
    const joined = await place.work(neighbour)
    await spread('2,2')
    await worker.stop()
    await spread('4')
    worker = joined
  }
  over = true
  await Promise.all(calling)
  await worker.stop()
  for (const neighbour of neighbours) await neighbour.close()
  expect(new Set(answers)).toEqual(new Set(['200']))
  const sent = place.sandbox.world.state.journal.flatMap((entry) => ('text' in entry ? [entry.text] : []))
  expect(sent.length).toBe(answers.length)
  expect(new Set(sent).size).toBe(sent.length)
})
