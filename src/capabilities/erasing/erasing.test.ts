/** Erasing a person: what goes, what stays, and what does not bring them back. */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { until } from '../../../test/harness/process.ts'
import type { Tenant } from '../../../test/harness/service.ts'
import { openWorkplace, type Workplace } from '../../../test/harness/worker.ts'
import { sql } from '../../db/sql.ts'
import type { Running } from '../../worker/run-loops.ts'
import { verifyAudit } from '../audit/audit.ts'
import { addSuppression } from '../suppressions/suppressions.ts'
import { eraseNext, previewErasure, requestErasure } from './erasing.ts'

let place: Workplace
let tenant: Tenant
let account_id: string
let made = 0
let running: Running

beforeAll(async () => {
  place = await openWorkplace()
  await place.service.open('all', 'extended')
  running = await place.work()
})
afterAll(() => place.close())

interface Someone {
  readonly number: string
  readonly person_id: string
  readonly username: string
}

let mara: Someone

beforeEach(async () => {
  tenant = await place.service.tenant()
  await place.service.allow(tenant)
  account_id = await place.connected(tenant)
  mara = await someone()
})

/** A person who has written once, by every name that only they have. */
async function someone(): Promise<Someone> {
  const word = `canary${++made}`
  const username = `${word}_user`
  const person = place.sandbox.world.addPerson({
    name: `${word} Name`,
    username,
    phone: `+4930555${1000 + made}`,
  })
  place.write(account_id, person.person_id, `${word} hello`)
  const number = String(person.person_id)
  const row = await until('the person is known', 30_000, () =>
    place.db.maybe<{ id: string }>(sql`
      select id from people where workspace_id = ${tenant.workspace_id} and number = ${number}`),
  )
  await until('their message is stored', 30_000, () =>
    place.db.maybe(sql`select 1 from messages where account_id = ${account_id} and chat_id = ${number}`),
  )
  return { number, person_id: row.id, username }
}

const wordOf = ({ username }: Someone) => username.replace('_user', '')
const chatOf = ({ number }: Someone) => `platform:chat:${number}`
const post = (path: string, body: object, key: string = randomUUID()) =>
  place.service.post(path, { key: tenant.key, body, headers: { 'idempotency-key': key } })
const send = (to: Someone, text: string, key?: string) =>
  post('/messages', { account_id, chat_id: chatOf(to), text }, key)
const sentTexts = () =>
  place.sandbox.world.state.journal
    .filter((entry) => entry.kind === 'send' && entry.account_id === account_id)
    .map(({ text }) => text)

async function request({ person_id }: Someone, contact_allowed = false): Promise<string> {
  const { app } = place.service
  const { workspace_id } = tenant
  const { preview } = await previewErasure(app.db, workspace_id, person_id)
  const { id } = await app.db.transaction((tx) =>
    requestErasure(app, tx, 'cli:ana', { workspace_id, person_id, preview, contact_allowed }),
  )
  return id
}

const isDone = (id: string) =>
  until('the erasure is done', 60_000, () =>
    place.db.maybe(sql`select 1 from erasures where id = ${id} and done_at is not null`),
  )

const stepOf = async (id: string) =>
  (await place.db.one<{ step: string }>(sql`select step from erasures where id = ${id}`)).step

const erase = async (person: Someone, contact_allowed = false) =>
  isDone(await request(person, contact_allowed))

/** The tables that have a row with this word, in text or in bytes. */
async function tablesWith(word: string): Promise<string[]> {
  const tables = await place.db.rows<{ name: string }>(sql`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' order by 1`)
  const found: string[] = []
  const hex = Buffer.from(word).toString('hex')
  for (const { name } of tables) {
    const { rows } = await place.db.pool.query(
      `select 1 from "${name}" t where lower(t::text) like $1 or t::text like $2 limit 1`,
      [`%${word}%`, `%${hex}%`],
    )
    if (rows.length > 0) found.push(name)
  }
  return found
}

const stored = ({ number }: Someone) =>
  place.db.rows<{ text: string; deleted: boolean; random: boolean }>(sql`
    select text, deleted_at is not null as deleted, random_id is not null as random from messages
    where account_id = ${account_id} and chat_id = ${number} order by id`)

