/** What other processes can reach of the bundled PostgreSQL: a socket of our own, no network, no TLS, no superuser. */
import { chmod, readdir, readFile, readlink, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hangMs, until } from '../../test/harness/process.ts'
import { makeScratch } from '../../test/harness/scratch.ts'
import { type Embedded, openEmbedded } from './embedded.ts'
import { migrate } from './migrate.ts'
import { openDatabase } from './pool.ts'

let data_dir: string
let embedded: Embedded
let client: pg.Client
beforeAll(async () => {
  data_dir = await makeScratch('parley-embedded-')
  await chmod(data_dir, 0o755)
  embedded = await openEmbedded({ data_dir, claim: 'service' })
  client = new pg.Client(embedded.connection)
  await client.connect()
})
afterAll(async () => {
  await client.end()
  await embedded.close()
  await rm(data_dir, { recursive: true, force: true })
})

async function shows(name: string): Promise<string> {
  const { rows } = await client.query('select current_setting($1) as value', [name])
  return rows[0].value
}

test('listens on a socket and on no address, without TLS', async () => {
  expect(await shows('listen_addresses')).toBe('')
  expect(await shows('ssl')).toBe('off')
  expect(await shows('unix_socket_permissions')).toBe('0700')
})

test('no stored data needs its libraries for encryption, collation or XML', async () => {
  const db = openDatabase(embedded.connection, { pool_size: 2 })
  await migrate(db)
  await db.close()
  const { rows: extensions } = await client.query('select extname from pg_extension order by 1')
  expect(extensions).toEqual([{ extname: 'btree_gin' }, { extname: 'plpgsql' }])
  const { rows: databases } = await client.query('select distinct datlocprovider from pg_database')
  expect(databases).toEqual([{ datlocprovider: 'b' }])
  const { rows: columns } = await client.query(`
    select a.attrelid::regclass, a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid
      left join pg_collation l on l.oid = a.attcollation
    where c.relnamespace = 'public'::regnamespace and (a.atttypid = 'xml'::regtype or l.collprovider = 'i')`)
  expect(columns).toEqual([])
})

describe.runIf(process.platform === 'linux')('its processes', () => {
  test('have no port open, according to the system', async () => {
    const [pid = ''] = (await readFile(join(data_dir, 'postgres', 'postmaster.pid'), 'utf8')).split('\n')
    const sockets = await socketsOf(pid)
    expect(sockets.size).toBeGreaterThan(0)
    expect(await boundSockets(sockets, 'unix')).toBeGreaterThan(0)
    for (const kind of ['tcp', 'tcp6', 'udp', 'udp6'])
      expect([kind, await boundSockets(sockets, kind)]).toEqual([kind, 0])
  })

  /** The inode numbers of the sockets that a process has. */
  async function socketsOf(pid: string): Promise<Set<string>> {
    const directory = `/proc/${pid}/fd`
    const targets = await Promise.all(
      (await readdir(directory)).map((fd) => readlink(join(directory, fd)).catch(() => '')),
    )
    return new Set(targets.flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []))
  }

  async function boundSockets(sockets: ReadonlySet<string>, kind: string): Promise<number> {
    const table = await readFile(`/proc/net/${kind}`, 'utf8').catch(() => '')
    const column = kind === 'unix' ? 6 : 9
    const numbers = table.split('\n').map((line) => line.trim().split(/\s+/)[column] ?? '')
    return numbers.filter((number) => sockets.has(number)).length
  }
})

test('a server that is killed while it restarts is started again', { timeout: 40_000 }, async () => {
  const place = join(await makeScratch('parley-killed-'), 'data')
  const killed = await openEmbedded({ data_dir: place, claim: 'service' })
  const pidOf = async () => {
    const file = await readFile(join(place, 'postgres', 'postmaster.pid'), 'utf8').catch(() => '')
    return Number(file.split('\n')[0])
  }
  const pids = new Set<number>()
  // The first runs; the second has only written its number.
  while (pids.size < 2) {
    const pid = await pidOf()
    if (pid === 0 || pids.has(pid)) continue
    pids.add(pid)
    process.kill(pid, 'SIGKILL')
  }
  await until('it answers', hangMs, async () => {
    const attempt = new pg.Client(killed.connection)
    attempt.on('error', () => {})
    return attempt
      .connect()
      .then(() => true)
      .catch(() => undefined)
      .finally(() => attempt.end().catch(() => {}))
  })
  expect(pids).not.toContain(await pidOf())
  await killed.close()
  await rm(dirname(place), { recursive: true, force: true })
})

describe('the role of a new directory', () => {
  test('may only own its database', async () => {
    const { rows } = await client.query(`
      select rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls,
        (select datdba = r.oid from pg_database where datname = current_database()) as owner
      from pg_roles r where rolname = current_user`)
    expect(rows).toEqual([
      {
        rolsuper: false,
        rolcreaterole: false,
        rolcreatedb: false,
        rolreplication: false,
        rolbypassrls: false,
        owner: true,
      },
    ])
  })

  test.each([
    ['read a file', `select pg_read_file('/etc/passwd')`],
    ['write a file', `copy (select 1) to '/tmp/parley-written'`],
    ['run a program', `copy (select 1) to program 'true'`],
    ['change the server', `alter system set ssl = 'on'`],
  ])('may not %s', async (_, statement) => {
    await expect(client.query(statement)).rejects.toMatchObject({ code: '42501' })
  })

  test('is the only one with a known password', async () => {
    const { rows } = await client.query(`select rolname from pg_roles where rolcanlogin order by 1`)
    expect(rows.map(({ rolname }) => rolname)).toEqual(['parley', 'postgres'])
    const other = new pg.Client({ ...embedded.connection, user: 'postgres' })
    await expect(other.connect()).rejects.toMatchObject({ code: '28P01' })
  })
})
