/**
 * Adding a slice, shown: one that no file of src/ knows joins a running service by the lists that main passes in. Its
 * table, routes, operation on the platform, loop and verb all work as if they were ours.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { copyDatabase, type TestDatabase } from '../harness/database.ts'
import { type Exit, endProcesses, hangMs, type Parley, spawnParley, until } from '../harness/process.ts'

const main = join(import.meta.dirname, 'main.ts')
let database: TestDatabase
let directory: string
let parley: Parley
let address: string
let admin: string
let key: string
let account_id: string

beforeAll(async () => {
  database = await copyDatabase()
  directory = await mkdtemp(join(tmpdir(), 'parley-toy-'))
  parley = spawnParley(['start', '--port', '0', '--data-dir', directory], environment(), main)
  address = await parley.ready()
  admin = await parley.admin()
  const workspace = await made(['workspace', 'create', 'Toys'])
  const user = await made(['user', 'create', 'toy@acme.example', '--workspace', workspace.id])
  const scopes = ['--name', 'toy', '--scopes', 'read,write,send']
  key = (await made(['key', 'create', '--workspace', workspace.id, '--user', user.id, ...scopes])).key ?? ''
  await made(['gate', 'enable', 'rest'])
  account_id = (await made(['account', 'create', '--workspace', workspace.id, '--name', 'Sales'])).id
})
afterAll(async () => {
  parley.signal('SIGTERM')
  await parley.exit()
  await endProcesses()
  await database.drop()
  await rm(directory, { recursive: true, force: true })
})

function environment() {
  return {
    DATABASE_URL: database.url,
    PARLEY_SECRET: 'a secret for tests that is long enough',
    PARLEY_CLOCK: 'manual',
    PARLEY_SANDBOX_CONTROL: 'on',
  }
}

/** A verb of the toy's own command line. */
function runToy(args: readonly string[]): Promise<Exit> {
  return spawnParley([...args, '--json', '--data-dir', directory], environment(), main).exit()
}

async function made(args: readonly string[]): Promise<{ id: string; key?: string; ok?: boolean }> {
  const { stdout, stderr } = await runToy(args)
  if (!stdout) throw new Error(stderr)
  return JSON.parse(stdout)
}

async function call(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
  const response = await fetch(`${path.startsWith('/sandbox') ? admin : address}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Body }
}

interface Body {
  readonly code: string
  readonly reminder: Reminder
  readonly reminders: Reminder[]
  readonly capabilities: Record<string, boolean>
  readonly paths: Record<string, unknown>
  readonly person_id: number
  readonly entries: { readonly text: string }[]
}

interface Reminder {
  readonly id: string
  readonly note: string
  readonly due_at: string
  readonly told_at: string
}

const reminders = async () => (await call('GET', '/api/v1/toy/reminders')).body.reminders
const keyed = (name: string) => ({ 'idempotency-key': name })

test('its routes are listed, checked and answered: a read, and a change under its key', async () => {
  await until(
    'the gate is open',
    5_000,
    async () => (await call('GET', '/api/v1/toy/reminders')).status === 200,
  )
  const asked = { note: 'Call back', in_seconds: 3_600 }
  const first = await call('POST', '/api/v1/toy/reminders', asked, keyed('a'))
  const again = await call('POST', '/api/v1/toy/reminders', asked, keyed('a'))
  expect([first.status, again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 200, 'true'])
  expect(await reminders()).toEqual([first.body.reminder])
  expect((await call('POST', '/api/v1/toy/reminders', asked)).body.code).toBe('idempotency_key_required')
  const { capabilities } = (await call('GET', '/api/v1/me')).body
  expect(capabilities).toMatchObject({ toy_list_reminders: true, toy_add_reminder: true, toy_wave: true })
  const { paths } = (await call('GET', '/api/v1/openapi.json')).body
  expect(Object.keys(paths)).toContain('/toy/{chat_id}/wave')
})

test('its loop acts at its due time, and the clock moves from one due time to the next', async () => {
  await call('POST', '/api/v1/toy/reminders', { note: 'Later', in_seconds: 7_200 }, keyed('b'))
  const advance = await call('POST', '/sandbox/v1/clock/advance', { seconds: 3 * 3_600 })
  expect(advance.status).toBe(200)
  const told = await reminders()
  expect(
    told.map(({ note, due_at, told_at }) => [note, Date.parse(told_at) - Date.parse(due_at) <= 1]),
  ).toEqual([
    ['Call back', true],
    ['Later', true],
  ])
})

test('its operation reaches the platform once, and a repeat returns the same', async () => {
  const { person_id } = (await call('POST', '/sandbox/v1/people', { name: 'Mara', username: 'mara_toy' }))
    .body
  await until('the account is connected', hangMs, async () => {
    const sent = await call('POST', '/sandbox/v1/messages', { account_id, person_id, text: 'Hello' })
    return sent.status === 200
  })
  const path = `/api/v1/toy/platform:chat:${person_id}/wave`
  const first = await until('the chat is known', hangMs, async () => {
    const asked = await call('POST', path, { account_id, times: 3 }, keyed('wave'))
    return asked.status === 200 && asked
  })
  const again = await call('POST', path, { account_id, times: 3 }, keyed('wave'))
  expect([again.status, again.body]).toEqual([200, first.body])
  const { entries } = (await call('GET', '/sandbox/v1/journal')).body
  expect(entries.filter(({ text }) => text === '👋👋👋')).toHaveLength(1)
})

test("its operator has a verb, which refuses with the same error's sentence", async () => {
  const [first] = await reminders()
  if (!first) throw new Error('There is no reminder.')
  expect(JSON.parse((await runToy(['reminder', 'forget', first.id])).stdout)).toEqual({ id: first.id })
  const { code, stderr } = await runToy(['reminder', 'forget', 'nothing'])
  expect([code, stderr]).toEqual([1, 'There is no reminder "nothing".\n'])
  expect(await made(['audit', 'verify'])).toMatchObject({ ok: true })
})
