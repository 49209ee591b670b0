/** The programs that read deploy/ check it themselves, where they are installed. Those that are not are skipped by name. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openEmbedded } from '../src/db/embedded.ts'
import { migrate } from '../src/db/migrate.ts'
import { openDatabase } from '../src/db/pool.ts'
import { sql } from '../src/db/sql.ts'
import { Certificates, hasOpenssl } from './harness/certificates.ts'
import { compose, deploy, textOf } from './harness/deploy.ts'
import { freePort, hangMs, until } from './harness/process.ts'
import { allow } from './harness/role.ts'
import { makeScratch } from './harness/scratch.ts'

const root = join(import.meta.dirname, '..')

// Debian keeps some of them where only root looks.
const PATH = `${process.env.PATH}:/usr/local/sbin:/usr/sbin:/sbin`
const isInstalled = (program: string) =>
  spawnSync('sh', ['-c', `command -v ${program}`], { env: { PATH } }).status === 0

describe('programs that check their own configuration', () => {
  let scratch: string
  let certificates: Certificates
  beforeAll(() => {
    scratch = mkdtempSync(join(tmpdir(), 'parley-deploy-'))
    certificates = new Certificates()
  })
  afterAll(() => {
    rmSync(scratch, { recursive: true })
    certificates.remove()
  })

  /** The file with a certificate that exists, in a directory that does. */
  function placed(file: string): string {
    const { key, cert } = certificates.make('localhost', { days: 2 })
    const [keyFile, certFile, both] = ['key.pem', 'cert.pem', 'both.pem'].map((name) =>
      join(scratch, name),
    ) as [string, string, string]
    writeFileSync(keyFile, key)
    writeFileSync(certFile, cert)
    writeFileSync(both, Buffer.concat([cert, key]))
    const copy = join(scratch, basename(file))
    writeFileSync(
      copy,
      textOf(file)
        .replace('/etc/ssl/parley/fullchain.pem', certFile)
        .replace('/etc/ssl/parley/privkey.pem', keyFile)
        .replace('/etc/haproxy/certs/parley.pem', both)
        .replace('/var/log/nginx', scratch)
        .replace('/opt/parley/node_modules/.bin/node', process.execPath)
        .replaceAll('/opt/parley', root),
    )
    return copy
  }

  const programs: readonly (readonly [program: string, file: string, args: (copy: string) => string[]])[] = [
    ['promtool', 'prometheus/alerts.yml', () => ['check', 'rules', join(deploy, 'prometheus', 'alerts.yml')]],
    [
      'promtool',
      'prometheus/alerts.test.yml',
      () => ['test', 'rules', join(deploy, 'prometheus', 'alerts.test.yml')],
    ],
    [
      'nginx',
      'nginx.conf',
      (copy) => ['-t', '-p', scratch, '-g', `pid ${join(scratch, 'pid')};`, '-c', copy],
    ],
    ['haproxy', 'haproxy.cfg', (copy) => ['-c', '-f', copy]],
    ['caddy', 'Caddyfile', (copy) => ['validate', '--adapter', 'caddyfile', '--config', copy]],
    ['docker-compose', 'compose.yml', () => ['--file', join(deploy, 'compose.yml'), 'config', '--quiet']],
    ['systemd-analyze', 'parley@.service', (copy) => ['verify', copy]],
  ]
  test.for(programs)('%s accepts %s', ([program, file, args], { skip }) => {
    if (!isInstalled(program)) skip(`${program} is not installed.`)
    if (!hasOpenssl) skip('openssl, which makes the certificates, is not installed.')
    const secrets = [
      'PARLEY_SECRET',
      'PARLEY_METRICS_TOKEN',
      'POSTGRES_PASSWORD',
      'DATABASE_PASSWORD',
      'REDIS_PASSWORD',
    ]
    const env = {
      ...Object.fromEntries(secrets.map((name) => [name, 'x'])),
      ...{ PATH, HOME: scratch, DOMAIN: 'localhost' },
    }
    // A file, because nginx cannot open the sockets that Node passes for pipes.
    const output = openSync(join(scratch, 'output'), 'w+')
    const { status } = spawnSync(program, args(placed(file)), { env, stdio: ['ignore', output, output] })
    const said = readFileSync(join(scratch, 'output'), 'utf8')
    closeSync(output)
    expect([status, said]).toEqual([0, expect.anything()])
    // It exits with 0 whatever it finds.
    if (program === 'systemd-analyze') expect(said).not.toContain('parley')
  })
})