describe('an erasure', () => {
  test('leaves no name and no text in any table, and what is counted, proven and repeated stays', async () => {
    const word = wordOf(mara)
    const first = await send(mara, `${word} answer`, `first-${word.length}-${made}`)
    expect(first.status).toBe(200)
    const campaign = await post('/campaigns', {
      account_id,
      message_text: 'Hello',
      contacts: [{ identifier: `@${mara.username}`, name: `${word} Name` }],
    })
    const started = await post('/chats/start', { account_id, identifier: `@${mara.username}` })
    expect(started.status).toBe(200)
    await place.db.run(sql`
      insert into notes (id, workspace_id, account_id, chat_id, author_id, text)
      values (gen_random_uuid(), ${tenant.workspace_id}, ${account_id}, ${mara.number}, ${tenant.user_id}, ${`${word} note`})`)
    await addSuppression(place.service.app, 'cli:ana', {
      workspace_id: tenant.workspace_id,
      username: mara.username,
    })
    await place.events(tenant.workspace_id)
    expect(campaign.status).toBeLessThan(500)
    const before = await tablesWith(word)
    expect(before).toEqual(
      expect.arrayContaining([
        'chats',
        'contacts',
        'events',
        'messages',
        'notes',
        'operations',
        'person_names',
        'suppressions',
      ]),
    )
    await erase(mara)
    expect(await tablesWith(word)).toEqual([])
    const again = await send(mara, `${word} answer`, `first-${word.length}-${made}`)
    expect([again.status, again.body]).toEqual([200, first.body])
    // A slow machine may have sent the campaign's message before.
    expect(sentTexts().filter((text) => text === `${word} answer`)).toHaveLength(1)
    const rows = await stored(mara)
    expect(rows.map(({ text, deleted }) => [text, deleted])).toEqual(rows.map(() => ['', true]))
    expect(rows.some(({ random }) => random)).toBe(true)
    expect((await verifyAudit(place.service.app)).ok).toBe(true)
  })

  test('404 and 403: their chat counts as not in the account, and nothing is sent to them by any name', async () => {
    await erase(mara)
    expect(await send(mara, 'hello')).toMatchObject({ status: 403, body: { code: 'chat_unavailable' } })
    // The platform is not asked who has the name.
    for (const on of ['resolve', 'ask'] as const)
      place.fault({ on, fault: 'unavailable', times: 0, account_id })
    const started = await post('/chats/start', { account_id, identifier: `@${mara.username}` })
    place.sandbox.world.clearFaults()
    expect([started.status, started.body.code]).toEqual([409, 'identity_suppressed'])
    expect(started.body.error).toMatch(/was erased/)
    const campaign = await post('/campaigns', {
      account_id,
      message_text: 'Hello',
      contacts: [{ identifier: `@${mara.username}` }],
    })
    expect(campaign.body).toMatchObject({ code: 'suppressed_recipient' })
    expect(sentTexts()).toEqual([])
  })

  test('a name that somebody else has by now does not refuse them', async () => {
    await erase(mara)
    place.sandbox.world.changePerson(Number(mara.number), { username: null })
    const { person_id } = place.sandbox.world.addPerson({ name: 'Other', username: mara.username })
    place.write(account_id, person_id, 'hi')
    await until('the other is known', 30_000, () =>
      place.db.maybe(sql`
        select 1 from person_names where workspace_id = ${tenant.workspace_id} and value = ${mara.username}`),
    )
    expect((await post('/chats/start', { account_id, identifier: `@${mara.username}` })).status).toBe(200)
  })

  test('a new sync from the platform brings nothing back; what they write again is stored, from there on', async () => {
    const word = wordOf(mara)
    await send(mara, `${word} ours`)
    await erase(mara)
    await place.db.run(sql`
      update account_sync set phase = 'chats', cursor = null, chats_total = 0, chats_synced = 0 where account_id = ${account_id}`)
    await running.stop()
    running = await place.work()
    await until('the account is synced again', 60_000, () =>
      place.db.maybe(sql`select 1 from account_sync where account_id = ${account_id} and phase = 'done'`),
    )
    expect(await tablesWith(word)).toEqual([])
    place.write(account_id, Number(mara.number), 'it is me again')
    await until('what they write again is stored', 30_000, () =>
      place.db.maybe(sql`
        select 1 from messages where account_id = ${account_id} and chat_id = ${mara.number} and text = 'it is me again'`),
    )
    expect((await stored(mara)).filter(({ text }) => text !== '')).toHaveLength(1)
    expect((await send(mara, 'welcome')).status).toBe(200)
  })

  test('goes on where a killed worker left it: another one finishes, and no batch counts before its commit', async () => {
    const word = wordOf(mara)
    const { app } = place.service
    await running.stop()
    const id = await request(mara)
    expect(await eraseNext(app, new Set())).toBe(false)
    expect(await stepOf(id)).toBe('begin')
    expect(await eraseNext(app, new Set([id]))).toBe(true)
    expect(await stepOf(id)).toBe('messages')
    await app.db.run(sql`
      create function kill_once() returns trigger language plpgsql as $$ begin raise exception 'killed'; end $$`)
    await app.db.run(sql`
      create trigger kill_once before update of text on messages for each row execute function kill_once()`)
    await expect(eraseNext(app, new Set([id]))).rejects.toThrow('killed')
    await app.db.run(sql`drop trigger kill_once on messages`)
    await app.db.run(sql`drop function kill_once()`)
    expect(await stepOf(id)).toBe('messages')
    expect((await stored(mara)).some(({ text }) => text.includes(word))).toBe(true)
    running = await place.work()
    await isDone(id)
    expect(await tablesWith(word)).toEqual([])
  })

  test('waits until the search has taken their words out of its lists', async () => {
    const { app } = place.service
    await running.stop()
    const id = await request(mara)
    while (await eraseNext(app, new Set([id])));
    expect(await stepOf(id)).toBe('words')
    running = await place.work()
    await isDone(id)
  })

  test('keeps whom an entry by their name stops besides, and keeps other people', async () => {
    const other = await someone()
    const { workspace_id } = tenant
    await addSuppression(place.service.app, 'cli:ana', { workspace_id, username: mara.username })
    await place.db.run(sql`
      insert into person_names (person_id, kind, value, account_id, workspace_id, platform, last_seen_at)
      values (${other.person_id}, 'username', ${mara.username}, ${account_id}, ${workspace_id}, 'sandbox', domain_now())`)
    await erase(mara)
    const listed = await place.db.rows<{ value: string }>(sql`
      select value from suppressions where workspace_id = ${workspace_id}`)
    expect(listed.map(({ value }) => value).toSorted()).toEqual([mara.number, other.number].toSorted())
    expect(await tablesWith(wordOf(other))).toEqual(expect.arrayContaining(['chats', 'contacts', 'messages']))
  })

  test('with contact allowed, neither the list nor a tombstone refuses them', async () => {
    await erase(mara, true)
    expect((await send(mara, 'hello')).body).toMatchObject({ code: 'chat_unavailable' })
    const started = await post('/chats/start', { account_id, identifier: `@${mara.username}` })
    expect(started.status).toBe(200)
    expect((await send(mara, 'hello again')).status).toBe(200)
  })
})

