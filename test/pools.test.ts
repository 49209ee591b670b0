/**
 * Guards that span accounts: any account of a pool may take a contact that none has taken. The platform's journal
 * shows whether a person got a message twice, whatever the database has lost.
 */
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { setAccountEnabled } from '../src/capabilities/accounts/accounts.ts'
import { controlCampaign } from '../src/capabilities/campaigns/control.ts'
import { readDispatch, setDispatch } from '../src/capabilities/gates/gates.ts'
import { addSuppression } from '../src/capabilities/suppressions/suppressions.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { sql } from '../src/db/sql.ts'
import type { HoldingAccount } from '../src/ledger/runs.ts'
import { loops } from '../src/lists/loops.ts'
import type { Platform } from '../src/platform/port.ts'
import type { Running } from '../src/worker/run-loops.ts'
import { assembleWorker, runWorker } from '../src/worker/worker.ts'
import { insertCampaign } from './harness/campaigns.ts'
import { run } from './harness/operator.ts'
import { restartServer, takePicture } from './harness/picture.ts'
import { hangMs, until } from './harness/process.ts'
import type { Tenant } from './harness/service.ts'
import { timed } from './harness/timed.ts'
import { openNeighbour, openWorkplace, type Workplace } from './harness/worker.ts'

const env = {
  PARLEY_PACING_SECONDS: '0',
  PARLEY_START_CHAT_PER_MINUTE: '1000',
  PARLEY_START_CHAT_PER_DAY: '1000',
}
let place: Workplace
let tenant: Tenant
let workers: { app: OpenApp; running: Running }[] = []
let directories: string[] = []
/** Accounts that the platform refuses to connect. */
const shut = new Map<string, PromiseWithResolvers<void>>()
let named = 0

beforeEach(async () => {
  place = await openWorkplace({ env })
  await place.service.open('all', 'extended')
  tenant = await place.service.tenant()
  await place.service.allow(tenant)
})
afterEach(async () => {
  for (const { resolve } of shut.values()) resolve()
  shut.clear()
  await stop()
  await place.close()
  for (const directory of directories) await rm(directory, { recursive: true, force: true })
  directories = []
})

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'parley-pool-'))
  directories.push(directory)
  return directory
}

/** A worker in another process, as far as the database can tell, on its own disk. */
async function start(directory: string): Promise<void> {
  const app = await openNeighbour(place.service.database.url, env)
  const { platform } = place.sandbox
  const gated: Platform = {
    ...platform,
    connect: async (account, listener) => {
      await shut.get(account.account_id)?.promise
      return platform.connect(account, listener)
    },
  }
  const parts = { platforms: new Map([['sandbox', gated]]), directory, loops }
  workers.push({ app, running: runWorker(app, await assembleWorker(app, parts)) })
}

async function stop(): Promise<void> {
  for (const { app, running } of workers) {
    await running.stop()
    await app.close()
  }
  workers = []
}

function close(account_ids: readonly string[]): void {
  for (const id of account_ids) shut.set(id, Promise.withResolvers())
}

function open(account_id: string): void {
  shut.get(account_id)?.resolve()
  shut.delete(account_id)
}

const connected = (count: number) => Promise.all(Array.from({ length: count }, () => place.connected(tenant)))

/** A paused campaign to people whom no account knows, each under as many names as `names` says. */
async function campaign(pool: readonly string[], people: number, names: 1 | 2 = 1): Promise<string> {
  const contacts = Array.from({ length: people }, () => {
    const [username, digits] = [`pool_${named++}`, `${491700000000 + named}`]
    place.sandbox.world.addPerson({ name: `Name ${named}`, username, phone: `+${digits}` })
    return [{ contact: `username:${username}` }, { contact: `phone:${digits}` }].slice(0, names)
  }).flat()
  await setDispatch(place.service.app, 'system', false)
  const id = await insertCampaign(place.db, tenant, {
    ...{ kind: 'contacts', pool, contacts, steps: [{ wait_hours: 24 }], quota: 200 },
  })
  await control(id, 'pause')
  await setDispatch(place.service.app, 'system', true)
  return id
}

const control = (id: string, what: 'pause' | 'resume') =>
  place.db.transaction((tx) => controlCampaign(tx, {}, { id, control: what }))

/** How many messages each person got. */
function received(): number[] {
  const sends = place.sandbox.world.state.journal.filter(({ kind }) => kind === 'send')
  return [...Map.groupBy(sends, ({ chat_id }) => chat_id).values()].map((own) => own.length)
}

const sent = () => received().reduce((sum, one) => sum + one, 0)

