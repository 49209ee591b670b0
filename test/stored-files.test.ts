/** What files leave on the disk: nothing when they are refused or repeated, and never more than a workspace may store. */
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sql } from '../src/db/sql.ts'
import { chunkBytes, storeChunk } from '../src/ledger/files.ts'
import { newId } from '../src/lib/ids.ts'
import { findUndocumented } from './harness/documented.ts'
import { hangMs, until } from './harness/process.ts'
import type { Tenant } from './harness/service.ts'
import { openWorkplace, type Workplace } from './harness/worker.ts'

let workplace: Workplace
let tenant: Tenant
let other: Tenant
let account_id: string
let foreign_id: string
let chat_id: string

beforeAll(async () => {
  workplace = await openWorkplace()
  await workplace.work()
  tenant = await workplace.service.tenant()
  other = await workplace.service.tenant()
  account_id = await workplace.connected(tenant)
  foreign_id = await workplace.connected(other)
  const person = workplace.person()
  workplace.write(account_id, person, 'hello')
  workplace.write(foreign_id, person, 'hello')
  await workplace.untilStored(account_id, 1)
  await workplace.untilStored(foreign_id, 1)
  chat_id = `platform:chat:${person}`
  // Every chunk that was ever written, even if it was deleted.
  await workplace.db.run(sql`create table written (file_id uuid)`)
  await workplace.db.run(sql`
    create function note_written() returns trigger language plpgsql as $$
    begin
      insert into written values (new.file_id);
      return new;
    end $$`)
  await workplace.db.run(
    sql`create trigger written before insert on file_chunks for each row execute function note_written()`,
  )
})
afterAll(() => workplace.close())
beforeEach(async () => {
  await workplace.db.run(sql`delete from file_chunks`)
  await workplace.db.run(sql`delete from written`)
})

async function left(): Promise<{ written: number; stored: number }> {
  return workplace.db.one(sql`
    select (select count(*)::int from written) as written, (select count(*)::int from file_chunks) as stored`)
}

const file = Buffer.alloc(300_000, 'parley ')

interface UploadOptions {
  readonly fields?: readonly (readonly [name: string, value: string])[]
  readonly bytes?: Buffer
  /** Fields that come after the file. */
  readonly late?: UploadOptions['fields']
  readonly idempotency_key?: string | undefined
  readonly key?: string
}

/** The fields in order, then the file, then the late fields. */
async function upload({ fields, bytes = file, late = [], key = tenant.key, ...given }: UploadOptions = {}) {
  const data = new FormData()
  for (const [name, value] of fields ?? sound()) data.append(name, value)
  data.append('attachments', new Blob([bytes], { type: 'application/pdf' }), 'offer.pdf')
  for (const [name, value] of late) data.append(name, value)
  const idempotency_key = 'idempotency_key' in given ? given.idempotency_key : randomUUID()
  const response = await fetch(`${workplace.service.url}/api/v1/messages`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      ...(idempotency_key !== undefined && { 'idempotency-key': idempotency_key }),
    },
    body: data,
  })
  const body = (await response.json()) as Record<string, unknown>
  const answer = { status: response.status, headers: response.headers, body }
  const undocumented = findUndocumented('POST', '/messages', answer)
  if (undocumented) throw new Error(undocumented)
  return answer
}

function sound(): [string, string][] {
  return [
    ['account_id', account_id],
    ['chat_id', chat_id],
    ['text', 'a file'],
  ]
}

/** Valid fields, with one that is not. */
function but(name: string, value: string): [string, string][] {
  return sound().map(([field, usual]) => [field, field === name ? value : usual])
}

describe('fields before the file are checked before a byte of it is stored', () => {
  test.each<[string, () => UploadOptions, number, string]>([
    ['a foreign account', () => ({ fields: but('account_id', foreign_id) }), 403, 'account_unavailable'],
    ['an unknown chat', () => ({ fields: but('chat_id', 'platform:chat:9999') }), 403, 'chat_unavailable'],
    ['a malformed chat', () => ({ fields: but('chat_id', 'chat 7') }), 400, 'invalid_request'],
    ['a text that is too long', () => ({ fields: but('text', 'x'.repeat(4_097)) }), 400, 'invalid_request'],
    ['no key', () => ({ idempotency_key: undefined }), 400, 'idempotency_key_required'],
    ['a malformed key', () => ({ idempotency_key: 'x'.repeat(256) }), 400, 'invalid_request'],
  ])('%s', async (_, given, status, code) => {
    expect(await upload(given())).toMatchObject({ status, body: { code } })
    expect(await left()).toEqual({ written: 0, stored: 0 })
  })

  test('an instance whose sending is off', async () => {
    const set = (on: boolean) =>
      workplace.db.run(sql`update settings set value = ${JSON.stringify(on)}::jsonb where name = 'dispatch'`)
    await set(false)
    await workplace.service.settle()
    expect(await upload()).toMatchObject({ status: 503, body: { code: 'provider_unavailable' } })
    await set(true)
    await workplace.service.settle()
    expect(await left()).toEqual({ written: 0, stored: 0 })
  })

  test('a fault of the form is reported before one of its account', async () => {
    const fields = but('account_id', foreign_id)
    expect(await upload({ fields, bytes: Buffer.alloc(0) })).toMatchObject({
      status: 400,
      body: { code: 'unsupported_attachment' },
    })
    expect(await upload({ fields, late: [['subject', 'x']] })).toMatchObject({
      status: 400,
      body: { code: 'invalid_request' },
    })
    expect(await left()).toEqual({ written: 0, stored: 0 })
  })
})

