/** Answers too long for memory: the reader leaves or is slow, or the database becomes unreachable. */
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../src/db/sql.ts'
import { hangMs, until } from './harness/process.ts'
import { openService, type Service, type Tenant } from './harness/service.ts'

const count = 120_000
let service: Service
let own: Tenant

beforeAll(async () => {
  service = await openService({ env: { PARLEY_POOL_SIZE: '5' } })
  own = await service.tenant('Long')
  await place(service, own, count)
})
afterAll(() => service.close())

async function place(at: Service, { workspace_id }: Tenant, chats: number): Promise<void> {
  const account_id = await at.account(workspace_id)
  for (let from = 1; from <= chats; from += 10_000) {
    await at.app.db.run(sql`
      insert into chats (account_id, chat_id, workspace_id, kind, placed_at)
      select ${account_id}, n, ${workspace_id}, 'private', now()
      from generate_series(${from}::int, ${from + 9_999}::int) n`)
  }
}

const open = () =>
  fetch(`${service.url}/api/v1/pipeline`, { headers: { authorization: `Bearer ${own.key}` } })
const alive = async () => (await service.get('/chats?account_id=none', { key: own.key })).status

describe('GET /pipeline without limit', () => {
  test('200 whole, with the headers of every answer', async () => {
    const response = await open()
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(response.headers.get('x-ratelimit-limit')).toBeTruthy()
    expect(response.headers.get('content-length')).toBeNull()
    const { placements } = (await response.json()) as { placements: unknown[] }
    expect(placements).toHaveLength(count)
  })

  test('200 to HEAD, without a body', async () => {
    const response = await fetch(`${service.url}/api/v1/pipeline`, {
      method: 'HEAD',
      headers: { authorization: `Bearer ${own.key}` },
    })
    expect([response.status, await response.text()]).toEqual([200, ''])
    expect(response.headers.get('content-length')).toBeNull()
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
  })

  test('HEAD reads no more than the beginning', async () => {
    let asked = 0
    const count = () => asked++
    service.app.db.pool.on('acquire', count)
    try {
      await fetch(`${service.url}/api/v1/pipeline`, {
        method: 'HEAD',
        headers: { authorization: `Bearer ${own.key}` },
      })
      await sleep(1_000)
    } finally {
      service.app.db.pool.off('acquire', count)
    }
    expect(asked).toBeLessThan(20)
  })

  test('logs a reader that leaves', async () => {
    const lines = () => service.log.filter((line) => line.includes('before it had the whole response'))
    const before = lines().length
    const leave = new AbortController()
    const response = await fetch(`${service.url}/api/v1/pipeline`, {
      headers: { authorization: `Bearer ${own.key}` },
      signal: leave.signal,
    })
    await response.body?.getReader().read()
    leave.abort()
    await until('the log has it', hangMs, () => lines().length > before)
    expect(JSON.parse(lines().at(-1) ?? '')).toMatchObject({
      level: 'info',
      request_id: response.headers.get('x-request-id'),
      operation: 'get_pipeline',
      status: 200,
      workspace_id: own.workspace_id,
    })
  })

  test('slow readers hold no connection of the database, and one that leaves leaves nothing behind', async () => {
    // Twice as many as the pool has; none of them reads on.
    const sockets = Array.from({ length: 4 }, () => dawdle(service.url, own.key))
    try {
      const { pool } = service.app.db
      await sleep(500)
      await until('nothing is asked any more', hangMs, async () => pool.idleCount === pool.totalCount)
      expect(await alive()).toBe(403)
    } finally {
      for (const socket of sockets) socket.destroy()
    }
    await sleep(300)
    expect(service.log.filter((line) => line.includes('a request failed unexpectedly'))).toEqual([])
    expect(await alive()).toBe(403)
  })

  test('an answer that cannot be finished does not look finished', async () => {
    const response = await open()
    const reader = response.body?.getReader()
    await reader?.read()
    await service.app.db.run(sql`alter table chats rename to chats_away`)
    try {
      const rest = async () => {
        while (!(await reader?.read())?.done) {
          // Reads on.
        }
      }
      await expect(rest()).rejects.toThrow()
      const line = service.log.find((line) => line.includes('a response was cut off')) ?? '{}'
      expect(JSON.parse(line)).toMatchObject({ level: 'warn', operation: 'get_pipeline' })
      expect(line).toContain('schema_unavailable')
      expect(await open()).toMatchObject({ status: 503 })
    } finally {
      await service.app.db.run(sql`alter table chats_away rename to chats`)
    }
    expect(await alive()).toBe(403)
  })
})

test('a slow reader does not keep the service from stopping', { timeout: 60_000 }, async () => {
  const stopping = await openService()
  const tenant = await stopping.tenant('Stopping')
  await place(stopping, tenant, 60_000)
  const socket = dawdle(stopping.url, tenant.key)
  await sleep(500)
  const startedAt = performance.now()
  await stopping.close()
  expect(performance.now() - startedAt).toBeLessThan(15_000)
  socket.destroy()
})

/** Requests everything and never reads on. */
function dawdle(url: string, key: string): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.pause()
  socket.on('error', () => {})
  socket.write(`GET /api/v1/pipeline HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n\r\n`)
  return socket
}
