/**
 * Databases that have lost what was sent. Each case once sent the same key twice; the platform's journal shows
 * whether it still does. The tests delete row by row what a restore would take away, because only that is possible in
 * the middle of a running test.
 */
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { readDispatch, setDispatch } from '../src/capabilities/gates/gates.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { sql } from '../src/db/sql.ts'
import type { Running } from '../src/worker/run-loops.ts'
import { hangMs, until } from './harness/process.ts'
import type { Tenant } from './harness/service.ts'
import { openNeighbour, openWorkplace, type Workplace } from './harness/worker.ts'

let place: Workplace
let tenant: Tenant
let account_id: string
let person_id: number
let worker: Worker
let count = 0

interface Worker {
  readonly app: OpenApp
  readonly running: Running
}

beforeAll(async () => {
  place = await openWorkplace()
  await place.service.open('start_chat')
  tenant = await place.service.tenant()
})
afterAll(async () => {
  await stop()
  await place.close()
})

/** Every case starts with a worker on its own disk, its own account, and sending switched on. */
beforeEach(async () => {
  if (worker) await stop()
  await setDispatch(place.service.app, 'system', true)
  await start()
  account_id = await place.connected(tenant)
  person_id = place.person(`Mara ${++count}`)
  place.write(account_id, person_id, 'hello')
  await place.untilStored(account_id, 1)
})

async function start(directory = place.directory): Promise<void> {
  const app = await openNeighbour(place.service.database.url)
  worker = { app, running: await place.work(app, directory) }
}

async function stop(): Promise<void> {
  await worker.running.stop()
  await worker.app.close()
}

function send(key: string) {
  return place.service.post('/messages', {
    key: tenant.key,
    body: { account_id, chat_id: `platform:chat:${person_id}`, text: key },
    headers: { 'idempotency-key': key },
  })
}

/** Opening a chat leaves nothing that would prove it later. */
function startChat(key: string) {
  return place.service.post('/chats/start', {
    key: tenant.key,
    body: { account_id, identifier: `@${key}` },
    headers: { 'idempotency-key': key },
  })
}

function accepted(kind: 'send' | 'start'): number {
  const own = place.sandbox.world.state.journal.filter((entry) => entry.account_id === account_id)
  return own.filter((entry) => entry.kind === kind).length
}

/** As if the database had been restored to before these operations. */
async function forget(keys: readonly string[]): Promise<void> {
  await place.db.transaction(async (tx) => {
    await tx.run(sql`alter table operations disable trigger operations_guard`)
    await tx.run(sql`delete from operations where idempotency_key = any(${keys})`)
    await tx.run(sql`alter table operations enable trigger operations_guard`)
    await tx.run(sql`delete from messages where account_id = ${account_id} and is_sender`)
    // Otherwise it lists a message that is gone, and storing it again fails until the search has indexed its list.
    await tx.run(sql`delete from search_pending where account_id = ${account_id}`)
  })
}

async function untilLive(): Promise<void> {
  await until('the account is live', hangMs, async () => {
    const row = await place.db.maybe(sql`
      select 1 from account_hosts where account_id = ${account_id} and observed_at is not null`)
    return row !== undefined
  })
  await place.service.settle()
}

test('crash point 17: the whole directory is restored, journals included; what the platform shows is not sent again', async () => {
  await stop()
  const copy = await mkdtemp(join(tmpdir(), 'parley-copy-'))
  await cp(place.directory, copy, { recursive: true })
  const before = await place.db.one<{ restore_counter: string; position: string }>(sql`
    select (select restore_counter from instance), position from account_hosts where account_id = ${account_id}`)
  await start()
  await untilLive()
  expect((await send('seventeen')).status).toBe(200)
  await stop()
  await forget(['seventeen'])
  await place.db.run(sql`update instance set restore_counter = ${before.restore_counter}`)
  await place.db.run(
    sql`update account_hosts set position = ${before.position} where account_id = ${account_id}`,
  )
  await rm(place.directory, { recursive: true })
  await cp(copy, place.directory, { recursive: true })
  await rm(copy, { recursive: true })
  await start()
  await untilLive()
  const again = await send('seventeen')
  expect([again.status, accepted('send')]).toEqual([200, 1])
  const { reconciled } = await place.db.one<{ reconciled: boolean }>(sql`
    select reconciled from operations where idempotency_key = 'seventeen'`)
  expect(reconciled).toBe(true)
})

