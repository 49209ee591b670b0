/** PostgreSQL as teams run it: poolers, roles with few rights, and a sentence for each mistake. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { createAccount } from '../src/capabilities/accounts/accounts.ts'
import { explainDatabase, plainSslMode, pooledByTransaction } from '../src/cli/database-sentences.ts'
import { makeLogger } from '../src/cli/log.ts'
import { openApp } from '../src/cli/open.ts'
import { readConfig } from '../src/config.ts'
import { migrationLock } from '../src/db/migrate.ts'
import { openDatabase } from '../src/db/pool.ts'
import { isPooledByTransaction, readServerState } from '../src/db/server-state.ts'
import { type Database, sql } from '../src/db/sql.ts'
import { administer } from './harness/cluster.ts'
import { copyDatabase, dropDatabase, type TestDatabase } from './harness/database.ts'
import { FakePooler, failure } from './harness/fake-pooler.ts'
import { runVerb } from './harness/operator.ts'
import { blocksOf } from './harness/pages.ts'
import { hasPgBouncer, openPgBouncer } from './harness/pgbouncer.ts'
import { endProcesses, hangMs, spawnParley, until } from './harness/process.ts'
import { seedTenant, testSecret } from './harness/worker.ts'

let copy: TestDatabase
let owner: Database
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-own-'))
  copy = await copyDatabase()
  owner = openDatabase({ connectionString: copy.url }, { pool_size: 2 })
})
afterAll(async () => {
  await endProcesses()
  await owner.close()
  await copy.drop()
  await rm(directory, { recursive: true, force: true })
})

const nameOf = (url: string) => new URL(url).pathname.slice(1)
const over = (port: number, url = copy.url) => {
  const { username, password } = new URL(url)
  return `postgres://${username}:${password}@127.0.0.1:${port}/${nameOf(url)}`
}

/** Opens the database as `serve` and `work` do, and returns the lines of the log. */
async function open(url: string, env: Readonly<Record<string, string>> = {}) {
  const lines: Record<string, unknown>[] = []
  const app = await openApp({
    config: readConfig({ DATABASE_URL: url, PARLEY_SECRET: testSecret, ...env }),
    data_dir: '',
    log: makeLogger('info', { write: (line) => void lines.push(JSON.parse(line)) }),
    claim: 'service',
    operations: [],
    routes: [],
  })
  return { app, lines }
}

const refusalOf = (opening: Promise<{ app: { close(): Promise<void> } }>) =>
  opening.then(
    async ({ app }) => app.close().then(() => 'It opened.'),
    (error: Error) => error.message,
  )

describe('a pooler', () => {
  async function through<T>(
    mode: 'session' | 'transaction',
    work: (url: string) => Promise<T>,
    servers = 1,
  ): Promise<T> {
    const pooler = new FakePooler(`${inject('cluster').host}/.s.PGSQL.5432`, mode, servers)
    try {
      return await work(over(await pooler.listen()))
    } finally {
      await pooler.close()
    }
  }

  test('that works by session is used as installed, with our time limits', async () => {
    const settings = await through('session', async (url) => {
      const { app } = await open(url)
      const limits = ['lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout']
      const client = await app.db.client()
      const pooled = await app.db.one(sql`
        select array(select setting::int > 0 from pg_settings where name = any(${limits})) as limited`)
      const single = await client.query(
        'select array(select setting::int > 0 from pg_settings where name = any($1)) as limited',
        [limits],
      )
      await client.end()
      await app.close()
      return [pooled, single.rows[0]]
    })
    const limited = { limited: [true, true, true] }
    expect(settings).toEqual([limited, limited])
  })

  test('that works by transaction is refused with a sentence', async () => {
    expect(await through('transaction', (url) => refusalOf(open(url)))).toBe(pooledByTransaction)
  })

  test('that works by transaction and gives each connection another server at first is refused as well', async () => {
    const pooled = (url: string) => {
      const db = openDatabase({ connectionString: url }, { pool_size: 1 })
      return isPooledByTransaction(db).finally(() => db.close())
    }
    expect(await through('transaction', pooled, 2)).toBe(true)
    expect(await through('transaction', pooled, 3)).toBe(true)
    expect(await through('session', pooled)).toBe(false)
  })

  test.each(['42P05', '26000'])('that was not noticed is named after the error %s', (code) => {
    const error = Object.assign(new Error('prepared statement'), { code })
    expect(explainDatabase(error)).toMatchObject({ name: 'Refusal', message: pooledByTransaction })
  })
})

