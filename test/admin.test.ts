/** The admin port: which processes have one, where it listens, what it serves, and when it controls the sandbox. */
import { rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeLogger } from '../src/cli/log.ts'
import { platformVariables } from '../src/cli/platforms.ts'
import { Service } from '../src/cli/service.ts'
import { readConfig } from '../src/config.ts'
import { migrationsDirectory } from '../src/db/migrate.ts'
import type { PlatformModule } from '../src/platform/module.ts'
import { sandboxModule } from '../src/platform/sandbox/module.ts'
import { copyDatabase, type TestDatabase } from './harness/database.ts'
import { endProcesses, type Parley, spawnParley } from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'
import { testSecret } from './harness/worker.ts'

let directory: string
let database: TestDatabase
beforeAll(async () => {
  directory = await makeScratch('parley-admin-')
  database = await copyDatabase()
})
afterAll(async () => {
  await endProcesses()
  await database.drop()
  await rm(directory, { recursive: true, force: true })
})

function run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Parley {
  return spawnParley([...args, '--data-dir', join(directory, 'shared')], {
    DATABASE_URL: database.url,
    PARLEY_SECRET: testSecret,
    ...env,
  })
}

async function end(parley: Parley): Promise<void> {
  parley.signal('SIGTERM')
  expect(await parley.exit()).toMatchObject({ code: 0 })
}

async function statusOf(url: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  const response = await fetch(url, { headers })
  await response.arrayBuffer()
  return response.status
}

function listen(port: number): Promise<Server | undefined> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}

async function close(server: Server): Promise<void> {
  await new Promise((resolve) => server.close(resolve))
}

/** A free port followed by another free one. The second stays taken until it is closed. */
async function findPair(): Promise<{ port: number; next: Server }> {
  for (;;) {
    const first = await listen(0)
    const bound = first?.address()
    if (!first || !bound || typeof bound === 'string') throw new Error('No port is free.')
    const next = await listen(bound.port + 1)
    await close(first)
    if (next) return { port: bound.port, next }
  }
}

describe('parley start with a database of its own', () => {
  let start: Parley
  let base: string
  let admin: string
  beforeAll(async () => {
    start = run(['start', '--port', '0'], { PARLEY_METRICS_TOKEN: 'a token of 16 characters' })
    base = await start.ready()
    admin = await start.admin()
  })
  afterAll(() => end(start))
  const token = { authorization: 'Bearer a token of 16 characters' }

  test('200 for health and metrics, 404 on the main port for metrics', async () => {
    expect(new URL(admin).hostname).toBe('127.0.0.1')
    for (const path of ['/healthz', '/readyz']) {
      expect(await statusOf(admin + path)).toBe(200)
      expect(await statusOf(base + path)).toBe(200)
    }
    const response = await fetch(`${admin}/metrics`, { headers: token })
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('parley_http_dropped_total{reason="pipelining"} 0')
    expect(await statusOf(`${base}/metrics`, token)).toBe(404)
  })

  test('404 for metrics without the token, through a proxy, and for a page', async () => {
    const refused: Record<string, string>[] = [
      {},
      { authorization: 'Bearer another token of ours' },
      { ...token, 'x-forwarded-for': '10.0.0.1' },
      { ...token, via: '1.1 proxy' },
      { ...token, origin: 'http://localhost' },
    ]
    for (const headers of refused) expect(await statusOf(`${admin}/metrics`, headers)).toBe(404)
    for (const path of ['/%6detrics', '/%68ealthz']) expect(await statusOf(admin + path, token)).toBe(404)
    for (const path of ['/healthz', '/readyz']) {
      expect(await statusOf(admin + path, { 'x-real-ip': '10.0.0.1' })).toBe(404)
    }
  })

  test('404 for the sandbox while its control is not open', async () => {
    expect(await statusOf(`${admin}/sandbox/v1/journal`)).toBe(404)
    expect(await statusOf(`${base}/docs/sandbox.json`)).toBe(404)
  })
})

