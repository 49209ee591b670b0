/** Account sessions in one process: their behaviour when the platform, the database or another worker misbehaves. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { setAccountEnabled } from '../src/capabilities/accounts/accounts.ts'
import { openDatabase } from '../src/db/pool.ts'
import { sql } from '../src/db/sql.ts'
import { listLiveness } from '../src/ledger/liveness.ts'
import { newId } from '../src/lib/ids.ts'
import { loops } from '../src/lists/loops.ts'
import { editMessage } from '../src/platform/sandbox/person-acts.ts'
import { assembleWorker, runWorker } from '../src/worker/worker.ts'
import { hangMs, until } from './harness/process.ts'
import type { Tenant } from './harness/service.ts'
import { timed } from './harness/timed.ts'
import { openNeighbour, openWorkplace, type Workplace } from './harness/worker.ts'
import { heldAccount } from './platform/account-store.ts'

let place: Workplace
let tenant: Tenant
let person_id: number
beforeAll(async () => {
  place = await openWorkplace()
  tenant = await place.service.tenant()
  person_id = place.person()
  await place.work()
})
afterEach(() => place.sandbox.world.clearFaults())
afterAll(() => place.close())

async function eligible(): Promise<string[]> {
  const { body } = await place.service.get('/me', { key: tenant.key })
  return (body.accounts as { id: string }[]).map(({ id }) => id)
}

function received(account_id: string): Promise<string[]> {
  return place
    .events(tenant.workspace_id)
    .then((events) =>
      events
        .filter(({ type, data }) => type === 'message.received' && data.account_id === account_id)
        .map(({ data }) => data.message.id),
    )
}

function hostRow(account_id: string) {
  return place.db.one<{ lease_owner: string | null; lease_epoch: string; position: string | null }>(sql`
    select lease_owner, lease_epoch, position from account_hosts where account_id = ${account_id}`)
}

/** How many log lines name this account. */
function logged(account_id: string, message: string): number {
  return place.service.log.filter((line) => line.includes(account_id) && line.includes(message)).length
}

/** 0.5 s, 1 s, 2 s, …, each at most halved at random: at most five in the first four seconds. */
function attemptsMost(ms: number): number {
  return 1 + Math.floor(Math.log2(ms / 250 + 1))
}

describe('connecting', () => {
  test('200 shows a new account in /me within a second', timed, async () => {
    const begun = performance.now()
    const account_id = await place.account(tenant)
    await until('the account is ready', 1_000, async () => (await place.status(account_id)) === 'READY')
    expect(await listLiveness(place.db, [account_id])).toEqual(new Map([[account_id, true]]))
    await until('the account is in /me', 1_000, async () => (await eligible()).includes(account_id))
    process.stdout.write(`in /me after ${Math.round(performance.now() - begun)} ms\n`)
    expect(performance.now() - begun).toBeLessThan(1_000)
    const row = await place.db.one(sql`
      select status, platform_user_id is not null as known from accounts where id = ${account_id}`)
    expect(row).toEqual({ status: 'READY', known: true })
  })

  test('200 omits an account that needs a login at the platform, after one attempt', async () => {
    place.fault({ on: 'connect', fault: 'refuse', times: 0 })
    const account_id = await place.account(tenant)
    await place.untilStatus(account_id, 'NEEDS_LOGIN')
    await sleep(1_500)
    expect(logged(account_id, 'an account cannot be connected')).toBe(1)
    expect(await eligible()).not.toContain(account_id)
    expect(await hostRow(account_id)).toMatchObject({ lease_owner: null })
  })

  test('backs off while the platform is unreachable, and delays no other account', timed, async () => {
    const healthy = await place.connected(tenant)
    const account_id = await place.account(tenant)
    const begun = performance.now()
    place.fault({ on: 'connect', fault: 'unavailable', times: 0, account_id })
    const delays: number[] = []
    for (let n = 0; n < 40; n++) {
      const at = performance.now()
      place.write(healthy, person_id, `hello ${n}`)
      await place.untilStored(healthy, n + 1)
      delays.push(performance.now() - at)
    }
    await sleep(1_500)
    const attempts = logged(account_id, 'connecting failed')
    expect(attempts).toBeGreaterThan(1)
    expect(attempts).toBeLessThanOrEqual(attemptsMost(performance.now() - begun))
    expect(await place.status(account_id)).toBe('CONNECTING')
    expect(Math.max(...delays)).toBeLessThan(1_000)
    place.sandbox.world.clearFaults()
    await place.untilStatus(account_id, 'READY')
  })

  test('backs off from a session that opens and breaks again and again', async () => {
    const account_id = await place.connected(tenant)
    const { world } = place.sandbox
    let sessions = 0
    let over = false
    const seize = () => {
      if (!over) world.occupy(account_id, { wake() {}, evict: again })
    }
    const again = () => {
      sessions++
      setImmediate(seize)
    }
    const begun = performance.now()
    seize()
    await sleep(3_000)
    over = true
    expect(sessions).toBeGreaterThan(1)
    expect(sessions).toBeLessThanOrEqual(attemptsMost(performance.now() - begun) + 1)
  })
})