const statuses = async (id: string) => {
  const rows = await place.db.rows<{ status: string; account_id: string | null; reason: string | null }>(sql`
    select status, account_id, reason from campaign_recipients where campaign_id = ${id} order by position`)
  return rows.map(({ status }) => status)
}

const untilWritten = (id: string) =>
  until('every recipient has had its message', hangMs, async () =>
    (await statuses(id)).every((status) => status === 'waiting'),
  )

/** Also when contacts are one person: of those all but one have failed. */
const untilDone = (id: string) =>
  until('no first message is left', hangMs, async () =>
    (await statuses(id)).every((status) => status === 'waiting' || status === 'failed'),
  )

const untilOnlyWaitsFor = (account: HoldingAccount) =>
  until('one account alone is waited for', hangMs, async () => {
    const { unconfirmed } = await readDispatch(place.db)
    return isDeepStrictEqual(unconfirmed, [account])
  })

/** Long enough for a worker to pick, look up and cross, if it were allowed to. */
async function aWhile(): Promise<void> {
  for (const { app } of workers) {
    const { restore_counter } = await app.db.one<{ restore_counter: string }>(
      sql`select restore_counter from instance`,
    )
    await until('another heartbeat', hangMs, async () => {
      const now = await app.db.one<{ restore_counter: string }>(sql`select restore_counter from instance`)
      return BigInt(now.restore_counter) > BigInt(restore_counter)
    })
  }
}

async function blockedBy(id: string): Promise<unknown[]> {
  const { body } = await place.service.get(`/campaigns/${id}`, { key: tenant.key })
  const { recipients } = body.campaign as { recipients: { blocked_by: string | null }[] }
  return recipients.map(({ blocked_by }) => blocked_by)
}

function permutations(of: readonly number[]): number[][] {
  if (of.length < 2) return [[...of]]
  return of.flatMap((first) =>
    permutations(of.filter((one) => one !== first)).map((rest) => [first, ...rest]),
  )
}

describe('PostgreSQL is restored from a picture less than a heartbeat old', () => {
  test.each([1, 2])('no person gets a message twice: %i workers', async (count) => {
    for (let n = 0; n < count; n++) await start(await newDirectory())
    const [one = '', other = ''] = await connected(2)
    await until('the accounts are shared out', hangMs, async () => {
      const { owners } = await place.db.one<{ owners: number }>(sql`
        select count(distinct lease_owner)::int as owners from account_hosts where observed_at is not null`)
      return owners === count
    })
    await place.db.run(sql`update accounts set cold_per_day = 0 where id = ${other}`)
    const id = await campaign([one, other], 6)
    const back = await takePicture(place.db, { keepCounter: true })
    await control(id, 'resume')
    await untilWritten(id)
    await back()
    // Now the other account should write, and its marks are fine.
    await place.db.run(sql`
      update accounts set cold_per_day = case when id = ${one} then 0 end where id in (${one}, ${other})`)
    await control(id, 'resume')
    await until('the worker puts its journals back', hangMs, async () => {
      const rows = await statuses(id)
      return rows.every((status) => status !== 'queued')
    })
    await setDispatch(place.service.app, 'system', true)
    await untilWritten(id)
    expect(received()).toEqual([1, 1, 1, 1, 1, 1])
  })
})