test('parley start uses the port after --port as its admin port, and says so when it is taken', async () => {
  const { port, next } = await findPair()
  const exit = await run(['start', '--port', String(port)]).exit()
  expect(exit).toMatchObject({
    code: 1,
    stderr: `Port ${port + 1} is in use, perhaps by another Parley. Choose another port with --admin-port, or stop the process that uses it.\n`,
  })
  await close(next)
  const start = run(['start', '--port', String(port)])
  expect(await start.ready()).toBe(`http://127.0.0.1:${port}`)
  expect(await start.admin()).toBe(`http://127.0.0.1:${port + 1}`)
  await end(start)
})

test('parley serve and parley work have none unless it is configured', async () => {
  const none = [run(['serve', '--port', '0']), run(['work', '--port', '0'])]
  const named = [
    run(['serve', '--port', '0', '--admin-port', '0']),
    run(['work', '--port', '0'], { PARLEY_ADMIN_PORT: '0' }),
  ]
  for (const each of none) {
    const base = await each.ready()
    await expect(each.admin()).rejects.toThrow('It has no admin port.')
    expect(await statusOf(`${base}/metrics`)).toBe(404)
  }
  for (const each of named) expect(await statusOf(`${await each.admin()}/metrics`)).toBe(200)
  for (const each of [...none, ...named]) await end(each)
})

test('refuses to control the sandbox on an admin port that other machines can reach', async () => {
  const env = { PARLEY_SANDBOX_CONTROL: 'on', PARLEY_ADMIN_HOST: '0.0.0.0' }
  const { code, stderr } = await run(['start', '--port', '0'], env).exit()
  expect(code).not.toBe(0)
  expect(stderr).toContain('PARLEY_SANDBOX_CONTROL=on needs an admin port on loopback')
})

const nobody: PlatformModule = {
  name: 'theirs',
  variables: {},
  reach: async () => [],
  open: async () => ({
    platform: {
      name: 'theirs',
      paceMs: 0,
      gapJitter: 0,
      coldRamp: false,
      takeoverSeconds: 0,
      connect: async () => ({ kind: 'not_written', reason: 'The platform is unreachable.' }),
      close: async () => {},
    },
    real: true,
    close: async () => {},
  }),
}

/** The demo as `parley start` makes it, next to these platforms. */
async function openDemo(
  name: string,
  env: Readonly<Record<string, string>>,
  platforms: readonly PlatformModule[],
): Promise<Service> {
  const config = readConfig({ PARLEY_LOG_LEVEL: 'silent', ...env }, platformVariables)
  const parts = {
    routes: [],
    dashboard: { workspaceRoutes: [], ownRoutes: [] },
    operations: [],
    loops: [],
    platforms,
    migrations: [migrationsDirectory],
  }
  return Service.open(parts, {
    role: 'start',
    config,
    log: makeLogger('silent'),
    data_dir: join(directory, name),
    port: 0,
    admin_port: 0,
    demo: true,
  })
}

describe('the control of the sandbox in the demo', () => {
  test.each([
    ['plain', {}, [sandboxModule], 200],
    ['opened', { PARLEY_ADMIN_HOST: '0.0.0.0' }, [sandboxModule], 404],
    ['real', {}, [sandboxModule, nobody], 404],
  ] as const)('%s: %j gives the expected answer', async (name, env, platforms, status) => {
    const service = await openDemo(name, env, platforms)
    try {
      const { admin_address } = await service.begin()
      expect(await statusOf(`${admin_address}/healthz`)).toBe(200)
      expect(await statusOf(`${admin_address}/sandbox/v1/journal`)).toBe(status)
    } finally {
      await service.stop()
    }
  })

  test('is refused with a sentence next to a platform of real people', async () => {
    const service = await openDemo('asked', { PARLEY_SANDBOX_CONTROL: 'on' }, [sandboxModule, nobody])
    try {
      await expect(service.begin()).rejects.toThrow('cannot be combined with theirs')
    } finally {
      await service.stop()
    }
  })
})
