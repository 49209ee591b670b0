/** Many callers at once, and callers who read slowly: what a file costs while it is being sent. */
import { createHash } from 'node:crypto'
import { get, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import v8 from 'node:v8'
import vm from 'node:vm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hangMs, until } from '../../../test/harness/process.ts'
import type { Tenant } from '../../../test/harness/service.ts'
import { openWorkplace, type Workplace } from '../../../test/harness/worker.ts'
import { hashOf } from '../../../test/platform/conformance-downloads.ts'
import { sql } from '../../db/sql.ts'
import { makeFile } from '../../platform/sandbox/control-files.ts'
import { writeMessage } from '../../platform/sandbox/person-acts.ts'

const size = 3_000_000
let place: Workplace
let tenant: Tenant
let account_id: string
beforeAll(async () => {
  place = await openWorkplace()
  tenant = await place.service.tenant()
  await place.work()
  account_id = await place.connected(tenant)
})
afterAll(() => place.close())

async function sendFiles(count: number, bytes = size): Promise<string[]> {
  const person_id = place.person()
  const ids = Array.from({ length: count }, (_, n) => {
    const file = makeFile({ size: bytes, seed: n })
    return writeMessage(place.sandbox.world, { account_id, person_id, text: '', file })
  })
  await until('the messages are stored', hangMs, async () => {
    const stored = await place.messages(account_id)
    return stored.some(({ id }) => id === String(ids.at(-1)))
  })
  return ids.map(
    (id) => `/chats/platform:chat:${person_id}/messages/${id}/attachments/0?account_id=${account_id}`,
  )
}

function open(path: string): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${tenant.key}` }
  return new Promise((resolve, reject) => {
    get(`${place.service.url}/api/v1${path}`, { headers, agent: false }, resolve).on('error', reject)
  })
}

async function read(path: string, pauseMs: number): Promise<string> {
  const hash = createHash('sha256')
  const response = await open(path)
  if (response.statusCode === 503) {
    // A busy machine needs longer than a caller waits; the download continues.
    response.resume()
    return read(path, pauseMs)
  }
  let seen = 0
  for await (const bytes of response) {
    hash.update(bytes)
    seen += bytes.length
    // Pauses for each MB, so that every reader is behind for most of the time.
    if (pauseMs > 0 && seen % 1_000_000 < bytes.length) await sleep(pauseMs)
  }
  return hash.digest('hex')
}

v8.setFlagsFromString('--expose-gc')
const collectGarbage = vm.runInNewContext('gc') as () => void

/** The most memory outside and inside V8's heap that is held while the work runs, beyond what was there before. */
async function peakOf(work: Promise<unknown>): Promise<number> {
  const used = () => {
    collectGarbage()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const before = used()
  let most = 0
  let over = false
  const watching = (async () => {
    while (!over) {
      most = Math.max(most, used() - before)
      await sleep(200)
    }
  })()
  await work.finally(() => {
    over = true
  })
  await watching
  return most
}

test('20 downloads at once, of 3 MB each, cost less than 64 MB, and every one arrives whole', async () => {
  // The first downloads allocate what every later one uses.
  for (const path of await sendFiles(5)) await read(path, 0)
  const paths = await sendFiles(20)
  const reading = Promise.all(paths.map((path) => read(path, 50)))
  expect(await peakOf(reading)).toBeLessThan(64 * 1024 * 1024)
  expect(await reading).toEqual(paths.map((_, n) => hashOf(size, n)))
})

test('a stalled reader holds no database connection and little memory; one that disconnects ends the response', async () => {
  const [path = ''] = await sendFiles(1)
  await read(path, 0)
  const responses = await Promise.all(Array.from({ length: 20 }, () => open(path)))
  const { pool } = place.db
  await until('nothing is read any more', hangMs, async () => pool.idleCount === pool.totalCount)
  expect((await place.service.get('/me', { key: tenant.key })).status).toBe(200)
  for (const response of responses) response.destroy()
  expect(place.service.log.filter((line) => line.includes('a request failed unexpectedly'))).toEqual([])
})

test('a file that is deleted while it is sent does not look complete', async () => {
  const [path = ''] = await sendFiles(1, 20_000_000)
  await read(path, 0)
  const response = await open(path)
  await place.db.run(sql`delete from media_files`)
  const rest = async () => {
    for await (const _ of response);
  }
  await expect(rest()).rejects.toThrow()
})
