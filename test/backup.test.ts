/** `parley backup` and `parley restore` as an operator uses them, on a running demo. */
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openBackup } from '../src/db/backup-file.ts'
import { readOrigin } from '../src/db/backup-origin.ts'
import { openEmbedded } from '../src/db/embedded.ts'
import { openDatabase } from '../src/db/pool.ts'
import { type Database, sql } from '../src/db/sql.ts'
import { beginErasures, keepErasures, readErasures } from '../src/ledger/erasure-list.ts'
import { newId } from '../src/lib/ids.ts'
import { sha256 } from '../src/lib/secrets.ts'
import { patchEnv } from './faults/patch.ts'
import { copyDatabase } from './harness/database.ts'
import { runVerb } from './harness/operator.ts'
import {
  endProcesses,
  hangMs,
  type Parley,
  runParley,
  serversOf,
  spawnParley,
  until,
} from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'
import { testSecret } from './harness/worker.ts'

let home: string
let source: string
let target: string
beforeAll(async () => {
  home = await makeScratch('parley-backups-')
  await chmod(home, 0o755)
  source = join(home, 'source')
  target = join(home, 'target')
})
afterAll(async () => {
  await endProcesses()
  for (const pid of await serversOf(home)) process.kill(pid, 'SIGKILL')
  await until('every server is gone', hangMs, async () => (await serversOf(home)).length === 0)
  await rm(home, { recursive: true, force: true })
})

const file = (name: string) => join(home, name)
const start = (data_dir: string) => spawnParley(['start', '--port', '0', '--data-dir', data_dir])

async function stop(service: Parley): Promise<void> {
  service.signal('SIGTERM')
  expect(await service.exit()).toMatchObject({ code: 0 })
}

async function json<T>(...args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await runVerb([...args, '--json'])
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as T
}

async function inspect<T>(data_dir: string, work: (db: Database) => Promise<T>): Promise<T> {
  const embedded = await openEmbedded({ data_dir, claim: 'command' })
  const db = openDatabase(embedded.connection, { pool_size: 2 })
  try {
    return await work(db)
  } finally {
    await db.close()
    await embedded.close()
  }
}

interface Instance {
  readonly id: string
  readonly generation: string
  readonly dispatch: boolean
}

const readInstance = (db: Database) =>
  db.one<Instance>(sql`
    select id, generation, (select value = 'true'::jsonb from settings where name = 'dispatch') as dispatch from instance`)

/** Every row of every table that a restore does not change. */
async function readAll(db: Database): Promise<Record<string, readonly string[]>> {
  const tables = await db.rows<{ name: string }>(sql`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
      and relname not in ('workers', 'request_log', 'schema_migrations', 'instance', 'settings', 'audit',
        'setup_links')`)
  const found: Record<string, readonly string[]> = {}
  for (const { name } of tables) {
    const { rows } = await db.pool.query(`select t::text as row from "${name}" t order by 1`)
    found[name] = rows.map(({ row }) => row)
  }
  return found
}

const actionsOf = async (data_dir: string) =>
  inspect(data_dir, async (db) =>
    (await db.rows<{ action: string }>(sql`select action from audit order by seq`)).map(
      ({ action }) => action,
    ),
  )