const isInstalled = hasPgBouncer()
test.runIf(!isInstalled)('pgbouncer is not on the PATH, so it was not tried itself', () => {})

async function throughPgBouncer<T>(mode: 'session' | 'transaction', work: (url: string) => Promise<T>) {
  const pooler = await openPgBouncer(inject('cluster'), [`pool_mode = ${mode}`])
  try {
    return await work(over(pooler.port))
  } finally {
    await pooler.close()
  }
}

describe.runIf(isInstalled)('PgBouncer', () => {
  test('by session, as installed: a process opens, asks and hears notices', async () => {
    const heard = await throughPgBouncer('session', async (url) => {
      const { app } = await open(url)
      const client = await app.db.client()
      const notice = new Promise((resolve) => client.once('notification', resolve))
      await client.query('listen parley_test')
      await app.db.run(sql`select pg_notify('parley_test', 'hello')`)
      const received = await notice
      await client.end()
      await app.close()
      return received
    })
    expect(heard).toMatchObject({ payload: 'hello' })
  })

  test('by transaction is refused with a sentence, also after processes that have left named statements', async () => {
    const sentences = await throughPgBouncer('transaction', async (url) => {
      const earlier = openDatabase({ connectionString: url }, { pool_size: 1 })
      await readServerState(earlier)
      await earlier.close()
      const ends = []
      for (const role of ['serve', 'work', 'work']) {
        const args = [
          role,
          '--port',
          '0',
          ...(role === 'work' ? ['--data-dir', join(directory, 'pooled')] : []),
        ]
        ends.push(await spawnParley(args, { DATABASE_URL: url, PARLEY_SECRET: testSecret }).exit())
      }
      return ends.map(({ code, stderr }) => [code, stderr])
    })
    expect(sentences).toEqual(sentences.map(() => [1, `${pooledByTransaction}\n`]))
  })
})

test('a process that waits for the migration lock logs it', async () => {
  const empty = await copyDatabase()
  const holding = openDatabase({ connectionString: empty.url }, { pool_size: 2 })
  const lines: Record<string, unknown>[] = []
  try {
    await holding.run(sql`delete from schema_migrations where version = 42`)
    await holding.pool.query('alter table account_hosts drop handed_over_at, drop takeover_seconds')
    const holder = await holding.client()
    await holder.query('select pg_advisory_lock($1)', [migrationLock])
    const opening = openApp({
      config: readConfig({ DATABASE_URL: empty.url, PARLEY_SECRET: testSecret }),
      data_dir: '',
      log: makeLogger('info', { write: (line) => void lines.push(JSON.parse(line)) }),
      claim: 'service',
      operations: [],
      routes: [],
    })
    await until('it says that it waits', hangMs, async () =>
      lines.some(({ msg }) => String(msg).includes('this one waits')),
    )
    await holder.end()
    const app = await opening
    expect(app.applied).toEqual(['0042_hand_over.sql'])
    await app.close()
  } finally {
    await holding.close()
    await empty.drop()
  }
})

