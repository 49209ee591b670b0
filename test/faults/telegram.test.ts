/**
 * Telegram accounts of real workers that are paused, put back in time, copied, or away for too long. A relay between the
 * workers and the data centre counts what they write.
 */
import { cp, rm } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, expect, test } from 'vitest'
import { setAccountEnabled } from '../../src/capabilities/accounts/accounts.ts'
import { openDatabase } from '../../src/db/pool.ts'
import { sql } from '../../src/db/sql.ts'
import { endProcesses, hangMs, spawnParley, until } from '../harness/process.ts'
import { ask, sendOf } from './clients.ts'
import { openPlant, type Plant, type PlantOptions, secret as plantSecret } from './plant.ts'

/** Otherwise an account of a worker that is gone waits for more than a minute. */
const briefTakeover = { marker: 'limit: takeover', replace: 'takeoverSeconds: 2,' }

interface Relayed {
  /** Bytes from the worker. */
  written: number
  open: boolean
}

class Relay {
  readonly connections: Relayed[] = []
  readonly #sockets = new Set<Socket>()
  #server: Server | undefined

  async open(port: number): Promise<number> {
    const server = createServer((client) => {
      const relayed: Relayed = { written: 0, open: true }
      this.connections.push(relayed)
      const centre = connect(port, '127.0.0.1')
      for (const socket of [client, centre]) this.#sockets.add(socket.on('error', () => {}))
      client.on('data', (bytes) => {
        relayed.written += bytes.length
      })
      client.on('close', () => {
        relayed.open = false
        centre.destroy()
      })
      // A worker does not notice when the data centre hangs up, and what it writes is still counted.
      centre.on('close', () => client.resume())
      client.pipe(centre).pipe(client, { end: false })
    }).listen(0, '127.0.0.1')
    this.#server = server
    await new Promise((resolve) => server.once('listening', resolve))
    return (server.address() as { port: number }).port
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server?.close()
  }
}

let plant: Plant | undefined
let relay: Relay
afterEach(async () => {
  await plant?.close()
  plant = undefined
  relay.close()
})
afterAll(() => endProcesses())

async function open(options: PlantOptions): Promise<Plant> {
  relay = new Relay()
  plant = await openPlant({
    ...{ accounts: 1, people: 1, platform: 'telegram', dedupe: 'off', workPatches: [briefTakeover] },
    ...options,
    via: (port) => relay.open(port),
  })
  return plant
}

function message(own: Plant, key: string) {
  const chat_id = `platform:chat:${own.people[0]}`
  return sendOf({ key, account_id: own.accounts[0] ?? '', chat_id, text: `message ${key}` })
}

async function acceptedTexts(own: Plant): Promise<string[]> {
  return (await own.journal()).flatMap(({ text }) => text ?? [])
}

/** The worker that drives the only account. */
async function driver(own: Plant) {
  const { name } = await own.db.one<{ name: string }>(sql`
    select w.name from account_hosts h join faults.workers w on w.id = h.lease_owner`)
  const found = own.works.find((each) => each.name === name)
  if (!found) throw new Error(`No worker is ${name}.`)
  return found
}

test('a worker that is paused past its takeover writes no byte when it wakes', {
  timeout: 180_000,
}, async () => {
  const own = await open({ works: 2 })
  const paused = await driver(own)
  const [session] = relay.connections.filter((each) => each.open)
  paused.pause()
  await until('the lease runs out and the other worker drives it', hangMs, async () => {
    const { live } = await own.db.one<{ live: boolean }>(sql`
      select observed_at is not null and lease_until > clock_timestamp() as live from account_hosts`)
    return live && (await driver(own)) !== paused
  })
  expect((await ask(own, message(own, 'by the other'))).status).toBe(200)
  expect(session?.open).toBe(true)
  const written = session?.written
  paused.resume()
  await until('the paused worker has let go', hangMs, () => session?.open === false)
  expect(session?.written).toBe(written)
  expect((await ask(own, message(own, 'after it'))).status).toBe(200)
  expect(await acceptedTexts(own)).toEqual(['message by the other', 'message after it'])
})

test('a whole installation is put back: what was sent since is proven, not sent', {
  timeout: 180_000,
}, async () => {
  const own = await open({})
  await own.work(0).kill('SIGTERM')
  await own.serve(0).kill('SIGTERM')
  const databaseCopy = join(own.directory, 'copy-of-database')
  const [disk, diskCopy] = [own.work(0).data_dir, join(own.directory, 'copy-of-disk')]
  const start = async () => {
    await own.postgres.start()
    await Promise.all(own.members.map((member) => member.start()))
    await own.expireLeases()
    await own.untilReady()
  }
  await own.postgres.stop()
  await own.postgres.copy(databaseCopy)
  await cp(disk, diskCopy, { recursive: true })
  await start()
  const wanted = message(own, 'sent since')
  expect((await ask(own, wanted)).status).toBe(200)
  for (const member of own.members) await member.kill()
  await own.postgres.stop()
  await own.postgres.restore(databaseCopy)
  await rm(disk, { recursive: true })
  await cp(diskCopy, disk, { recursive: true })
  await start()
  const answer = await until('it is answered', hangMs, async () => {
    const asked = await ask(own, wanted)
    return asked.status === 200 ? asked : undefined
  })
  expect(answer.status).toBe(200)
  expect(await acceptedTexts(own)).toEqual(['message sent since'])
})

