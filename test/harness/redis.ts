/** A real Redis, where it is installed. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './process.ts'

export function hasRedis(): boolean {
  return spawnSync('redis-server', ['--version'], { encoding: 'utf8' }).stdout?.startsWith('Redis') === true
}

export interface RealRedis {
  readonly url: string
  /** Ends it without a farewell. */
  close(): Promise<void>
}

/** It may not listen yet: its clients connect by themselves. */
export async function openRedis(): Promise<RealRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'parley-redis-'))
  const port = await freePort()
  const options = ['--port', port, '--bind', '127.0.0.1', '--save', '', '--dir', directory]
  const server = spawn('redis-server', options, { stdio: 'ignore' })
  return {
    url: `redis://127.0.0.1:${port}`,
    async close() {
      const gone = new Promise((resolve) => server.once('close', resolve))
      if (server.exitCode === null && server.kill('SIGKILL')) await gone
      await rm(directory, { recursive: true, force: true })
    },
  }
}
