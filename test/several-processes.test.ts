/**
 * The several processes of docs/scaling.md, typed as they are there, and what a supervisor and a load balancer see of
 * one.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noWorker } from '../src/capabilities/accounts/accounts.ts'
import { openDatabase } from '../src/db/pool.ts'
import { version } from '../src/lib/version.ts'
import { copyDatabase, type TestDatabase } from './harness/database.ts'
import { runVerb } from './harness/operator.ts'
import { blocksOf, commandsOf, wordsOf } from './harness/pages.ts'
import { endProcesses, freePort, hangMs, type Parley, spawnParley, until } from './harness/process.ts'
import { testSecret } from './harness/worker.ts'

let directory: string
let database: TestDatabase
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-several-'))
  database = await copyDatabase()
})
afterAll(async () => {
  await endProcesses()
  await database.drop()
  await rm(directory, { recursive: true, force: true })
})

/** The request that a curl line would send. */
function ask([, ...words]: readonly string[]): Promise<Response> {
  const url = words.find((word) => word.startsWith('http')) ?? ''
  const after = (flag: string) => words.filter((_, at) => words[at - 1] === flag)
  const headers = after('-H').map((header) => header.split(/: (.*)/s).slice(0, 2) as [string, string])
  const [body] = after('-d')
  return fetch(url, { headers, ...(body !== undefined && { method: 'POST', body }) })
}

test('docs/scaling.md: several processes send after its own lines', async () => {
  const commands = blocksOf('docs/scaling.md')
    .filter(({ language, section }) => language === 'sh' && section === 'Start the processes')
    .flatMap(commandsOf)
  const env: Record<string, string> = {}
  const own: Readonly<Record<string, string>> = { DATABASE_URL: database.url, PARLEY_SECRET: testSecret }
  const meant = new Map<string, string>()
  for (const port of ['8080', '8081', '8082', '8090']) meant.set(port, await freePort())
  const fill = (text: string) =>
    text.replaceAll(/\b(80[89]\d|[A-Z]+_(?:ID|KEY))\b/g, (word) => meant.get(word) ?? word)
  const flags = (args: readonly string[]) => [
    ...args,
    '--data-dir',
    join(directory, args[0] === 'sandbox' ? 'sandbox' : 'data'),
  ]
  let sent: unknown
  for (const command of commands) {
    const [, name, value] = /^export (\w+)=(.*)$/.exec(command) ?? []
    const words = wordsOf(fill(command.replace(/ &$/, '')))
    if (name) env[name] = own[name] ?? fill(value ?? '')
    else if (command.endsWith(' &')) await spawnParley(flags(words.slice(1)), env).ready()
    else if (words[0] === 'bin/parley.js') await note(words)
    else if (words[0] === 'curl') sent = await accepted(words)
    // The next lines wait for the state, not for the time.
    else if (words[0] === 'sleep') continue
    else throw new Error(`This test does not know what to do with ${command}.`)
  }
  expect(commands.length).toBeGreaterThan(12)
  expect(sent).toMatchObject({ ok: true, message_id: expect.any(String) })

  /** Runs a verb, and keeps the id or key that it prints for the lines below. */
  async function note(words: readonly string[]): Promise<void> {
    const { code, stdout, stderr } = await runVerb(flags(words.slice(1)), env)
    expect([words, code, stderr]).toEqual([words, 0, ''])
    const [, id] = /^id +(\S+)$/m.exec(stdout) ?? []
    const [, key] = /^key +(\S+)$/m.exec(stdout) ?? []
    if (id) meant.set(`${words[1]?.toUpperCase()}_ID`, id)
    if (key) meant.set('API_KEY', key)
    if (words[1] === 'account') expect(stdout).not.toContain(noWorker)
  }

  /** The account connects within moments, as the page says. */
  async function accepted(words: readonly string[]): Promise<unknown> {
    const body = await until(`${words.join(' ')} succeeds`, hangMs, async () => {
      const response = await ask(words)
      const text = await response.text()
      if (response.status !== 200 && response.status !== 403 && response.status !== 503) throw new Error(text)
      return response.status === 200 && JSON.parse(text)
    })
    if (body.chat) meant.set('CHAT_ID', body.chat.id)
    return body
  }
}, 120_000)

describe('a process', () => {
  let own: TestDatabase
  beforeAll(async () => {
    own = await copyDatabase()
  })
  afterAll(async () => {
    await endProcesses()
    await own.drop()
  })
  const env = () => ({ DATABASE_URL: own.url, PARLEY_SECRET: testSecret })
  const run = (role: string, more: Readonly<Record<string, string>> = {}): Parley =>
    spawnParley([role, '--port', '0', '--data-dir', join(directory, 'own')], { ...env(), ...more })

  test('names the version in the first line of its log', async () => {
    const parley = run('serve')
    await parley.ready()
    const [first = ''] = parley.stdout().split('\n')
    expect(JSON.parse(first)).toMatchObject({ msg: 'starting', version, role: 'serve' })
    parley.signal('SIGINT')
    expect(await parley.exit()).toMatchObject({ code: 0 })
  })

  test('503 from /readyz while it drains, and requests are still answered', async () => {
    const parley = run('serve', { PARLEY_DRAIN_SECONDS: '5' })
    const url = await parley.ready()
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    parley.signal('SIGTERM')
    const ready = await until('it says that it is about to stop', hangMs, async () => {
      const response = await fetch(`${url}/readyz`)
      return response.status === 503 && response.json()
    })
    expect(ready).toMatchObject({ checks: { process: 'stopping', database: 'ok' } })
    // On a new connection, as a load balancer that has not noticed yet would open.
    const me = await fetch(`${url}/api/v1/me`, { headers: { connection: 'close' } })
    expect(me.status).toBe(503)
    expect(await me.json()).toMatchObject({ code: 'rest_disabled' })
    expect(await parley.exit()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"drain_seconds":5'),
    })
  })

  test('creating an account that no worker could drive says so', async () => {
    const made = async (...args: string[]) => {
      const { stdout } = await runVerb([...args, '--json'], env())
      return JSON.parse(stdout)
    }
    const { id } = await made('workspace', 'create', 'Lonely')
    expect(await made('account', 'create', '--workspace', id, '--name', 'Sales')).toMatchObject({
      status: 'CONNECTING',
      status_reason: noWorker,
    })
  })

  test('warns if its secret is not the one that the database was set up with', async () => {
    await runVerb(['workspace', 'create', 'First'], env())
    const other = { PARLEY_SECRET: `${testSecret}, but another` }
    const warned = async (more: Readonly<Record<string, string>>) => {
      const parley = run('serve', more)
      await parley.ready()
      parley.signal('SIGINT')
      return (await parley.exit()).stdout.includes('PARLEY_SECRET is not the secret')
    }
    expect([await warned({}), await warned(other)]).toEqual([false, true])
    // A missing table switches off its own feature only: either of two knows the secret.
    const db = openDatabase({ connectionString: own.url }, { pool_size: 1 })
    await db.pool.query('alter table audit rename to audit_away')
    expect([await warned({}), await warned(other)]).toEqual([false, true])
    await db.pool.query('alter table audit_away rename to audit')
    await db.close()
    const { code, stderr } = await runVerb(['audit', 'verify'], { ...env(), ...other })
    const sentence =
      'The audit log is invalid at row 1: row 1 was changed, or PARLEY_SECRET is not the secret that created it.\n'
    expect([code, stderr]).toEqual([1, sentence])
  })
})
