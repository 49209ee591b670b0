/** A real PgBouncer, where it is installed: with its own defaults, but for where it listens, whom it admits and what a test sets. */
import { spawn, spawnSync } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Server } from './cluster.ts'
import { freePort, hangMs, until } from './process.ts'

/** Debian installs it where only root looks. */
const env = { PATH: `${process.env.PATH}:/usr/sbin` }

export function hasPgBouncer(): boolean {
  return spawnSync('pgbouncer', ['--version'], { env }).status === 0
}

export interface PgBouncer {
  readonly port: number
  close(): Promise<void>
}

/** `settings` are lines of its section `[pgbouncer]`. */
export async function openPgBouncer(
  { host, user, password }: Server,
  settings: readonly string[],
): Promise<PgBouncer> {
  const port = Number(await freePort())
  const folder = await mkdtemp(join(tmpdir(), 'parley-pgbouncer-'))
  const file = join(folder, 'pgbouncer.ini')
  const server = `* = host=${host} port=5432 user=${user} password=${password}`
  const own = ['listen_addr = 127.0.0.1', `listen_port = ${port}`, 'unix_socket_dir =', 'auth_type = any']
  await writeFile(file, ['[databases]', server, '[pgbouncer]', ...own, ...settings, ''].join('\n'))
  await chmod(folder, 0o755)
  const asUser = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const pooler = spawn('pgbouncer', [...asUser, file], { env, stdio: 'ignore' })
  const close = async () => {
    const gone = new Promise((resolve) => pooler.once('close', resolve))
    if (pooler.exitCode === null && pooler.kill('SIGKILL')) await gone
    await rm(folder, { recursive: true })
  }
  try {
    await until('PgBouncer listens', hangMs, () => isListening(port))
    return { port, close }
  } catch (error) {
    await close()
    throw error
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