async function ask<T>(base: string, key: string, path: string, body?: object) {
  const response = await fetch(`${base}/api/v1${path}`, {
    method: body ? 'POST' : 'GET',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(path === '/messages' && { 'idempotency-key': 'once' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: (await response.json()) as T }
}

interface SearchAnswer {
  readonly matches: readonly { readonly account_id: string; readonly chat_id: string }[]
  readonly match_count: number
  readonly completeness?: { readonly complete: boolean }
}

const search = (base: string, key: string, more: object) =>
  ask<SearchAnswer>(base, key, '/search', { time_after: '2000-01-01T00:00:00Z', limit: 100, ...more })

describe('parley backup and restore', () => {
  let key: string
  let madeAt: Date
  let before: Record<string, readonly string[]>
  let was: Instance

  test('makes and audits a backup while the service runs', async () => {
    const service = start(source)
    const base = await service.ready()
    key = await until('the key is printed', hangMs, () => /svc_live_\w+/.exec(service.stdout())?.[0])
    await until('the history is there', hangMs, async () => {
      const { accounts } = (await ask<{ accounts: readonly unknown[] }>(base, key, '/me')).body
      const { body } = await search(base, key, {})
      return accounts.length === 2 && body.completeness?.complete === true && body.match_count > 0
    })
    const made = await json<{ rows: number }>('backup', file('running'), '--data-dir', source)
    expect(made.rows).toBeGreaterThan(500)
    expect((await stat(file('running'))).mode & 0o777).toBe(0o600)
    expect((await ask(base, key, '/me')).status).toBe(200)
    const running = await runVerb(['restore', file('running'), '--data-dir', source])
    expect([running.code, running.stderr]).toEqual([1, expect.stringContaining('is running on')])
    await stop(service)
    expect((await actionsOf(source)).at(-1)).toBe('backup.made')
  })

  test('makes a backup while it does not run; refuses an existing file', async () => {
    ;[before, was] = await inspect(source, async (db) => [await readAll(db), await readInstance(db)])
    madeAt = new Date()
    await json('backup', file('stopped'), '--data-dir', source)
    const again = await runVerb(['backup', file('stopped'), '--data-dir', source])
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('never overwrites')])
    expect((await readdir(home)).sort()).toEqual([
      'running',
      'running.erasures',
      'source',
      'stopped',
      'stopped.erasures',
    ])
    expect(await serversOf(source)).toEqual([])
  })

  test('creates no data directory from an altered file', async () => {
    const bytes = await readFile(file('stopped'))
    bytes.writeUInt8(bytes.readUInt8(bytes.length >> 1) ^ 4, bytes.length >> 1)
    await writeFile(file('altered'), bytes)
    const { code, stderr } = await runVerb(['restore', file('altered'), '--data-dir', target])
    expect([code, stderr]).toEqual([1, expect.stringContaining('truncated or changed')])
    expect(await readdir(home)).not.toContain('target')
  })

  test('refuses a directory that does not know who was erased since, until an operator confirms', async () => {
    const { code, stderr } = await runVerb(['restore', file('stopped'), '--data-dir', target])
    expect([code, stderr]).toEqual([1, expect.stringContaining('would come back')])
    const missing = await runVerb([
      'restore',
      file('stopped'),
      '--erasures',
      file('no'),
      '--data-dir',
      target,
    ])
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('does not exist')])
    expect(await readdir(home)).not.toContain('target')
  })

  test('an empty list of a new disk does not count, and the file says which instance it is of', async () => {
    const fresh = join(home, 'fresh')
    await mkdir(join(fresh, 'ledger'), { recursive: true, mode: 0o755 })
    await beginErasures(join(fresh, 'ledger'))
    const { code, stderr } = await runVerb(['restore', file('stopped'), '--data-dir', fresh])
    expect([code, stderr]).toEqual([1, expect.stringContaining('would come back')])
    expect(await readdir(fresh)).toEqual(['ledger'])
    const backup = await openBackup(file('stopped'))
    const origin = await readOrigin(backup)
    await backup.close()
    const known = await inspect(source, (db) =>
      db.one(
        sql`select id, restore_counter::text, array(select id from workspaces order by 1) as workspace_ids from instance`,
      ),
    )
    expect({ ...origin, workspace_ids: [...origin.workspace_ids].sort() }).toEqual(known)
    expect(origin.workspace_ids.size).toBeGreaterThan(0)
  })

  test('refuses a directory with another secret', async () => {
    await mkdir(join(home, 'other'), { mode: 0o755 })
    await writeFile(join(home, 'other', 'secret'), 'x'.repeat(43), { mode: 0o600 })
    const { code, stderr } = await runVerb(['restore', file('stopped'), '--data-dir', join(home, 'other')])
    expect([code, stderr]).toEqual([1, expect.stringContaining('is not the secret')])
    expect(await readdir(join(home, 'other'))).toEqual(['secret'])
  })

  test('a restore that is killed before its end leaves the directory empty', async () => {
    const kill = { marker: 'crash point 15', insert: "process.kill(process.pid, 'SIGKILL')" }
    const list = file('of-later.erasures')
    const erasure = { id: newId(), workspace_id: newId() }
    await keepErasures(list, [erasure])
    const killed = await runParley(
      ['restore', file('stopped'), '--erasures', list, '--data-dir', target],
      patchEnv([kill]),
    )
    expect(killed.code).toBe(null)
    // A kill after the commit would leave them to the first worker.
    const ledger = join(target, 'ledger')
    expect(await readErasures(join(ledger, 'erasures.jsonl'))).toEqual({ erasures: [erasure], damaged: 0 })
    await rm(ledger, { recursive: true })
    const empty = await inspect(target, (db) => db.one(sql`select to_regclass('workspaces')::text as there`))
    expect(empty).toEqual({ there: null })
  })

  test("a restore brings every row back, and keeps the directory's journals", async () => {
    await mkdir(join(target, 'ledger'))
    await writeFile(join(target, 'ledger', 'some.journal'), 'what was sent')
    const made = await json<{ dispatch: boolean; next: string }>(
      'restore',
      file('stopped'),
      '--without-erasures',
      '--data-dir',
      target,
    )
    expect(made).toMatchObject({ dispatch: false, next: expect.stringContaining('parley dispatch on') })
    expect(await inspect(target, readAll)).toEqual(before)
    expect(await readdir(join(target, 'ledger'))).toEqual(['some.journal'])
    expect(await readFile(join(target, 'ledger', 'some.journal'), 'utf8')).toBe('what was sent')
    expect(await readFile(join(target, 'secret'), 'utf8')).toBe(
      await readFile(join(source, 'secret'), 'utf8'),
    )
    expect((await stat(join(target, 'secret'))).mode & 0o777).toBe(0o600)
  })

  test('the restored database is another generation of the same one, and sends nothing', async () => {
    const is = await inspect(target, readInstance)
    expect(is).toMatchObject({ id: was.id, dispatch: false })
    expect(was.dispatch).toBe(true)
    expect(is.generation).not.toBe(was.generation)
    // The first start's link may have been used since the backup was made.
    const links = (db: Database) => db.rows(sql`select used_at is null as open from setup_links`)
    expect(await inspect(source, links)).toEqual([{ open: true }])
    expect(await inspect(target, links)).toEqual([{ open: false }])
    expect((await actionsOf(target)).slice(-2)).toEqual(['dispatch.off', 'restore.done'])
    expect(await json('audit', 'verify', '--data-dir', target)).toMatchObject({ ok: true })
  })

  test('refuses a directory that is not empty', async () => {
    const { code, stderr } = await runVerb([
      'restore',
      file('running'),
      '--without-erasures',
      '--data-dir',
      target,
    ])
    expect([code, stderr]).toEqual([1, expect.stringContaining('is not empty')])
    expect(await inspect(target, readAll)).toEqual(before)
  })

  test('keys work and searches find the same', async () => {
    // Without a worker nothing arrives, so the source still has exactly what the backup has.
    const first = spawnParley(['serve', '--port', '0', '--data-dir', source])
    const time_before = madeAt.toISOString()
    const wanted = await search(await first.ready(), key, { time_before })
    await stop(first)
    const service = start(target)
    const base = await service.ready()
    expect((await ask(base, key, '/me')).status).toBe(200)
    const found = await search(base, key, { time_before })
    expect(found.body.matches).toEqual(wanted.body.matches)
    expect(found.body.match_count).toBe(wanted.body.match_count)
    expect(found.body.matches.length).toBeGreaterThan(0)
    const { account_id, chat_id } = found.body.matches[0] ?? {}
    const sent = await ask(base, key, '/messages', { account_id, chat_id, text: 'Hello' })
    expect([sent.status, JSON.stringify(sent.body)]).toEqual([503, expect.stringContaining('switched off')])
    await stop(service)
  })
})