describe('the whole directory is restored, journals included', () => {
  /** Everything was sent, and only the platform knows. The accounts cannot connect yet. */
  async function forgotten(
    count: number,
    names: 1 | 2 = 1,
  ): Promise<{ id: string; pool: string[]; people: number }> {
    const directory = await newDirectory()
    await start(directory)
    const pool = await connected(count)
    const people = 2 * count
    const id = await campaign(pool, people, names)
    const [back, copy] = [await takePicture(place.db), await newDirectory()]
    await cp(directory, copy, { recursive: true })
    await control(id, 'resume')
    await untilDone(id)
    const writers = await place.db.rows(sql`
      select distinct account_id from campaign_recipients where campaign_id = ${id} and status = 'waiting'`)
    expect(writers).toHaveLength(count)
    await putBack(id, { pool, back, copy })
    return { id, pool, people }
  }

  interface Copied {
    readonly pool: readonly string[]
    readonly back: () => Promise<void>
    readonly copy: string
  }

  async function putBack(id: string, { pool, back, copy }: Copied): Promise<void> {
    await stop()
    await back()
    await place.db.run(sql`update account_hosts set lease_until = null, lease_owner = null`)
    close(pool)
    await start(copy)
    await control(id, 'resume')
  }

  async function untilLive(account_id: string): Promise<void> {
    await place.untilStatus(account_id, 'READY')
    await until('it is live', hangMs, async () => {
      const row = await place.db.maybe(sql`
        select 1 from account_hosts where account_id = ${account_id} and observed_at is not null`)
      return row !== undefined
    })
  }

  // `TEST_EVERY_ORDER=1` tries every order of three, and ten of five.
  const orders = process.env.TEST_EVERY_ORDER
    ? [...permutations([0, 1, 2]), ...permutations([0, 1, 2, 3, 4]).filter((_, at) => at % 12 === 0)]
    : [
        [2, 0, 1],
        [3, 1, 4, 0, 2],
      ]
  test.each(orders)(
    'sends nothing again when the accounts connect in the order %i, %i, %i',
    async (...order) => {
      const { id, pool, people } = await forgotten(order.length)
      for (const at of order) {
        expect(sent()).toBe(people)
        const account_id = pool[at] ?? ''
        open(account_id)
        await untilLive(account_id)
        await aWhile()
      }
      await untilWritten(id)
      expect(received()).toEqual(Array.from({ length: people }, () => 1))
      const { wrong } = await place.db.one<{ wrong: number }>(sql`
      select count(*)::int as wrong from campaign_recipients r where r.campaign_id = ${id} and not exists (
        select from operations o join messages m on m.account_id = o.account_id and m.random_id = o.random_id
        where o.recipient_id = r.id and o.account_id = r.account_id and o.reconciled)`)
      expect(wrong).toBe(0)
    },
  )

  test('sends nothing again to a person with two names, whichever name is looked up first', async () => {
    const { id, pool, people } = await forgotten(3, 2)
    // Before, the first name of each got the message.
    await place.db.run(sql`
      update campaign_recipients set next_action_at = next_action_at - make_interval(secs => position)
      where campaign_id = ${id}`)
    for (const account_id of pool) open(account_id)
    await untilDone(id)
    expect(received()).toEqual(Array.from({ length: people }, () => 1))
  })

  test('sends nothing again from an account whose contact another account took over in the meantime', async () => {
    const directory = await newDirectory()
    await start(directory)
    const pool = await connected(2)
    const [had = '', took = ''] = pool
    const id = await campaign(pool, 1)
    await place.db.run(sql`update campaign_recipients set account_id = ${had} where campaign_id = ${id}`)
    const [back, copy] = [await takePicture(place.db), await newDirectory()]
    await cp(directory, copy, { recursive: true })
    await setAccountEnabled(place.service.app, 'system', { id: had, enabled: false })
    await control(id, 'resume')
    await untilWritten(id)
    await putBack(id, { pool, back, copy })
    open(had)
    await untilLive(had)
    await aWhile()
    expect([sent(), await blockedBy(id)]).toEqual([1, ['account_not_ready']])
    open(took)
    await untilWritten(id)
    expect(sent()).toBe(1)
  })

  test('records what was sent to a person who is now suppressed, and does not send it', async () => {
    const { id, pool, people } = await forgotten(2)
    // As when the entry commits while the recipient crosses: nothing has ended it before.
    await place.db.run(sql`alter table suppressions disable trigger suppressions_end_recipients`)
    const { contact } = await place.db.one<{ contact: string }>(sql`
      select contact from campaign_recipients where campaign_id = ${id} and position = 1`)
    await addSuppression(place.service.app, 'system', {
      workspace_id: tenant.workspace_id,
      username: contact.slice('username:'.length),
    })
    for (const account_id of pool) open(account_id)
    await until('every recipient is final or waits', hangMs, async () =>
      (await statuses(id)).every((status) => status === 'waiting' || status === 'suppressed'),
    )
    expect(await statuses(id)).toEqual(['suppressed', 'waiting', 'waiting', 'waiting'])
    expect(sent()).toBe(people)
    const { recorded } = await place.db.one<{ recorded: number }>(sql`
      select count(*)::int as recorded from operations where campaign_id = ${id} and state = 'completed'`)
    expect(recorded).toBe(people)
  })

  test('an account that never connects blocks the untaken contacts of its pools, and nothing else, until an operator disables it', async () => {
    const { id, pool, people } = await forgotten(3)
    const [away = '', ...others] = pool
    const free = await place.connected(tenant, 'Free')
    const elsewhere = await campaign([free], 2)
    await control(elsewhere, 'resume')
    for (const account_id of others) open(account_id)
    await untilWritten(elsewhere)
    await untilOnlyWaitsFor({ account_id: away, workspace_id: tenant.workspace_id, status: 'READY' })
    await aWhile()
    expect(sent()).toBe(people + 2)
    expect(new Set(await blockedBy(id))).toEqual(new Set(['account_not_ready']))
    expect((await readDispatch(place.db)).dispatch).toBe(true)
    await setAccountEnabled(place.service.app, 'system', { id: away, enabled: false })
    await untilWritten(id)
    expect((await readDispatch(place.db)).unconfirmed).toEqual([])
    // What the two others had sent is proven; what only the third one knows is the operator's decision.
    const twice = received().filter((count) => count > 1).length
    expect(twice).toBe(2)
  })

  test('an account that was banned in the meantime also blocks them', async () => {
    const { id, pool, people } = await forgotten(3)
    const [banned = ''] = pool
    // Until it is cleared: an attempt to connect that the worker gave up meets it too.
    place.fault({ on: 'connect', fault: 'refuse', account_id: banned, times: 0 })
    for (const account_id of pool) open(account_id)
    await place.untilStatus(banned, 'NEEDS_LOGIN')
    const { workspace_id } = tenant
    await untilOnlyWaitsFor({ account_id: banned, workspace_id, status: 'NEEDS_LOGIN' })
    await aWhile()
    expect(sent()).toBe(people)
    place.sandbox.world.clearFaults()
    await setAccountEnabled(place.service.app, 'system', { id: banned, enabled: true })
    await untilWritten(id)
    expect(received()).toEqual(Array.from({ length: people }, () => 1))
  })
})