describe('a refused or repeated form leaves nothing', () => {
  test.each<[string, () => UploadOptions, number, string]>([
    ['the account', () => ({ fields: [], late: but('account_id', foreign_id) }), 403, 'account_unavailable'],
    ['the chat', () => ({ fields: [], late: but('chat_id', 'platform:chat:9999') }), 403, 'chat_unavailable'],
    ['an unknown field', () => ({ late: [['subject', 'x']] }), 400, 'invalid_request'],
  ])('when %s is found invalid only after the file', async (_, given, status, code) => {
    expect(await upload(given())).toMatchObject({ status, body: { code } })
    expect(await left()).toEqual({ written: 2, stored: 0 })
  })

  test('a repeat and another payload under the same key store nothing, and the sent file is deleted', async () => {
    const idempotency_key = randomUUID()
    const first = await upload({ idempotency_key })
    expect(first).toMatchObject({ status: 200, body: { ok: true } })
    expect(await left()).toEqual({ written: 2, stored: 0 })
    const again = await upload({ idempotency_key })
    expect(again.body).toEqual(first.body)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(await upload({ idempotency_key, bytes: Buffer.from('other') })).toMatchObject({
      status: 400,
      body: { code: 'idempotency_collision' },
    })
    expect(await left()).toEqual({ written: 2, stored: 0 })
  })

  test('a repeat is answered also when the account is no longer eligible', async () => {
    const idempotency_key = randomUUID()
    const first = await upload({ idempotency_key })
    expect(first.status).toBe(200)
    await workplace.db.run(sql`update accounts set status = 'DISABLED' where id = ${account_id}`)
    await workplace.service.settle()
    expect((await upload({ idempotency_key })).body).toEqual(first.body)
    expect(await upload()).toMatchObject({ status: 403, body: { code: 'account_unavailable' } })
    expect(await left()).toEqual({ written: 2, stored: 0 })
    await workplace.db.run(sql`update accounts set status = 'READY' where id = ${account_id}`)
    await workplace.service.settle()
  })

  test('a permanent refusal of the platform, and a temporary one', async () => {
    for (const fault of ['refuse', 'flood_wait'] as const) {
      workplace.fault({ on: 'send', fault, seconds: 1, times: 1, account_id })
      expect((await upload()).status).not.toBe(200)
      expect((await left()).stored).toBe(0)
    }
    await until('the flood is over', hangMs, async () => (await upload()).status === 200)
  })

  test('a client that goes away in the middle', async () => {
    const { port, hostname } = new URL(workplace.service.url)
    const socket = connect(Number(port), hostname)
    const part = (name: string, value: string) =>
      `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
    const head = `${sound()
      .map(([name, value]) => part(name, value))
      .join('')}--b\r\nContent-Disposition: form-data; name="attachments"; filename="a"\r\n\r\n`
    socket.write(
      `POST /api/v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${tenant.key}\r\nIdempotency-Key: ${randomUUID()}\r\n` +
        `Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000000\r\n\r\n${head}`,
    )
    socket.write(file)
    await until('a chunk is stored', hangMs, async () => (await left()).stored > 0)
    socket.destroy()
    await until('nothing is left', hangMs, async () => (await left()).stored === 0)
  })
})

describe('what a workspace has stored is bounded', () => {
  test('429 with a sentence and Retry-After, nothing of it is left, and other workspaces are not affected', async () => {
    const bytes = Buffer.alloc(1_000_001)
    const answer = await upload({ bytes })
    expect(answer).toMatchObject({
      status: 429,
      body: { code: 'rate_limited', error: expect.stringContaining('files that this workspace') },
    })
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await left()).stored).toBe(0)
    // Up to the limit it is accepted.
    expect((await upload({ bytes: bytes.subarray(1) })).status).toBe(200)

    await storeChunk(workplace.db, {
      file_id: newId(),
      workspace_id: tenant.workspace_id,
      n: 0,
      bytes: bytes.subarray(1),
    })
    expect((await upload({ bytes: Buffer.from('x') })).status).toBe(429)
    const fields: UploadOptions['fields'] = but('account_id', foreign_id)
    expect((await upload({ fields, key: other.key, bytes: Buffer.from('x') })).status).toBe(200)
    await workplace.db.run(sql`delete from file_chunks`)
    expect((await upload()).status).toBe(200)
  })

  test('a fault of account or chat is reported first', async () => {
    const bytes = Buffer.alloc(1_000_001)
    const late = but('account_id', foreign_id)
    expect(await upload({ bytes, fields: [], late })).toMatchObject({ status: 403 })
    expect((await left()).stored).toBe(0)
  })

  test('concurrent chunks do not exceed it together', async () => {
    const { workspace_id } = tenant
    const chunk = () => ({ file_id: newId(), workspace_id, n: 0, bytes: Buffer.alloc(chunkBytes) })
    const stored = await Promise.allSettled(
      Array.from({ length: 12 }, () => storeChunk(workplace.db, chunk())),
    )
    expect(stored.filter(({ status }) => status === 'fulfilled')).toHaveLength(
      Math.floor(1_000_000 / chunkBytes),
    )
    const refused = stored.flatMap((one) => (one.status === 'rejected' ? one.reason.code : []))
    expect(new Set(refused)).toEqual(new Set(['rate_limited']))
  })
})
