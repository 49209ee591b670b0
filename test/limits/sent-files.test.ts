/** Clients that ask for stored files and do not read them: a workspace has four places here, the process six (`patched.ts`). */
import { get, type IncomingMessage } from 'node:http'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import { chunkBytes } from '../../src/ledger/files.ts'
import { newId } from '../../src/lib/ids.ts'
import { hangMs, until } from '../harness/process.ts'
import { openService, type Service, type Tenant } from '../harness/service.ts'

let service: Service
const open: IncomingMessage[] = []
beforeAll(async () => {
  service = await openService()
})
afterAll(() => service.close())
afterEach(async () => {
  for (const response of open.splice(0)) response.destroy()
})

const size = 48 * chunkBytes

interface Stored extends Tenant {
  readonly path: string
}

/** A tenant with a stored file, more than sockets take in. */
async function withFile(name: string): Promise<Stored> {
  const { db } = service.app
  const tenant = await service.tenant(name)
  const { workspace_id } = tenant
  const account_id = await service.account(workspace_id)
  await service.chat({ account_id, workspace_id })
  const file = {
    index: 0,
    kind: 'file',
    file_name: 'large.bin',
    media_type: 'application/octet-stream',
    size,
  }
  await db.run(sql`
    update messages set attachments = ${JSON.stringify([file])}::jsonb where account_id = ${account_id}`)
  const file_id = newId()
  await db.run(sql`
    insert into media_files (id, account_id, chat_id, message_id, index, workspace_id, size, ended_at, head)
    values (${file_id}, ${account_id}, 42, 1, 0, ${workspace_id}, ${size}, clock_timestamp(), '')`)
  await db.run(sql`
    insert into media_chunks (file_id, n, bytes)
    select ${file_id}, n, ${Buffer.alloc(chunkBytes, 'file')}::bytea
    from generate_series(0, ${size / chunkBytes - 1}::int) n`)
  const path = `/chats/platform:chat:42/messages/1/attachments/0?account_id=${account_id}`
  return { ...tenant, path }
}

/** The head of the answer; the rest is not read. */
function begin({ path, key }: Stored, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  const asked = { agent: false, headers: { authorization: `Bearer ${key}`, ...headers } }
  return new Promise((resolve, reject) => {
    const request = get(`${service.url}/api/v1${path}`, asked, (response) => {
      response.on('error', () => {})
      open.push(response)
      resolve(response)
    })
    request.on('error', reject)
  })
}

const statuses = (answers: readonly IncomingMessage[]) => answers.map(({ statusCode }) => statusCode)

async function beginMany(stored: Stored, count: number): Promise<IncomingMessage[]> {
  const answers: IncomingMessage[] = []
  for (let n = 0; n < count; n++) answers.push(await begin(stored))
  return answers
}

test('429 with Retry-After beyond the places of a workspace, and 200 once one has ended; another workspace gets 200', async () => {
  const [greedy, other] = [await withFile('Greedy'), await withFile('Other')]
  expect(statuses(await beginMany(greedy, 4))).toEqual([200, 200, 200, 200])
  const refused = await service.get(greedy.path, { key: greedy.key })
  expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
  expect(refused.headers.get('retry-after')).toBe('5')
  expect((await begin(greedy, { range: 'bytes=0-9' })).statusCode).toBe(429)
  expect((await begin(other)).statusCode).toBe(200)
  open[0]?.destroy()
  await until('the place is free', hangMs, async () => (await begin(greedy)).statusCode === 200)
})

test('a file that was read to its end has no place any more, nor has one that was only asked about', async () => {
  const stored = await withFile('Reader')
  for (let n = 0; n < 6; n++) {
    const answer = await begin(stored)
    let read = 0
    for await (const bytes of answer) read += bytes.length
    expect(read).toBe(size)
  }
  for (let n = 0; n < 6; n++) {
    const headers = { authorization: `Bearer ${stored.key}` }
    const { status } = await fetch(`${service.url}/api/v1${stored.path}`, { method: 'HEAD', headers })
    expect(status).toBe(200)
  }
  expect((await begin(stored)).statusCode).toBe(200)
})

test('when the process has no place, the oldest answer of the workspace with the most ends; nobody gives way to one with as many', async () => {
  const [most, second, third] = [await withFile('Most'), await withFile('Second'), await withFile('Third')]
  const [oldest, ...rest] = await beginMany(most, 4)
  expect(statuses(await beginMany(second, 2))).toEqual([200, 200])
  // Four and two: the first of the four ends.
  const cut = new Promise((resolve) => oldest?.once('close', resolve))
  oldest?.resume()
  expect((await begin(third)).statusCode).toBe(200)
  await cut
  expect(oldest?.complete).toBe(false)
  // Three, two and one; then two of each.
  expect((await begin(third)).statusCode).toBe(200)
  expect((await begin(third)).statusCode).toBe(429)
  expect((await begin(second)).statusCode).toBe(429)
  expect(rest.filter(({ destroyed }) => destroyed)).toHaveLength(0)
})
