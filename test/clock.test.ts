/**
 * The manual clock: when a call that moves it returns, everything due is done, and the same calls give the same
 * world.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAccount } from '../src/capabilities/accounts/accounts.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { sql } from '../src/db/sql.ts'
import type { Chat, Session, Submission, UpdateBatch } from '../src/platform/port.ts'
import { connectSandbox } from '../src/platform/sandbox/sandbox.ts'
import { copyDatabase, type TestDatabase } from './harness/database.ts'
import { endProcesses, hangMs, spawnParley, until } from './harness/process.ts'
import { openNeighbour, seedTenant, testSecret } from './harness/worker.ts'
import { heldAccount } from './platform/account-store.ts'

const manual = { PARLEY_CLOCK: 'manual', PARLEY_SANDBOX_CONTROL: 'on' }

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-clock-'))
})
afterAll(async () => {
  await endProcesses()
  await rm(directory, { recursive: true, force: true })
})

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
}

async function ask(base: string, path: string, body: unknown): Promise<Answer> {
  const response = await fetch(`${base}/sandbox/v1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

/** A database with one account, and the service or worker that drives it. */
class Scene {
  readonly database: TestDatabase
  readonly app: OpenApp
  readonly account_id: string
  base = ''

  constructor(database: TestDatabase, app: OpenApp, account_id: string) {
    this.database = database
    this.app = app
    this.account_id = account_id
  }

  async start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<void> {
    const { url } = this.database
    const settings = { DATABASE_URL: url, PARLEY_SECRET: testSecret, ...manual, ...env }
    this.base = await spawnParley([...args, '--port', '0', '--admin-port', '0'], settings).admin()
    await until('the account is ready', hangMs, async () => (await this.#status()) === 'READY')
  }

  async #status(): Promise<string> {
    const { account_id } = this
    const row = await this.app.db.one<{ status: string }>(
      sql`select status from accounts where id = ${account_id}`,
    )
    return row.status
  }

  advance(seconds: number): Promise<Answer> {
    return ask(this.base, '/clock/advance', { seconds })
  }

  async now(): Promise<number> {
    const { now } = await this.app.db.one<{ now: Date }>(sql`select domain_now() as now`)
    return now.getTime()
  }

  /** What is stored at this very moment. */
  async deliveredTexts(): Promise<string[]> {
    const rows = await this.app.db.rows<{ text: string }>(sql`
      select m.text from events e
      join messages m on m.account_id = e.data ->> 'account_id' and m.id::text = e.data -> 'message' ->> 'id'
      where e.type = 'message.received' and m.account_id = ${this.account_id} order by e.sequence`)
    return rows.map(({ text }) => text)
  }

  async close(): Promise<void> {
    await this.app.close()
    await this.database.drop()
  }
}

async function makeScene(): Promise<Scene> {
  const database = await copyDatabase()
  const app = await openNeighbour(database.url, manual)
  const { workspace_id } = await seedTenant(app)
  const wanted = { workspace_id, platform: 'sandbox', name: 'Sales' } as const
  return new Scene(database, app, (await createAccount(app, 'system', wanted)).id)
}

describe('POST /sandbox/v1/clock/advance on parley start', () => {
  let scene: Scene
  let person_id: unknown
  beforeAll(async () => {
    scene = await makeScene()
    await scene.start(['start', '--data-dir', join(directory, 'start')])
    person_id = (await ask(scene.base, '/people', { name: 'Mara' })).body.person_id
  })
  afterAll(() => scene.close())

  /** Written now, delivered later. */
  async function writeLate(text: string, seconds: number): Promise<void> {
    const { account_id, base } = scene
    await ask(base, '/faults', { on: 'updates', fault: 'late', seconds, account_id })
    const { status } = await ask(base, '/messages', { account_id, person_id, text })
    expect(status).toBe(200)
  }

  test('200 once everything due is stored and announced, in the order it was due', async () => {
    await writeLate('in an hour', 3_600)
    await writeLate('in a minute', 60)
    await writeLate('in half a minute', 30)
    const before = await scene.now()
    const answer = await scene.advance(59)
    expect(answer).toEqual({ status: 200, body: { now: new Date(before + 59_000).toISOString() } })
    expect(await scene.deliveredTexts()).toEqual(['in half a minute'])
    expect((await scene.advance(1)).status).toBe(200)
    expect(await scene.deliveredTexts()).toEqual(['in half a minute', 'in a minute'])
    expect((await scene.advance(7_200)).status).toBe(200)
    expect(await scene.deliveredTexts()).toEqual(['in half a minute', 'in a minute', 'in an hour'])
    expect(await scene.now()).toBe(before + 7_260_000)
  })

  test('200 for two callers at once: the clock moves by both', async () => {
    const before = await scene.now()
    const answers = await Promise.all([scene.advance(10), scene.advance(30), scene.advance(0.5)])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(await scene.now()).toBe(before + 40_500)
    expect(new Set(answers.map(({ body }) => body.now)).size).toBe(3)
  })

  test('200 for zero: the clock stays, and everything due is done', async () => {
    const before = await scene.now()
    const { account_id, base } = scene
    await ask(base, '/messages', { account_id, person_id, text: 'right now' })
    expect(await scene.advance(0)).toEqual({
      status: 200,
      body: { now: new Date(before).toISOString() },
    })
    expect((await scene.deliveredTexts()).at(-1)).toBe('right now')
  })

  test.each([
    [{ seconds: -1 }],
    [{ seconds: 366 * 86_400 + 1 }],
    [{ seconds: '60' }],
    [{ seconds: null }],
    [{}],
    [{ seconds: 1, surprise: true }],
    [[]],
  ])('400 for %j', async (body) => {
    const before = await scene.now()
    const answer = await ask(scene.base, '/clock/advance', body)
    expect(answer).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', error: expect.stringMatching(/\w+ \w+/) },
    })
    expect(await scene.now()).toBe(before)
  })

