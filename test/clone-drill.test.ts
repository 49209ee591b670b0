/**
 * The backup and clone drill of docs/scaling.md, typed as it is there, with the tools and the server of an installed PostgreSQL
 * (the embedded one has no `pg_dump`): the clone sends nothing and opens no connection for an account of Telegram.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync } from 'node:fs'
import { chmod, chown, mkdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openDatabase } from '../src/db/pool.ts'
import { sql } from '../src/db/sql.ts'
import { patchEnv } from './faults/patch.ts'
import { prepareDatabase, type Tenant } from './faults/tenant.ts'
import { runVerb } from './harness/operator.ts'
import { blocksOf, commandsOf, wordsOf } from './harness/pages.ts'
import { endProcesses, freePort, hangMs, spawnParley, until } from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'
import { testSecret } from './harness/worker.ts'
import { spawnDataCentre, telegramEnv } from './platform/data-centre-process.ts'
import { type Ask, askAddress } from './platform/sandbox-fixture.ts'

const run = promisify(execFile)
/** Debian keeps servers outside the PATH. */
const places = [...globSync('/usr/lib/postgresql/*/bin').sort(), ...(process.env.PATH ?? '').split(delimiter)]
const bin = places.find((place) =>
  ['initdb', 'postgres', 'pg_dump', 'pg_restore', 'createdb'].every((name) => existsSync(join(place, name))),
)
test.runIf(!bin)('no PostgreSQL with its tools is installed, so the drill was not typed', () => {})

/** Otherwise the clone, once it may connect an account, waits for more than a minute: the original drove it a moment ago. */
const briefTakeover = patchEnv([{ marker: 'limit: takeover', replace: 'takeoverSeconds: 2,' }])

/** PostgreSQL does not run as root. */
const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