test('an account that was not READY when the run began blocks nothing', async () => {
  await start(await newDirectory())
  const [lost = '', one = ''] = await connected(2)
  const id = await campaign([lost, one], 2)
  await stop()
  await place.db.run(sql`update accounts set status = 'NEEDS_LOGIN' where id = ${lost}`)
  await restartServer(place.db)
  await start(await newDirectory())
  await control(id, 'resume')
  await untilWritten(id)
})

test('a lost account keeps its contacts in a new run until an operator disables it', async () => {
  const directory = await newDirectory()
  await start(directory)
  const [lost = '', other = ''] = await connected(2)
  const id = await campaign([lost, other], 1)
  await place.db.run(sql`update campaign_recipients set account_id = ${lost} where campaign_id = ${id}`)
  await stop()
  await restartServer(place.db)
  place.fault({ on: 'connect', fault: 'refuse', account_id: lost })
  await start(directory)
  await place.untilStatus(lost, 'NEEDS_LOGIN')
  await control(id, 'resume')
  await aWhile()
  expect([await statuses(id), sent()]).toEqual([['queued'], 0])
  const { account_id } = await place.db.one<{ account_id: string | null }>(sql`
    select account_id from campaign_recipients where campaign_id = ${id}`)
  expect(account_id).toBe(lost)
  expect((await readDispatch(place.db)).unconfirmed).toMatchObject([{ account_id: lost }])
  const { stdout } = await run(place.service, ['doctor'])
  expect(stdout).toMatch(new RegExp(`have not connected since PostgreSQL started: ${lost}\\.`))
  await setAccountEnabled(place.service.app, 'system', { id: lost, enabled: false })
  await untilWritten(id)
  expect(sent()).toBe(1)
})

test('a lost account also keeps its contacts in a new run that no worker has noticed yet', async () => {
  await start(await newDirectory())
  const [lost = '', other = ''] = await connected(2)
  const id = await campaign([lost, other], 1)
  await place.db.run(sql`update campaign_recipients set account_id = ${lost} where campaign_id = ${id}`)
  await stop()
  await place.db.run(sql`update accounts set status = 'NEEDS_LOGIN' where id = ${lost}`)
  await control(id, 'resume')
  await restartServer(place.db)
  // A process without a platform takes these steps too, and has no heartbeat that would notice the run.
  const { app } = place.service
  const campaigns = loops.flatMap((make) => make(app)).find(({ name }) => name === 'campaigns')
  await campaigns?.step(app, new AbortController().signal)
  const { account_id } = await place.db.one<{ account_id: string | null }>(sql`
    select account_id from campaign_recipients where campaign_id = ${id}`)
  expect(account_id).toBe(lost)
})

test('an ordinary restart of PostgreSQL blocks untaken contacts for ten seconds at most', timed, async () => {
  await start(await newDirectory())
  const pool = await connected(3)
  const id = await campaign(pool, 6)
  await aWhile()
  const startedAt = performance.now()
  await restartServer(place.db)
  await control(id, 'resume')
  await untilWritten(id)
  expect(performance.now() - startedAt).toBeLessThan(10_000)
  expect((await readDispatch(place.db)).dispatch).toBe(true)
})