describe('compose.yml', () => {
  let scratch: string
  const running: ChildProcess[] = []
  beforeAll(async () => {
    scratch = await makeScratch('parley-compose-')
  })
  afterAll(async () => {
    for (const child of running) child.kill('SIGKILL')
    rmSync(scratch, { recursive: true, force: true })
  })

  test('Redis starts with its command, and answers nothing without the password', async ({ skip }) => {
    if (!isInstalled('redis-server')) return skip('redis-server is not installed.')
    const { command, healthcheck } = compose.services.redis
    const port = await freePort()
    // Compose reads two dollar signs as one.
    const [shell, flag, script] = command.map((part: string) => part.replaceAll('$$', '$'))
    const env = { PATH, REDISCLI_AUTH: 'x'.repeat(64) }
    const listening = script.replace('redis-server ', `redis-server --port ${port} --bind 127.0.0.1 `)
    const server = spawn(shell, [flag, listening], { env, cwd: scratch, stdio: 'ignore' })
    running.push(server)
    const isHealthy = healthcheck.test[1].replace('redis-cli', `redis-cli -p ${port}`)
    await until('it is healthy', hangMs, () => spawnSync('sh', ['-c', isHealthy], { env }).status === 0)
    expect(spawnSync('sh', ['-c', isHealthy], { env: { PATH } }).status).not.toBe(0)
    const words = spawnSync('tr', ['\\0', ' '], { input: readFileSync(`/proc/${server.pid}/cmdline`) })
    expect(words.stdout.toString()).not.toContain(env.REDISCLI_AUTH)
    // The container's own process gets the signal.
    const ended = once(server, 'exit')
    server.kill('SIGTERM')
    expect((await ended)[0]).toBe(0)
  })

  test('postgres-role.sh hands an installation over from the superuser, and may run again', async ({
    skip,
  }) => {
    if (!isInstalled('psql')) return skip('psql is not installed.')
    const data_dir = join(scratch, 'data')
    await allow(data_dir, 'superuser')
    const embedded = await openEmbedded({ data_dir, claim: 'service' })
    const { host = '', user = '', password } = embedded.connection
    const superuser = openDatabase(embedded.connection, { pool_size: 1 })
    try {
      await superuser.pool.query('create database parley')
      const before = openDatabase({ ...embedded.connection, database: 'parley' }, { pool_size: 2 })
      await migrate(before)
      const env = {
        ...{ PATH, PGHOST: host, PGPASSWORD: String(password), POSTGRES_USER: user, POSTGRES_DB: 'parley' },
        DATABASE_PASSWORD: "it's a password",
      }
      for (const _ of ['first', 'again']) {
        const ran = spawnSync('sh', [join(deploy, 'postgres-role.sh')], { env, encoding: 'utf8' })
        expect([ran.status, ran.stderr, ran.stdout]).toEqual([0, '', ''])
      }
      const strangers = await before.rows(sql`
        select relname as name from pg_class where relnamespace = 'public'::regnamespace
          and relkind in ('r', 'p', 'i', 'S', 'v') and pg_get_userbyid(relowner) <> 'parley_owner'
        union all
        select p.proname from pg_proc p where pronamespace = 'public'::regnamespace
          and pg_get_userbyid(proowner) <> 'parley_owner'
          and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')`)
      expect(strangers).toEqual([])
      await before.close()
      const role = { ...embedded.connection, user: 'parley_owner', password: env.DATABASE_PASSWORD }
      const after = openDatabase({ ...role, database: 'parley' }, { pool_size: 2 })
      // What a migration does, and what only a superuser may.
      await after.pool.query('alter table workspaces add column probe int; drop table users cascade')
      await expect(after.pool.query('create role another')).rejects.toMatchObject({ code: '42501' })
      await expect(after.pool.query("copy workspaces to program 'cat'")).rejects.toMatchObject({
        code: '42501',
      })
      await after.close()
      // A new volume: the script has run, the migrations have not.
      await superuser.pool.query('create database fresh owner parley_owner')
      const fresh = openDatabase({ ...role, database: 'fresh' }, { pool_size: 2 })
      await migrate(fresh)
      await fresh.close()
    } finally {
      await superuser.close()
      await embedded.close()
    }
  })
})