describe.runIf(bin)('docs/scaling.md: backup and clone drill', () => {
  const PATH = `${bin}${delimiter}${process.env.PATH}`
  const phone = '+9996610001'
  let directory: string
  let port: string
  let server: ReturnType<typeof spawn>
  let tenant: Tenant
  let ask: Ask
  /** What the original's processes have in their environment. */
  let env: Record<string, string>
  let telegram: string

  const urlOf = (name: string) => `postgres://parley:secret@127.0.0.1:${port}/${name}`

  beforeAll(async () => {
    directory = await makeScratch('parley-drill-')
    await chmod(directory, 0o755)
    port = await freePort()
    await startPostgres()
    const url = urlOf('parley')
    tenant = await prepareDatabase(
      { url: urlOf },
      { url, secret: testSecret, clock: 'system', database: 'parley', accounts: 1, telegram: 1 },
    )
    const centre = spawnDataCentre({ data_dir: join(directory, 'sandbox') })
    ask = askAddress(await centre.ready())
    const reached = telegramEnv(centre.stdout())
    telegram = reached.PARLEY_TELEGRAM_DC ?? ''
    env = { DATABASE_URL: url, PARLEY_SECRET: testSecret, ...reached }
  })
  afterAll(async () => {
    await endProcesses()
    if (server.exitCode === null) {
      server.kill('SIGQUIT')
      await once(server, 'exit')
    }
    await rm(directory, { recursive: true, force: true })
  })

  async function startPostgres(): Promise<void> {
    const [data, file] = [join(directory, 'postgres'), join(directory, 'password')]
    await mkdir(data, { mode: 0o700 })
    await writeFile(file, 'secret')
    if (nobody.uid) await chown(data, nobody.uid, nobody.gid)
    const how = ['--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', '--no-sync']
    await run(join(bin ?? '', 'initdb'), ['-D', data, '-U', 'parley', `--pwfile=${file}`, ...how], nobody)
    const settings = ['-p', port, '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=']
    server = spawn(join(bin ?? '', 'postgres'), ['-D', data, ...settings], { ...nobody, stdio: 'ignore' })
    await until('it accepts connections', hangMs, () =>
      run(join(bin ?? '', 'pg_isready'), ['-h', '127.0.0.1', '-p', port]).then(
        () => true,
        () => false,
      ),
    )
  }

  async function verb(...args: string[]): Promise<void> {
    const { code, stderr } = await runVerb(args, env)
    expect([args, code, stderr]).toEqual([args, 0, ''])
  }

  /** A Telegram account that a worker drives, and a first message that is due as soon as sending is on. */
  async function fillOriginal(): Promise<void> {
    const [account_id = ''] = tenant.accounts
    await ask('addAccount', { account_id: 'sales', name: 'Sales', phone })
    await ask('addPerson', { name: 'Mara Lind', username: 'mara_lind' })
    const login = ['account', 'login', account_id, '--phone', phone]
    expect(await spawnParley(login, env, undefined, [], '12345\n').exit()).toMatchObject({ code: 0 })
    await spawnParley(['work', '--port', '0', '--data-dir', join(directory, 'work')], env).ready()
    const serve = await spawnParley(['serve', '--port', '0'], env).ready()
    const db = openDatabase({ connectionString: urlOf('parley') }, { pool_size: 1 })
    await until('the account is live', hangMs, () =>
      db.maybe(sql`select 1 from account_hosts h join accounts a on a.id = h.account_id
        where a.status = 'READY' and h.observed_at is not null`),
    )
    await db.close()
    await verb('dispatch', 'off')
    const created = await fetch(`${serve}/api/v1/campaigns`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${tenant.key}`,
        'content-type': 'application/json',
        'idempotency-key': 'drill',
      },
      body: JSON.stringify({
        name: 'Drill',
        message_text: 'Good morning',
        contacts: [{ identifier: 'mara_lind' }],
        account_pool: [account_id],
      }),
    })
    expect([created.status, await created.text()]).toEqual([201, expect.anything()])
  }

  const sent = async () => ((await ask('readJournal', { after: 0 })) as { entries: unknown[] }).entries.length

  test('the clone connects no account and sends nothing until `parley dispatch on`', async () => {
    await fillOriginal()
    let connections = 0
    const centre = createServer((socket) => {
      connections++
      socket.destroy()
    }).listen(0, '127.0.0.1')
    await once(centre, 'listening')
    const { port: centrePort } = centre.address() as { port: number }
    const fill = (text: string) =>
      text
        .replaceAll('postgres://parley:PASSWORD@db.internal', urlOf('').slice(0, -1))
        .replace('--port 8083', '--port 0')
        .replace('--data-dir .parley-clone', `--data-dir ${join(directory, 'clone')}`)
        .replace('.parley-work', join(directory, 'work'))
        .replace('parley.dump.erasures', join(directory, 'parley.dump.erasures'))
    const [block] = blocksOf('docs/scaling.md').filter(({ section }) => section.includes('clone drill'))
    const commands = block ? commandsOf(block) : []
    expect(commands.length).toBeGreaterThan(8)
    // The clone's own worker reaches another data centre, so that its connections can be counted.
    const clone = env
    const original = { ...env }
    clone.PARLEY_TELEGRAM_DC = telegram.replace(/:\d+/, `:${centrePort}`)
    for (const command of commands) {
      const [, name, value] = /^export (\w+)=(.*)$/.exec(command) ?? []
      const words = wordsOf(fill(command.replace(/ &$/, '')), clone)
      if (name) [clone[name] = ''] = wordsOf(fill(value ?? ''), clone)
      else if (command.endsWith(' &'))
        await spawnParley(words.slice(1), { ...clone, ...briefTakeover }).ready()
      else if (words[0] === 'bin/parley.js') await verb(...words.slice(1))
      else await run('sh', ['-c', fill(command)], { cwd: directory, env: { ...clone, PATH } })
    }
    expect(clone.DATABASE_URL).toBe(urlOf('parley_clone'))
    const db = openDatabase({ connectionString: urlOf('parley_clone') }, { pool_size: 1 })
    const { beats } = await db.one<{ beats: number }>(
      sql`select restore_counter::int as beats from instance where unconfirmed_since is not null`,
    )
    await until('its worker has beaten three times', hangMs, () =>
      db.maybe(sql`select 1 from instance where restore_counter >= ${beats + 3}`),
    )
    const { leases } = await db.one<{ leases: number }>(
      sql`select count(*)::int as leases from account_hosts where lease_until > clock_timestamp()`,
    )
    expect({ leases, connections, sent: await sent() }).toEqual({ leases: 0, connections: 0, sent: 0 })
    // The original was not touched: it sends when its operator lets it.
    expect(await runVerb(['dispatch', 'on'], original)).toMatchObject({ code: 0 })
    await until('the original has sent', hangMs, async () => (await sent()) > 0)
    expect({ connections, sent: await sent() }).toEqual({ connections: 0, sent: 1 })
    // What the page warns of, and what shows that connections are counted here.
    await verb('dispatch', 'on')
    await until('the clone connects', hangMs, () => connections > 0)
    await db.close()
    centre.close()
  })
})