  test("404 for following: only a separate sandbox follows the service's time", async () => {
    expect(await ask(scene.base, '/clock', { to: '2030-01-01T00:00:00Z' })).toMatchObject({ status: 404 })
  })
})

describe('POST /sandbox/v1/clock/advance on parley work, with a sandbox of its own', () => {
  let scene: Scene
  let sandboxUrl: string
  beforeAll(async () => {
    scene = await makeScene()
    const args = ['sandbox', '--port', '0', '--data-dir', join(directory, 'apart')]
    sandboxUrl = await spawnParley(args, manual).ready()
    await scene.start(['work', '--data-dir', join(directory, 'work')], { PARLEY_SANDBOX_URL: sandboxUrl })
  })
  afterAll(() => scene.close())

  test('200 lets people answer in the order they are due, at their times', async () => {
    const { account_id } = scene
    const before = await scene.now()
    const delays = { slow: 600, quick: 20, middling: 90 }
    const ids: unknown[] = []
    for (const [reply_text, delay_seconds] of Object.entries(delays)) {
      const person = { name: reply_text, behaviour: 'replies', reply_text, delay_seconds }
      ids.push((await ask(sandboxUrl, '/people', person)).body.person_id)
    }
    // As the account, from another client; its own session reconnects afterwards.
    await withSession(sandboxUrl, account_id, async (session) => {
      for (const [n, id] of ids.entries()) {
        const message: Submission = {
          chat_id: `${Number(id)}`,
          text: 'Hello',
          file: null,
          random_id: String(n + 1),
        }
        expect(await session.send(message)).toMatchObject({ kind: 'accepted' })
      }
    })
    expect((await scene.advance(60)).status).toBe(200)
    expect(await scene.deliveredTexts()).toEqual(['quick'])
    expect((await scene.advance(86_400)).status).toBe(200)
    expect(await scene.deliveredTexts()).toEqual(['quick', 'middling', 'slow'])
    const times = await scene.app.db.rows<{ sent_at: Date }>(sql`
      select sent_at from messages where account_id = ${account_id} and not is_sender order by sent_at`)
    expect(times.map(({ sent_at }) => (sent_at.getTime() - before) / 1000)).toEqual([20, 90, 600])
    const reads = await scene.app.db.rows(sql`
      select 1 from chats where account_id = ${account_id} and read_by_them_id is not null`)
    expect(reads).toHaveLength(3)
  })

  test('200 dates what people write before the clock was ever moved', async () => {
    const { account_id } = scene
    const { body } = await ask(sandboxUrl, '/people', { name: 'Mara' })
    await ask(sandboxUrl, '/messages', { account_id, person_id: body.person_id, text: 'hello' })
    await scene.advance(0)
    const { sent_at } = await scene.app.db.one<{ sent_at: Date }>(
      sql`select sent_at from messages where account_id = ${account_id} and text = 'hello'`,
    )
    expect(sent_at.getTime()).toBe(await scene.now())
  })

  test('404 on the sandbox itself, whose clock belongs to the service', async () => {
    expect(await ask(sandboxUrl, '/clock/advance', { seconds: 1 })).toMatchObject({ status: 404 })
  })
})

