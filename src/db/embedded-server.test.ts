import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import type { Cluster } from './embedded-cluster.ts'
import { buffersFor, killServer } from './embedded-server.ts'

test('buffersFor returns an eighth of the memory, within its bounds', () => {
  const gigabyte = 1024 ** 3
  expect([0.5, 1, 4, 24, 512].map((size) => buffersFor(size * gigabyte))).toEqual([
    '128MB',
    '128MB',
    '512MB',
    '2048MB',
    '2048MB',
  ])
})

test.runIf(process.platform === 'linux')(
  "ends a server by its process id only if it is the cluster's",
  async () => {
    const cluster = '/somewhere/parley/postgres'
    const [server, other] = [cluster, '/elsewhere'].map((directory) => {
      const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', directory])
      return { pid: child.pid ?? 0, child, exited: once(child, 'exit') }
    })
    if (!server || !other) throw new Error('Neither was spawned.')
    await killServer({ cluster } as Cluster, server.pid)
    await killServer({ cluster } as Cluster, other.pid)
    expect(await server.exited).toEqual([null, 'SIGQUIT'])
    expect(other.child.exitCode ?? other.child.signalCode).toBe(null)
    other.child.kill()
    await other.exited
  },
)