describe('a role', () => {
  const role = `app_${randomBytes(6).toString('hex')}`
  const urlOf = (name: string) => copy.url.replace(/\/\/[^@]*@/, `//${name}:secret-of-the-role@`)

  /** The grants of docs/scaling.md, and no right that PostgreSQL gives every role. */
  beforeAll(async () => {
    const [grants] = blocksOf('docs/scaling.md').filter(({ language }) => language === 'sql')
    const text = (grants?.text ?? '')
      .replaceAll('parley_app', role)
      .replaceAll('parley_owner', inject('cluster').user)
      .replaceAll('PASSWORD', 'secret-of-the-role')
      .replaceAll('database parley ', `database ${nameOf(copy.url)} `)
    expect(text.match(/;$/gm)).toHaveLength(5)
    await owner.pool.query(text)
    await owner.pool.query(`revoke temporary, connect on database ${nameOf(copy.url)} from public`)
  })
  afterAll(async () => {
    await owner.pool.query(`grant ${role} to current_user; drop owned by ${role}`)
    await administer(inject('cluster'), `drop role ${role}`)
  })

  test('that may create nothing opens a migrated database', async () => {
    const { app, lines } = await open(urlOf(role))
    expect(app.applied).toEqual([])
    expect(lines).toEqual([])
    await app.close()
  })

  test('that may create nothing serves and works: a message is sent and stored', async () => {
    const env = { DATABASE_URL: urlOf(role), PARLEY_SECRET: testSecret }
    expect(await runVerb(['gate', 'enable', 'rest', 'start_chat'], env)).toMatchObject({ code: 0 })
    const sandbox = await spawnParley([
      'sandbox',
      '--port',
      '0',
      '--data-dir',
      join(directory, 'sandbox'),
    ]).ready()
    const work = spawnParley(['work', '--port', '0', '--data-dir', join(directory, 'work')], {
      ...env,
      PARLEY_SANDBOX_URL: sandbox,
    })
    const serve = spawnParley(['serve', '--port', '0'], env)
    const [url] = await Promise.all([serve.ready(), work.ready()])
    const { app } = await open(urlOf(role))
    const { key, workspace_id } = await seedTenant(app)
    const { id: account_id } = await createAccount(app, 'system', {
      workspace_id,
      platform: 'sandbox',
      name: 'Sales',
    })
    const post = (at: string, body: object, headers: Record<string, string> = {}) =>
      fetch(at, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
    await post(`${sandbox}/sandbox/v1/people`, { name: 'Mara Lind', username: 'mara_lind' })
    const start = { account_id, identifier: 'mara_lind' }
    const headers = { authorization: `Bearer ${key}`, 'idempotency-key': 'mara-1' }
    const chat = await until('the chat is open', hangMs, async () => {
      const response = await post(`${url}/api/v1/chats/start`, start, headers)
      const body = (await response.json()) as { chat?: { id: string } }
      return response.status === 200 && body.chat
    })
    const message = { account_id, chat_id: chat.id, text: 'Good morning' }
    const sent = await post(`${url}/api/v1/messages`, message, { ...headers, 'idempotency-key': 'mara-2' })
    expect(sent.status).toBe(200)
    for (const parley of [serve, work]) parley.signal('SIGTERM')
    for (const parley of [serve, work]) {
      const { code, stdout } = await parley.exit()
      expect([code, stdout.match(/^.*permission denied.*$/m)]).toEqual([0, null])
    }
    await app.close()
    await endProcesses()
  })

  test('that may not migrate is told who can, where a migration is missing', async () => {
    const text = 'select version, name, checksum from schema_migrations where version = 42'
    const { rows } = await owner.pool.query(text)
    await owner.run(sql`delete from schema_migrations where version = 42`)
    expect(await refusalOf(open(urlOf(role)))).toMatch(
      /^The database is not migrated to this version, and the role of DATABASE_URL cannot migrate it/,
    )
    const { version, name, checksum } = rows[0]
    await owner.run(sql`
      insert into schema_migrations (version, name, checksum) values (${version}, ${name}, ${checksum})`)
  })

  test('that lacks a right is told which', async () => {
    await owner.pool.query(`revoke select on manual_clock from ${role}`)
    expect(await refusalOf(open(urlOf(role)))).toMatch(
      /^The role of DATABASE_URL lacks a right: permission denied for table manual_clock\. docs\/scaling\.md/,
    )
    await owner.pool.query(`grant select on manual_clock to ${role}`)
  })

  test('whose connections do not suffice for the pool is warned', async () => {
    await administer(inject('cluster'), `alter role ${role} connection limit 12`)
    const few = await open(urlOf(role), { PARLEY_POOL_SIZE: '11' })
    await few.app.close()
    expect(few.lines).toMatchObject([{ level: 'warn', pool_size: 11, allowed: 12 }])
    const enough = await open(urlOf(role), { PARLEY_POOL_SIZE: '5' })
    await enough.app.close()
    expect(enough.lines).toEqual([])
  })
})

describe('a sentence for', () => {
  /** The sentence that a verb ends with on this database. */
  async function sentence(url: string): Promise<string> {
    const { code, stderr } = await runVerb(['workspace', 'list'], {
      DATABASE_URL: url,
      PARLEY_SECRET: testSecret,
    })
    expect(code).not.toBe(0)
    return stderr
  }

  async function refusing(code: string, message: string): Promise<string> {
    const server = createServer((client) => {
      client.on('error', () => {})
      client.once('data', () => client.end(failure(code, message)))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    try {
      return await sentence(over(port))
    } finally {
      await new Promise((resolve) => server.close(resolve))
    }
  }

  test.each([
    [
      'a server that demands TLS',
      '28000',
      'no pg_hba.conf entry for host "10.0.0.7", user "parley", database "parley", no encryption',
      'the server accepts no unencrypted connection; add sslmode=verify-full to DATABASE_URL',
    ],
    ['a pooler that demands TLS', '08P01', 'SSL required', 'the server accepts no unencrypted connection'],
    [
      'an address that the server does not allow',
      '28000',
      'no pg_hba.conf entry for host "10.0.0.7", user "parley", database "parley", SSL encryption',
      "the server's pg_hba.conf does not allow this role, database and address",
    ],
    [
      'a role that may not log in',
      '28000',
      'role "parley" is not permitted to log in',
      'the role is not allowed to log in',
    ],
  ])('%s', async (_, code, message, expected) => {
    expect(await refusing(code, message)).toContain(`does not respond: ${expected}`)
  })

  test.each([
    'postgres://parley:a,b@one,two/parley',
    'postgres://one:5432,two:5432/parley',
    'postgres://localhost/parley?host=one,two',
  ])('several hosts: %s', async (url) => {
    expect(await sentence(url)).toContain('DATABASE_URL must name one host')
  })

  test('an encoding other than UTF8', async () => {
    const name = `test_${randomBytes(8).toString('hex')}`
    await administer(
      inject('cluster'),
      `create database ${name} encoding 'LATIN1' locale 'C' template template0`,
    )
    const url = copy.url.replace(nameOf(copy.url), name)
    expect(await refusalOf(open(url))).toMatch(/^The database of DATABASE_URL has the encoding LATIN1/)
    await dropDatabase(name)
  })

  test('a verb of an older Parley on a newer database', async () => {
    await owner.run(
      sql`insert into schema_migrations (version, name, checksum) values (9999, '9999_later.sql', '')`,
    )
    expect(await sentence(copy.url)).toMatch(
      /^The database is newer than this Parley: it has the migration 9999_later.sql/,
    )
    await owner.run(sql`delete from schema_migrations where version = 9999`)
  })

  test('a verb on a database that lacks a migration', async () => {
    const lacking = await owner.one<{ name: string; checksum: string }>(
      sql`delete from schema_migrations where version = 42 returning name, checksum`,
    )
    expect(await sentence(copy.url)).toBe(
      'The database is not migrated to this version. Run `parley migrate` first.\n',
    )
    await owner.run(sql`
      insert into schema_migrations (version, name, checksum) values (42, ${lacking.name}, ${lacking.checksum})`)
  })
})

test.each([
  ['postgres://db/parley?sslmode=require', 'postgres://db/parley?sslmode=verify-full'],
  ['postgres://db/parley?a=b&sslmode=verify-ca&c=d', 'postgres://db/parley?a=b&sslmode=verify-full&c=d'],
  ['postgres://db/parley?uselibpqcompat=true&sslmode=require', undefined],
  ['postgres://db/parley?sslmode=no-verify', undefined],
  ['postgres://db/parley?sslmode=disable', undefined],
])('%s means to the driver what the page says, without its warning', (given, meant = given) => {
  expect(plainSslMode(given)).toBe(meant)
})