describe('parley restore --mark', () => {
  test("starts another generation of an operator's own database, and switches sending off", async () => {
    const database = await copyDatabase()
    const env = { DATABASE_URL: database.url, PARLEY_SECRET: testSecret }
    const db = openDatabase({ connectionString: database.url }, { pool_size: 2 })
    try {
      const was = await readInstance(db)
      const user_id = newId()
      await db.run(sql`insert into users (id, email) values (${user_id}, 'ana@acme.example')`)
      await db.run(sql`
        insert into identities (issuer, subject, user_id, idp_user_uuid)
        values ('local', ${user_id}, ${user_id}, ${user_id})`)
      await db.run(sql`
        insert into sessions (id, token_hash, user_id, issuer, subject, expires_at)
        values (${newId()}, ${sha256('session')}, ${user_id}, 'local', ${user_id}, now() + interval '1 hour')`)
      const mark = ['restore', '--mark', '--data-dir', join(home, 'elsewhere')]
      const unconfirmed = await runVerb(mark, env)
      expect([unconfirmed.code, unconfirmed.stderr]).toEqual([1, expect.stringContaining('would come back')])
      expect(await readInstance(db)).toEqual(was)
      const { code, stdout, stderr } = await runVerb([...mark, '--without-erasures'], env)
      expect([code, stderr]).toEqual([0, ''])
      expect(stdout).toContain('parley dispatch on')
      const is = await readInstance(db)
      expect([was.dispatch, is.dispatch, is.id]).toEqual([true, false, was.id])
      expect(is.generation).not.toBe(was.generation)
      // It may have ended since the backup was made.
      expect(await db.rows(sql`select revoked_at is null as alive from sessions`)).toEqual([{ alive: false }])
      expect(await db.rows(sql`select action from audit order by seq`)).toEqual([
        { action: 'dispatch.off' },
        { action: 'restore.marked' },
      ])
      for (const args of [
        ['backup', file('foreign')],
        ['restore', file('stopped')],
      ]) {
        const refused = await runVerb(args, env)
        expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('its own tools')])
      }
    } finally {
      await db.close()
      await database.drop()
    }
  })

  test('works on an embedded database', async () => {
    const was = await inspect(source, readInstance)
    const mark = ['restore', '--mark', '--data-dir', source]
    // The directory's own list may have been put back with the database.
    const unconfirmed = await runVerb(mark)
    expect([unconfirmed.code, unconfirmed.stderr]).toEqual([1, expect.stringContaining('would come back')])
    expect(await json(...mark, '--without-erasures')).toMatchObject({ dispatch: false })
    expect((await inspect(source, readInstance)).generation).not.toBe(was.generation)
  })

  test('repeats the erasures of a given list', async () => {
    const database = await copyDatabase()
    const env = { DATABASE_URL: database.url, PARLEY_SECRET: testSecret }
    const db = openDatabase({ connectionString: database.url }, { pool_size: 2 })
    try {
      const workspace_id = newId()
      await db.run(sql`insert into workspaces (id, name) values (${workspace_id}, 'Acme')`)
      const list = file('standby.erasures')
      const person = { person_id: newId(), workspace_id, platform: 'sandbox', number: '4711' }
      const more = { contact_allowed: false, tombstones: ['cd'.repeat(32)], at: new Date().toISOString() }
      await keepErasures(list, [{ id: newId(), ...person, ...more }])
      const mark = ['restore', '--mark', '--erasures', list, '--data-dir', join(home, 'elsewhere'), '--json']
      const { code, stdout, stderr } = await runVerb(mark, env)
      expect([code, stderr, JSON.parse(stdout).erased]).toEqual([0, '', 1])
      expect(await db.one(sql`select step, person_id from erasures`)).toEqual({
        step: 'begin',
        person_id: person.person_id,
      })
      expect(await db.one(sql`select value from suppressions`)).toEqual({ value: person.number })
    } finally {
      await db.close()
      await database.drop()
    }
  })

  test('needs either a file or --mark, and names a missing file', async () => {
    const target = join(home, 'never')
    const refusal = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await runVerb(['restore', ...args, '--data-dir', target])
      expect([stdout, existsSync(target)]).toEqual(['', false])
      return [code, stderr.split('\n')[0]]
    }
    const missing =
      'error: the file is missing: name a backup, or use --mark after a restore with other tools'
    expect(await refusal()).toEqual([2, missing])
    expect(await refusal(file('stopped'), '--mark')).toEqual([2, 'error: --mark takes no file'])
    expect(await refusal(file('nowhere'))).toEqual([1, `The file ${file('nowhere')} does not exist.`])
    expect(await refusal('--mark')).toEqual([1, expect.stringContaining(`There is no Parley in ${target}.`)])
  })
})