describe('parley account disable and enable', () => {
  test('closes the session, stores nothing more, and reconnects at its last position', async () => {
    const account_id = await place.connected(tenant)
    const first = place.write(account_id, person_id, 'before')
    await place.untilStored(account_id, 1)
    await setAccountEnabled(place.service.app, 'system', { id: account_id, enabled: false })
    const second = place.write(account_id, person_id, 'meanwhile')
    await sleep(1_200)
    expect(await place.messages(account_id)).toHaveLength(1)
    expect(await hostRow(account_id)).toMatchObject({ lease_owner: null })
    expect(await eligible()).not.toContain(account_id)
    await setAccountEnabled(place.service.app, 'system', { id: account_id, enabled: true })
    await place.untilStatus(account_id, 'READY')
    await place.untilStored(account_id, 2)
    expect(await received(account_id)).toEqual([first, second])
  })

  test('ends READY when both run at once', async () => {
    const account_id = await place.connected(tenant)
    for (let n = 0; n < 5; n++) {
      await setAccountEnabled(place.service.app, 'system', { id: account_id, enabled: false })
      await setAccountEnabled(place.service.app, 'system', { id: account_id, enabled: true })
    }
    await place.untilStatus(account_id, 'READY')
    place.write(account_id, person_id, 'still there?')
    await place.untilStored(account_id, 1)
  })
})

describe('a lost session', () => {
  test('continues where it ended: no message is lost or announced twice', async () => {
    const account_id = await place.connected(tenant)
    place.fault({ on: 'updates', fault: 'drop_after', times: 3, account_id })
    const written: string[] = []
    for (let n = 0; n < 30; n++) {
      written.push(place.write(account_id, person_id, `line ${n}`))
      await sleep(20)
    }
    const stored = await place.untilStored(account_id, written.length)
    expect(stored.map(({ id }) => id)).toEqual(written)
    expect(await received(account_id)).toEqual(written)
  })

  test('stores late and repeated updates once', async () => {
    const account_id = await place.connected(tenant)
    place.fault({ on: 'updates', fault: 'late', seconds: 0.4, times: 1, account_id })
    place.fault({ on: 'updates', fault: 'twice', times: 3, account_id })
    const late = place.write(account_id, person_id, 'first')
    const twice = place.write(account_id, person_id, 'second')
    editMessage(place.sandbox.world, { account_id, person_id, message_id: Number(late), text: 'edited' })
    const rows = await until('the late one is there', hangMs, async () => {
      const found = await place.messages(account_id)
      return (await received(account_id)).length === 2 && found
    })
    expect(rows.map(({ id, text }) => [id, text])).toEqual([
      [late, 'edited'],
      [twice, 'second'],
    ])
    const events = await place.events(tenant.workspace_id)
    const own = events.filter(({ data }) => data.account_id === account_id).map(({ type }) => type)
    expect(own.sort()).toEqual(['message.edited', 'message.received', 'message.received'])
  })
})

describe('a database that is unreachable', () => {
  test('delays storing, and everything is stored once afterwards', async () => {
    const account_id = await place.connected(tenant)
    const other = await place.connected(tenant)
    const written: string[] = []
    const url = new URL(place.service.database.url)
    const name = url.pathname.slice(1)
    url.pathname = '/postgres'
    const outside = openDatabase({ connectionString: url.href }, { pool_size: 1 })
    try {
      await outside.pool.query(`alter database ${name} allow_connections false`)
      await outside.pool.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and usename = current_user',
        [name],
      )
      for (let n = 0; n < 10; n++) {
        written.push(place.write(account_id, person_id, `in the dark ${n}`))
        place.write(other, person_id, `in the dark ${n}`)
        await sleep(300)
      }
    } finally {
      await outside.pool.query(`alter database ${name} allow_connections true`)
      await outside.close()
    }
    const stored = await place.untilStored(account_id, 10)
    expect(stored.map(({ id }) => id)).toEqual(written)
    expect(await received(account_id)).toEqual(written)
    await place.untilStored(other, 10)
    expect(await received(other)).toHaveLength(10)
  })
})