test('a copy of the database beside its original opens no connection', { timeout: 180_000 }, async () => {
  const own = await open({})
  await Promise.all(own.members.map((member) => member.kill('SIGTERM')))
  const server = openDatabase(
    { connectionString: own.postgres.url('postgres', { name: 'copier' }) },
    { pool_size: 1 },
  )
  await until('the database is copied', hangMs, async () => {
    // The connections of this test itself.
    await server.pool.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = 'plant'`)
    return server.pool.query('create database copy template plant').then(
      () => true,
      () => false,
    )
  })
  await server.close()
  await Promise.all(own.members.map((member) => member.start()))
  await own.untilReady()
  const connections = relay.connections.length
  const url = own.postgres.url('copy', { name: 'copied' })
  const copied = spawnParley(['work', '--port', '0', '--data-dir', join(own.directory, 'copied')], {
    DATABASE_URL: url,
    PARLEY_SECRET: plantSecret,
    ...own.telegramEnv(),
  })
  await copied.ready()
  const copy = openDatabase({ connectionString: url }, { pool_size: 1 })
  const beats = async () =>
    (await copy.one<{ beats: number }>(sql`select restore_counter::int as beats from instance`)).beats
  await until('the copy is in doubt', hangMs, async () => {
    const doubt = await copy.maybe(sql`select from instance where unconfirmed_since is not null`)
    return doubt !== undefined
  })
  const before = await beats()
  await until(
    'the worker of the copy has beaten three times since',
    hangMs,
    async () => (await beats()) >= before + 3,
  )
  const rows = await copy.rows(sql`select from account_hosts where lease_until > clock_timestamp()`)
  await copy.close()
  expect([rows, relay.connections.length]).toEqual([[], connections])
  copied.signal('SIGTERM')
  await copied.exit()
  expect((await ask(own, message(own, 'by the original'))).status).toBe(200)
})

test.each([
  ['on', 1],
  // mtcute cannot be kept from it: only the platform can know that both carry the same random id.
  ['off', 2],
] as const)(
  'a message that the data centre denies having received, with de-duplication %s: one operation, accepted %i times',
  { timeout: 180_000 },
  async (dedupe, times) => {
    const own = await open({ dedupe })
    await own.fault({ on: 'send', fault: 'resend', account_id: own.accounts[0] })
    const wanted = message(own, 'denied')
    expect((await ask(own, wanted)).status).toBe(200)
    expect(await ask(own, wanted)).toMatchObject({ status: 200, replayed: true })
    const accepted = (await own.journal()).filter(({ kind }) => kind === 'send')
    expect(accepted).toHaveLength(times)
    expect(new Set(accepted.map(({ random_id }) => random_id)).size).toBe(1)
    const operations = await own.operations()
    expect(operations.map(({ state, attempt_no }) => [state, attempt_no])).toEqual([['completed', 1]])
  },
)

test('after too long an absence nothing leaves before an operator enables the account', {
  timeout: 180_000,
}, async () => {
  const own = await open({ keepUpdates: 5 })
  const [account_id = ''] = own.accounts
  await own.work(0).kill()
  for (let n = 0; n < 20; n++) {
    await own.control('POST', '/messages', { account_id, person_id: own.people[0], text: `while away ${n}` })
  }
  await own.work(0).start()
  await own.expireLeases()
  const statusIs = (status: string) =>
    until(`it is ${status}`, hangMs, async () => {
      const row = await own.db.one<{ status: string }>(sql`select status from accounts`)
      return row.status === status
    })
  await statusIs('RESTRICTED')
  expect(await ask(own, message(own, 'too early'))).toMatchObject({ status: 403 })
  await setAccountEnabled(await own.openApp(), 'system', { id: account_id, enabled: true })
  await statusIs('READY')
  await until('what was missed is fetched', hangMs, async () => {
    const { count } = await own.db.one<{ count: number }>(sql`
      select count(*)::int as count from messages where text like 'while away %'`)
    return count === 20
  })
  const asked = await until('it is sent', hangMs, async () => {
    const answer = await ask(own, message(own, 'after enabling'))
    return answer.status === 200 ? answer : undefined
  })
  expect(asked.status).toBe(200)
  expect(await acceptedTexts(own)).toEqual(['message after enabling'])
})
