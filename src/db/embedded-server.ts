/** The server process of the embedded PostgreSQL: starts it, finds it again after a crash, stops it. */
import { readFile, rm, stat, truncate } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Cluster, launch } from './embedded-cluster.ts'

const logBytesMax = 10 * 1024 * 1024

export async function startServer(place: Cluster) {
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
    // Errors quote statements and values. The service receives them too, and its log leaves those out.
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

/** An eighth of the memory: a page outside the buffers is read through the system, at ten times the cost. */
export function buffersFor(bytes: number): string {
  const megabytes = Math.floor(bytes / 8 / 1024 ** 2)
  return `${Math.min(2048, Math.max(128, megabytes))}MB`
}

/** The process id of the server that runs on this cluster, if one does. */
export async function findServer(place: Cluster): Promise<number | undefined> {
  const file = await readFile(join(place.cluster, 'postmaster.pid'), 'utf8').catch(() => '')
  const pid = Number(file.split('\n')[0])
  if (!Number.isSafeInteger(pid) || pid <= 0 || !isAlive(pid)) return undefined
  return (await isServer(pid, place)) ? pid : undefined
}

async function isServer(pid: number, place: Cluster): Promise<boolean> {
  if (process.platform !== 'linux') return true
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  return command.includes(place.cluster)
}

/**
 * Removes lock files that a crash left. Their process id may belong to another program by now, or to a dead child that is
 * not reaped yet; PostgreSQL would not start beside it. Called only when no server runs on the cluster.
 */
async function dropForeignLocks(place: Cluster): Promise<void> {
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

/** A fast shutdown: sessions end, everything is written. Returns once the process is gone. */
export async function stopServer(place: Cluster): Promise<void> {
  const pid = await findServer(place)
  if (!pid) return
  process.kill(pid, 'SIGINT')
  const deadline = performance.now() + 30_000
  while ((await findServer(place)) && performance.now() < deadline) await sleep(10)
  // Its pid file disappears a moment before the process. The wait is short, because an orphan may stay a zombie forever.
  const buried = performance.now() + 1_000
  while (isAlive(pid) && performance.now() < buried) await sleep(5)
}

/** An immediate shutdown for a server whose files are gone and that can write nothing. Returns once the process is gone. */
export async function killServer(place: Cluster, pid: number): Promise<void> {
  const runs = async () => isAlive(pid) && (await isServer(pid, place))
  if (await runs()) process.kill(pid, 'SIGQUIT')
  const deadline = performance.now() + 10_000
  while ((await runs()) && performance.now() < deadline) await sleep(10)
}