describe('a lease that was taken away', () => {
  test('fences the old session, which does not end the new one', async () => {
    const account_id = await place.connected(tenant)
    place.write(account_id, person_id, 'mine')
    await place.untilStored(account_id, 1)
    const thief = newId()
    await place.db.run(sql`
      update account_hosts set lease_owner = ${thief}, lease_epoch = lease_epoch + 1,
        lease_until = clock_timestamp() + interval '20 seconds'
      where account_id = ${account_id}`)
    let evicted = 0
    const platform = place.sandbox.platform
    const outcome = await platform.connect(heldAccount({ account_id, name: 'Sales' }), {
      updates: async () => {},
      closed: () => void evicted++,
    })
    expect(outcome.kind).toBe('accepted')
    place.write(account_id, person_id, 'not mine')
    await sleep(2_500)
    expect(evicted).toBe(0)
    expect(await place.messages(account_id)).toHaveLength(1)
    expect(await hostRow(account_id)).toMatchObject({ lease_owner: thief })
    if (outcome.kind === 'accepted') await outcome.value.close()
  })

  test('stores nothing that arrives before the old session has noticed', async () => {
    const account_id = await place.connected(tenant)
    await place.db.run(sql`
      update account_hosts set lease_owner = ${newId()}, lease_epoch = lease_epoch + 1,
        lease_until = clock_timestamp() + interval '20 seconds'
      where account_id = ${account_id}`)
    place.write(account_id, person_id, 'for somebody else')
    await until(
      'the old session has noticed',
      hangMs,
      () => logged(account_id, 'lease of an account was lost') > 0,
    )
    expect(await place.messages(account_id)).toEqual([])
  })
})

describe('two workers', () => {
  test(
    'share the accounts, renew their leases, and a drained one hands over immediately',
    timed,
    async () => {
      const others = await openWorkplace()
      const their = await others.service.tenant()
      await others.work()
      const accounts: string[] = []
      for (let n = 0; n < 7; n++) accounts.push(await others.connected(their, `Account ${n}`))
      const neighbour = await openNeighbour(others.service.database.url)
      const second = await others.work(neighbour)
      // A worker that cannot drive any account does not count.
      const bystander = await openNeighbour(others.service.database.url)
      const parts = { platforms: new Map(), directory: others.directory, loops }
      const idle = runWorker(bystander, await assembleWorker(bystander, parts))
      const shares = async () =>
        others.db.rows<{ accounts: number }>(sql`
        select count(*)::int as accounts from account_hosts
        where lease_owner is not null and lease_until > clock_timestamp() group by lease_owner order by 1`)
      await until('both have their share', hangMs, async () => {
        const found = await shares()
        return found.length === 2 && found.map((each) => each.accounts).join() === '3,4'
      })
      const { until: before } = await others.db.one<{ until: Date }>(
        sql`select min(lease_until) as until from account_hosts`,
      )
      await until('every lease was renewed', hangMs, async () => {
        const { least } = await others.db.one<{ least: Date }>(
          sql`select min(lease_until) as least from account_hosts`,
        )
        return least > before
      })
      const text = await others.service.app.metrics.metrics()
      expect(text).toMatch(/parley_accounts\{state="connected"\} [34]\n/)
      const begun = performance.now()
      await second.stop()
      await until('one has them all', 2_000, async () => {
        const found = await shares()
        return found.length === 1 && found[0]?.accounts === 7
      })
      const mara = others.person()
      for (const account_id of accounts) others.write(account_id, mara, 'anybody there?')
      for (const account_id of accounts) await others.untilStored(account_id, 1, 2_000)
      expect(performance.now() - begun).toBeLessThan(2_500)
      await idle.stop()
      await bystander.close()
      await neighbour.close()
      await others.close()
    },
  )
})
