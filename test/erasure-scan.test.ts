/**
 * Every byte that a stopped service leaves on its disk after it has erased a person: no name and no text is among them. The person has
 * names, texts both ways, a file, a note, a column value, a campaign, an approval, a webhook's body and a stored answer.
 */
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openEmbedded } from '../src/db/embedded.ts'
import { layOut, runAlone } from '../src/db/embedded-cluster.ts'
import { openDatabase } from '../src/db/pool.ts'
import { type Database, sql } from '../src/db/sql.ts'
import { exampleAccountId as account_id } from '../src/lib/examples.ts'
import { runVerb } from './harness/operator.ts'
import { endProcesses, hangMs, type Parley, runParley, spawnParley, until } from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'
import { Receiver } from './harness/webhooks.ts'
import { askAddress } from './platform/sandbox-fixture.ts'

/** In every name and text of the person, and in nothing else. */
const word = 'qzxcanary'
const username = `${word}_user`
const phone = '+4915599887766'

let directory: string
let data_dir: string
let receiver: Receiver

beforeAll(async () => {
  directory = await makeScratch('parley-erasure-')
  data_dir = join(directory, 'data')
  receiver = await Receiver.open()
})
afterAll(async () => {
  await endProcesses()
  await receiver.close()
  await rm(directory, { recursive: true, force: true })
})

const start = () =>
  spawnParley(['start', '--port', '0', '--data-dir', data_dir], { PARLEY_WEBHOOK_ALLOW: '127.0.0.1' })

async function inspect<T>(work: (db: Database) => Promise<T>): Promise<T> {
  const embedded = await openEmbedded({ data_dir, claim: 'command' })
  const db = openDatabase(embedded.connection, { pool_size: 1 })
  try {
    return await work(db)
  } finally {
    await db.close()
    await embedded.close()
  }
}

async function json<T>(...args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await runVerb([...args, '--data-dir', data_dir, '--json'])
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as T
}