describe('an older copy of the database', () => {
  test('learns the erasure from the disk before anything is sent, and loses the person again', async () => {
    const word = wordOf(mara)
    const { app } = place.service
    await erase(mara)
    const list = await readFile(join(place.directory, 'ledger', 'erasures.jsonl'), 'utf8')
    expect(list).toContain(mara.person_id)
    expect(list).not.toContain(word)
    await running.stop()
    // As it was before.
    await app.db.transaction(async (tx) => {
      await tx.run(sql`delete from erasures where person_id = ${mara.person_id}`)
      await tx.run(sql`delete from tombstones where workspace_id = ${tenant.workspace_id}`)
      await tx.run(sql`delete from erased_chats where workspace_id = ${tenant.workspace_id}`)
      await tx.run(sql`delete from suppressions where workspace_id = ${tenant.workspace_id}`)
      await tx.run(sql`update people set erased_at = null where id = ${mara.person_id}`)
      await tx.run(sql`
        insert into contacts (account_id, provider_id, workspace_id, name, username)
        values (${account_id}, ${mara.number}, ${tenant.workspace_id}, ${`${word} Name`}, ${mara.username})`)
      await tx.run(sql`update instance set restore_counter = restore_counter - 1`)
    })
    expect(await tablesWith(word)).not.toEqual([])
    running = await place.work()
    const listed = await app.db.rows(sql`
      select value from suppressions where workspace_id = ${tenant.workspace_id}`)
    expect(listed).toEqual([{ value: mara.number }])
    await until('the erasure is repeated', 60_000, () =>
      place.db.maybe(sql`select 1 from erasures where person_id = ${mara.person_id} and done_at is not null`),
    )
    expect(await tablesWith(word)).toEqual([])
    await app.settings.refresh()
  })
})

test('409 for a preview that is out of date', async () => {
  const { app } = place.service
  const { workspace_id } = tenant
  const { person_id } = mara
  const { preview } = await previewErasure(app.db, workspace_id, person_id)
  place.write(account_id, Number(mara.number), 'one more')
  await place.untilStored(account_id, 2)
  await expect(
    app.db.transaction((tx) =>
      requestErasure(app, tx, 'cli:ana', { workspace_id, person_id, preview, contact_allowed: false }),
    ),
  ).rejects.toMatchObject({ code: 'preview_outdated' })
})

test('404 for a person of another workspace', async () => {
  const other = await place.service.tenant()
  await expect(previewErasure(place.db, other.workspace_id, mara.person_id)).rejects.toMatchObject({
    code: 'not_found',
  })
})