test('crash point 18: an empty disk came first and an operator switched sending on; the returning journals are put back', async () => {
  place.sandbox.world.addPerson({ name: 'Eighteen', username: 'eighteen' })
  expect((await startChat('eighteen')).status).toBe(200)
  await stop()
  await forget(['eighteen'])
  await place.db.run(sql`
    update instance set restore_counter = restore_counter - 1, restore_counter_at = now() - interval '1 day'`)
  const empty = await mkdtemp(join(tmpdir(), 'parley-empty-'))
  await start(empty)
  expect(await readDispatch(place.db)).toMatchObject({ dispatch: false })
  await setDispatch(place.service.app, 'system', true)
  // Its counter passes the other disk's record: only the generation shows the difference.
  await place.db.run(sql`update instance set restore_counter = restore_counter + 100`)
  await stop()
  await rm(empty, { recursive: true })
  await start()
  await until(
    'sending is off until a person has looked',
    hangMs,
    async () => !(await readDispatch(place.db)).dispatch,
  )
  await setDispatch(place.service.app, 'system', true)
  await untilLive()
  const again = await startChat('eighteen')
  expect([again.status, again.headers.get('idempotent-replayed'), accepted('start')]).toEqual([
    200,
    'true',
    1,
  ])
})

test('crash point 19: putting back fails; nothing crosses until it is complete, whatever an operator does', async () => {
  place.sandbox.world.addPerson({ name: 'Nineteen', username: 'nineteen' })
  expect((await startChat('nineteen')).status).toBe(200)
  await stop()
  await forget(['nineteen'])
  await place.db.run(sql`update instance set restore_counter = restore_counter - 1`)
  await place.db.run(sql`
    create function refuse_restored() returns trigger language plpgsql as $$
    begin
      if new.reason = 'restored' then raise exception 'not now'; end if;
      return new;
    end $$`)
  await place.db.run(sql`
    create trigger refuse_restored before insert or update on operations for each row execute function refuse_restored()`)
  await start()
  expect(await readDispatch(place.db)).toMatchObject({ dispatch: false, owing: [{ id: expect.any(String) }] })
  await setDispatch(place.service.app, 'system', true)
  await untilLive()
  expect((await send('while it owes')).status).toBe(503)
  expect(accepted('send')).toBe(0)
  await place.db.run(sql`drop trigger refuse_restored on operations`)
  await until(
    'all journals are put back',
    hangMs,
    async () => (await readDispatch(place.db)).owing.length === 0,
  )
  await setDispatch(place.service.app, 'system', true)
  const again = await startChat('nineteen')
  expect([again.status, accepted('start')]).toEqual([200, 1])
})

test('crash point 20: commits are lost under a running worker, fewer than a heartbeat sees', async () => {
  place.sandbox.world.addPerson({ name: 'Twenty', username: 'twenty' })
  const { writes } = await place.db.one<{ writes: string }>(
    sql`select writes from account_hosts where account_id = ${account_id}`,
  )
  expect((await startChat('twenty')).status).toBe(200)
  await forget(['twenty'])
  await place.db.run(sql`update account_hosts set writes = ${writes} where account_id = ${account_id}`)
  await startChat('twenty')
  await until('the journals are put back', hangMs, async () => {
    const row = await place.db.maybe<{ state: string }>(
      sql`select state from operations where idempotency_key = 'twenty'`,
    )
    return row?.state === 'completed'
  })
  await setDispatch(place.service.app, 'system', true)
  await untilLive()
  const again = await startChat('twenty')
  expect([again.status, accepted('start')]).toEqual([200, 1])
})

test('a journal has ids of people and no names, and what it brings back is answered with the stored name', async () => {
  const { name, username } = { name: 'Ottilie Vogelsang', username: 'ottilie_v' }
  place.sandbox.world.addPerson({ name, username })
  const ask = () =>
    place.service.post('/chats/start', {
      key: tenant.key,
      body: { account_id, identifier: `@${username}` },
      headers: { 'idempotency-key': 'unnamed' },
    })
  const first = await ask()
  expect(first.status).toBe(200)
  const directory = join(place.directory, 'ledger')
  const files = (await readdir(directory)).filter((file) => file.includes('.jsonl'))
  const texts = await Promise.all(files.map((file) => readFile(join(directory, file), 'utf8')))
  expect(texts.some((text) => text.includes('unnamed'))).toBe(true)
  for (const text of texts) expect(text).not.toMatch(/ottilie|vogelsang/i)
  await stop()
  await forget(['unnamed'])
  await place.db.run(sql`update instance set restore_counter = restore_counter - 1`)
  await start()
  await setDispatch(place.service.app, 'system', true)
  await until('the operation is put back', 30_000, async () => {
    const row = await place.db.maybe<{ state: string }>(
      sql`select state from operations where idempotency_key = 'unnamed'`,
    )
    return row?.state === 'completed'
  })
  const again = await ask()
  expect([again.status, accepted('start')]).toEqual([200, 1])
  expect(again.body).toMatchObject({ chat: { name, username } })
  const chat = await place.db.one(sql`
    select name, username from chats where account_id = ${account_id} and username = ${username}`)
  expect(chat).toEqual({ name, username })
})