describe('without a manual clock', () => {
  test('404 on every address', async () => {
    const args = ['sandbox', '--port', '0', '--data-dir', join(directory, 'real')]
    const base = await spawnParley(args).ready()
    for (const path of ['/clock/advance', '/clock']) {
      expect(await ask(base, path, { seconds: 1, to: '2030-01-01' })).toMatchObject({ status: 404 })
    }
  })

  test('refuses to work for a sandbox that uses real time', async () => {
    const database = await copyDatabase()
    const args = ['sandbox', '--port', '0', '--data-dir', join(directory, 'mismatch')]
    const PARLEY_SANDBOX_URL = await spawnParley(args).ready()
    const env = { DATABASE_URL: database.url, PARLEY_SECRET: testSecret, PARLEY_SANDBOX_URL, ...manual }
    const exit = await spawnParley(
      ['work', '--port', '0', '--data-dir', join(directory, 'worker')],
      env,
    ).exit()
    expect(exit.code).toBe(1)
    expect(exit.stderr).toContain('PARLEY_CLOCK=manual')
    await database.drop()
  })
})

/** Opens the account's session over the link, and ends it. */
async function withSession<T>(
  base: string,
  account_id: string,
  work: (session: Session, heard: UpdateBatch[]) => Promise<T>,
): Promise<T> {
  const heard: UpdateBatch[] = []
  const { platform } = connectSandbox(base)
  const listener = { updates: async (batch: UpdateBatch) => void heard.push(batch), closed: () => {} }
  const outcome = await platform.connect(heldAccount({ account_id, name: 'Sales' }), listener)
  if (outcome.kind !== 'accepted') throw new Error(`The session was not opened: ${outcome.kind}`)
  try {
    return await work(outcome.value, heard)
  } finally {
    await outcome.value.close()
  }
}

describe('parley sandbox --seed', () => {
  /** The same calls each time. Returns the journal and the account's updates, byte for byte. */
  async function live(name: string, seed: string): Promise<{ journal: string; heard: string }> {
    const args = ['sandbox', '--port', '0', '--data-dir', join(directory, name), '--seed', seed]
    const sandbox = spawnParley(args, manual)
    const base = await sandbox.ready()
    await ask(base, '/clock', { to: '2026-11-02T09:00:00Z' })
    const people: unknown[] = []
    for (const behaviour of ['replies', 'replies', 'reads', 'stops', 'silent']) {
      const { body } = await ask(base, '/people', {
        name: behaviour,
        behaviour,
        delay_seconds: people.length,
      })
      people.push(body.person_id)
    }
    const heard = await withSession(base, 'acc_one', async (session, batches) => {
      for (let n = 0; n < 20; n++) {
        const chat_id: Chat['id'] = `${Number(people[n % people.length])}`
        await session.send({ chat_id, text: `note ${n}`, file: null, random_id: String(n - 10) })
        if (n % 5 === 4) {
          await session.setReadState(chat_id, n % 2 === 0)
          await ask(base, '/messages', { account_id: 'acc_one', person_id: people[0], text: `hi ${n}` })
          await ask(base, '/clock', { to: new Date(Date.UTC(2026, 10, 2, 9, n)).toISOString() })
        }
      }
      const { body } = await ask(base, '/clock', { to: '2026-11-03T09:00:00Z' })
      const end = Object(body.positions).acc_one
      await until('everything is received', hangMs, () => batches.at(-1)?.position === end)
      return JSON.stringify(batches.flatMap(({ updates }) => updates))
    })
    const journal = await (await fetch(`${base}/sandbox/v1/journal`)).text()
    sandbox.signal('SIGTERM')
    await sandbox.exit()
    return { journal, heard }
  }

  test('200 gives the same journal byte for byte on two runs, and the same answers', async () => {
    const [one, other, third] = await Promise.all([live('one', '7'), live('other', '7'), live('third', '8')])
    expect(JSON.parse(one.journal).entries).toHaveLength(24)
    expect(other).toEqual(one)
    expect(third.journal).toBe(one.journal)
    expect(third.heard).not.toBe(one.heard)
  })

  test('refuses an invalid seed', async () => {
    const exit = await spawnParley([
      'sandbox',
      '--port',
      '0',
      '--seed',
      'seven',
      '--data-dir',
      join(directory, 'seedless'),
    ]).exit()
    expect(exit).toMatchObject({ code: 2, stderr: expect.stringContaining('whole number') })
  })
})