test('parley restore --erasures repeats the erasures of a newer list, and keeps them on the new disk', async () => {
  const person = await inspect(source, (db) =>
    db.one<{ person_id: string; workspace_id: string; platform: string; number: string }>(sql`
      select id as person_id, workspace_id, platform, number::text from people order by number limit 1`),
  )
  const list = file('newer.erasures')
  const more = { contact_allowed: false, tombstones: ['ab'.repeat(32)], at: new Date().toISOString() }
  await keepErasures(list, [{ id: newId(), ...person, ...more }])
  const to = file('erased')
  const args = ['restore', file('stopped'), '--erasures', list, '--data-dir', to]
  const next = expect.stringMatching(
    /^One person is erased again: .* goes while the service runs\. Sending is off\./,
  )
  expect(await json(...args)).toMatchObject({ erased: 1, dispatch: false, next })
  const found = await inspect(to, (db) =>
    db.one(sql`
      select e.step, p.erased_at is not null as erased,
        exists (select from tombstones t where t.number = e.number) as has_tombstone,
        exists (select from suppressions s where s.kind = 'platform_id' and s.value = e.number::text) as is_listed
      from erasures e join people p on p.id = e.person_id`),
  )
  // A service removes the rest, as soon as it runs.
  expect(found).toEqual({ step: 'begin', erased: true, has_tombstone: true, is_listed: true })
  expect(await readFile(join(to, 'ledger', 'erasures.jsonl'), 'utf8')).toContain(person.person_id)
})

test('a secret from the environment is not in the file, and the restore requires it', async () => {
  const [from, to] = [join(home, 'kept'), join(home, 'kept-target')]
  const env = { PARLEY_SECRET: testSecret }
  expect((await runVerb(['gate', 'enable', 'rest', '--data-dir', from], env)).code).toBe(0)
  expect((await runVerb(['backup', file('without'), '--data-dir', from], env)).code).toBe(0)
  const content = gunzipSync((await readFile(file('without'))).subarray(16, -72))
  expect(content.includes('"secret":null')).toBe(true)
  expect(content.includes(testSecret)).toBe(false)
  const without = await runVerb(['restore', file('without'), '--data-dir', to])
  expect([without.code, without.stderr]).toEqual([1, expect.stringContaining('Set PARLEY_SECRET')])
  const other = await runVerb(['restore', file('without'), '--data-dir', to], {
    PARLEY_SECRET: `${testSecret}!`,
  })
  expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('is not the secret')])
  expect(
    (await runVerb(['restore', file('without'), '--without-erasures', '--data-dir', to], env)).code,
  ).toBe(0)
  expect(await readdir(to)).not.toContain('secret')
})