let asked = 0
async function call(base: string, key: string, path: string, body?: object, once = `ask-${++asked}`) {
  const response = await fetch(`${base}/api/v1${path}`, {
    method: body ? 'POST' : 'GET',
    headers: {
      authorization: `Bearer ${key}`,
      ...(body && { 'content-type': 'application/json', 'idempotency-key': once }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

async function requestApproval(base: string, key: string, chat_id: string): Promise<void> {
  const tool = { name: 'service_send_message', arguments: { account_id, chat_id, text: `${word} approve` } }
  const response = await fetch(`${base}/api/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: tool }),
  })
  expect(await response.text()).toContain('request_id')
}

interface Made {
  readonly key: string
  readonly person_id: string
  readonly workspace_id: string
  readonly chat_id: string
}

/** Whatever can be stored about a person. */
async function makeCanary(service: Parley): Promise<Made> {
  const base = await service.ready()
  const platform = askAddress(await service.admin())
  const { workspace_id, user_id, column_id } = await inspect((db) =>
    db.one<{ workspace_id: string; user_id: string; column_id: string }>(sql`
      select m.workspace_id, m.user_id, c.id as column_id
      from memberships m join columns c on c.workspace_id = m.workspace_id and c.type = 'text' limit 1`),
  )
  const scopes = 'read,write,send,campaigns,people,people_erase'
  const made = await json<{ key: string }>(
    ...[
      'key',
      'create',
      '--workspace',
      workspace_id,
      '--user',
      user_id,
      '--name',
      'scan',
      '--scopes',
      scopes,
    ],
  )
  const { key } = made
  const ask = (path: string, body?: object, once?: string) => call(base, key, path, body, once)
  expect((await ask('/webhooks', { url: receiver.url })).status).toBeLessThan(300)
  const { person_id: number } = (await platform('addPerson', {
    ...{ name: `${word} Name`, username, phone, behaviour: 'silent' },
  })) as { person_id: number }
  const file = { file_name: `${word}.txt`, media_type: 'text/plain', size: 9 }
  await platform('writeMessage', { account_id, person_id: number, text: `${word} theirs` })
  await platform('writeMessage', { account_id, person_id: number, text: `${word} file`, file })
  const chat_id = `platform:chat:${number}`
  await until('their messages are stored', hangMs, async () => {
    const { body } = await ask(`/chats/${chat_id}/messages?account_id=${account_id}`)
    return (body.messages as unknown[] | undefined)?.length === 2
  })
  const sent = { account_id, chat_id, text: `${word} ours` }
  expect((await ask('/messages', sent, 'once')).status).toBe(200)
  expect((await ask('/chats/start', { account_id, identifier: `@${username}` })).status).toBe(200)
  const value = [`${word} value`]
  expect((await ask('/columns/set', { account_id, chat_id, column_id, value })).status).toBe(200)
  const campaign = {
    account_id,
    message_text: 'Hello {{name}}',
    contacts: [{ identifier: `@${username}`, name: `${word} Name` }],
  }
  expect((await ask('/campaigns', campaign)).status).toBeLessThan(300)
  await requestApproval(base, key, chat_id)
  await inspect((db) =>
    db.run(sql`
      insert into notes (id, workspace_id, account_id, chat_id, author_id, text)
      values (gen_random_uuid(), ${workspace_id}, ${account_id}, ${number}, ${user_id}, ${`${word} note`})`),
  )
  const { body } = await ask(`/people?q=@${username}`)
  const person_id = (body.people as { id: string }[])[0]?.id ?? ''
  await until('a webhook has got their text', hangMs, () =>
    receiver.received.some((one) => one.body.includes(`${word} theirs`)),
  )
  return { key, person_id, workspace_id, chat_id }
}

/** The files below the directory that have the word or the phone number, compared byte by byte. */
async function filesWith(words: readonly string[], at = data_dir): Promise<string[]> {
  const found: string[] = []
  for (const entry of await readdir(at, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    const bytes = await readFile(path)
    if (words.some((one) => bytes.includes(one))) found.push(path.slice(at.length + 1))
  }
  return found
}

/** Frees what deleted rows leave behind, and the write-ahead log before now, as an operator with the files can. */
async function compact(): Promise<void> {
  const place = await layOut(data_dir)
  await runAlone(place, place.cluster, ['vacuum full analyze', 'alter system set wal_recycle = off'])
  const turn = ['select pg_switch_wal()', 'checkpoint']
  await runAlone(place, place.cluster, [...turn, ...turn, ...turn])
}

/** The platform's own memory is no part of Parley. */
const ofPlatform = (path: string) => path.startsWith('sandbox')

test('after an erasure no byte of the stopped service has a name or a text, also after a restart and in a new backup', async () => {
  const words = [word, phone.slice(1)]
  let service = start()
  const { key, person_id, workspace_id, chat_id } = await makeCanary(service)
  service.signal('SIGTERM')
  await service.exit()
  const before = (await filesWith(words)).filter((path) => !ofPlatform(path))
  expect(before.length).toBeGreaterThan(3)

  service = start()
  await service.ready()
  // From another process.
  const shown = await json<{ preview: string }>('person', 'erase', person_id, '--workspace', workspace_id)
  await json('person', 'erase', person_id, '--workspace', workspace_id, '--preview', shown.preview)
  const base = await service.ready()
  await until('the erasure is done', hangMs, async () => {
    const { body } = await call(base, key, `/people/${person_id}/erasure`)
    return (body.erasure as { state: string }).state === 'done'
  })
  const again = await call(base, key, '/messages', { account_id, chat_id, text: `${word} ours` }, 'once')
  expect(again.status).toBe(200)
  const log = `${service.stdout()}${service.stderr()}`
  service.signal('SIGTERM')
  await service.exit()
  service = start()
  await service.ready()
  service.signal('SIGTERM')
  await service.exit()

  await compact()
  expect((await filesWith(words)).filter((path) => !ofPlatform(path))).toEqual([])
  expect(words.filter((one) => log.includes(one))).toEqual([])
  const backup = join(directory, 'backup')
  expect((await runParley(['backup', backup, '--data-dir', data_dir])).code).toBe(0)
  const content = gunzipSync((await readFile(backup)).subarray(16, -72))
  expect(words.filter((one) => content.includes(one))).toEqual([])
})
