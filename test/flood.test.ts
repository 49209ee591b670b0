/**
 * Endless requests from a caller without a key: health is still answered, memory stays constant, and dropped requests
 * are counted and logged.
 */
import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Patch, patchEnv } from './faults/patch.ts'
import { copyDatabase, type TestDatabase } from './harness/database.ts'
import { endProcesses, hangMs, type Parley, spawnParley, until } from './harness/process.ts'
import { testSecret } from './harness/worker.ts'

const megabyte = 1024 ** 2
const connectionsMax = 60
let database: TestDatabase
let service: Parley
let base: string
let admin: string

beforeAll(async () => {
  database = await copyDatabase()
  const brief: readonly Patch[] = [
    { marker: 'limit: reader without progress', replace: 'const stalledMsMax = 2_000' },
    { marker: 'limit: connections in all', replace: `const connectionsMax = ${connectionsMax}` },
  ]
  const patched = patchEnv(brief)
  service = spawnParley(['serve', '--port', '0', '--admin-port', '0'], {
    DATABASE_URL: database.url,
    PARLEY_SECRET: testSecret,
    ...patched,
    NODE_OPTIONS: `--max-old-space-size=512 ${patched.NODE_OPTIONS}`,
  })
  base = await service.ready()
  admin = await service.admin()
})
afterAll(async () => {
  service.signal('SIGTERM')
  // The test does not wait for a client that was cut off in a queue of requests.
  expect(await service.exit()).toMatchObject({ code: 0 })
  await endProcesses()
  await database.drop()
})

function dial(): Socket {
  const { hostname, port } = new URL(base)
  return connect(Number(port), hostname).on('error', () => {})
}

function requestsFor(path: string, count: number): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(count)
}

/** Sends this many bytes of requests over one connection after the other, however long it takes. */
async function flood(path: string, bytes: number, { reads }: { reads: boolean }): Promise<void> {
  const text = requestsFor(path, 2_000)
  for (let sent = 0; sent < bytes; ) {
    const socket = dial()
    if (reads) socket.resume()
    const closed = new Promise((resolve) => socket.once('close', resolve))
    while (!socket.destroyed && sent < bytes) {
      socket.write(text)
      sent += text.length
      // A working connection gets more; one that was cut is followed by another.
      await Promise.race([closed, sleep(100)])
    }
    socket.destroy()
    await closed
  }
}

/** Resident memory in bytes, according to the system. */
async function memory(): Promise<number> {
  const status = await readFile(`/proc/${service.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024
}

async function dropped(reason: string): Promise<number> {
  const text = await (await fetch(`${admin}/metrics`)).text()
  return Number(new RegExp(`^parley_http_dropped_total\\{reason="${reason}"\\} (\\d+)$`, 'm').exec(text)?.[1])
}

/** The CPU time of the service so far, in milliseconds. */
async function computed(): Promise<number> {
  const fields = (await readFile(`/proc/${service.pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? []
  // Ticks of a hundredth of a second, in the process and in the kernel for it.
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/**
 * How long it took, and the service's CPU time in the meantime: a caller waits for that, and on a busy machine for
 * other processes.
 */
async function askHealth(): Promise<{ ms: number; computedMs: number }> {
  const [startedAt, before] = [performance.now(), await computed()]
  const response = await fetch(`${base}/healthz`, { headers: { connection: 'close' } })
  expect(await response.json()).toEqual({ status: 'ok' })
  return { ms: performance.now() - startedAt, computedMs: (await computed()) - before }
}

describe('endless requests', () => {
  const paths = ['/api/v1/openapi.json', '/docs/js/scalar.js', '/readyz']

  test('leave health fast and memory constant', async () => {
    for (const path of paths) await (await fetch(base + path)).arrayBuffer()
    for (let n = 0; n < 50; n++) await askHealth()
    const idle = await memory()
    const most = { memory: idle, ms: 0, computedMs: 0 }
    let flooding = true
    const watch = (async () => {
      while (flooding) {
        const { ms, computedMs } = await askHealth()
        most.ms = Math.max(most.ms, ms)
        most.computedMs = Math.max(most.computedMs, computedMs)
        most.memory = Math.max(most.memory, await memory())
      }
    })()
    const clients = paths.flatMap((path) => [
      flood(path, 3.4 * megabyte, { reads: true }),
      flood(path, 3.4 * megabyte, { reads: false }),
    ])
    await Promise.all(clients)
    flooding = false
    await watch
    const grown = (most.memory - idle) / megabyte
    process.stdout.write(
      `flood: health within ${most.ms.toFixed(0)} ms (${most.computedMs} ms computed), ${grown.toFixed(0)} MB above idle\n`,
    )
    expect(most.computedMs).toBeLessThan(1_000)
    expect(grown).toBeLessThan(64)
    expect(await dropped('pipelining')).toBeGreaterThan(10)
    // The thousand requests that were already read from a cut connection do not even become requests.
    expect(await dropped('closed')).toBeLessThan(100)
    expect(service.stdout()).toContain('"reason":"pipelining"')
  })

  test('are served in order while they are few', async () => {
    const socket = dial()
    let heard = ''
    socket.on('data', (bytes) => {
      heard += bytes.toString('latin1')
    })
    socket.write(requestsFor('/healthz', 20))
    await until('every request is answered', hangMs, () => heard.split('{"status":"ok"}').length === 21)
    socket.destroy()
  })
})

describe('endless connections', () => {
  test('are cut above the maximum, and counted', async () => {
    const sockets = Array.from({ length: connectionsMax + 10 }, dial)
    const closed = sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve)))
    await Promise.any(closed)
    await until('ten are cut', hangMs, async () => (await dropped('connections')) >= 10)
    for (const socket of sockets) socket.destroy()
    await Promise.all(closed)
    await until('there is room again', hangMs, async () => (await statusOf('/healthz')) === 200)
  })
})

async function statusOf(path: string): Promise<number | undefined> {
  const response = await fetch(base + path).catch(() => undefined)
  await response?.arrayBuffer()
  return response?.status
}

describe('a reader of a long answer', () => {
  test('is cut when it reads nothing for long, and its request is dropped', async () => {
    const socket = dial().pause()
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(requestsFor('/docs/js/scalar.js', 20))
    await until('it is cut', hangMs, async () => (await dropped('stalled')) === 1)
    // Paused, it does not notice.
    socket.resume()
    await closed
  })

  test('is served while it reads, however slowly', async () => {
    const before = await dropped('stalled')
    const socket = dial()
    let cut = false
    let left = 0
    socket.once('close', () => {
      cut = true
    })
    socket.on('data', ({ length }) => {
      left -= length
      if (left <= 0) socket.pause()
    })
    socket.write(requestsFor('/docs/js/scalar.js', 20))
    // The system reports progress to the service in pieces of about a megabyte.
    for (const end = performance.now() + 6_000; performance.now() < end; await sleep(250)) {
      left = megabyte
      socket.resume()
    }
    expect([cut, await dropped('stalled')]).toEqual([false, before])
    socket.destroy()
  })
})
