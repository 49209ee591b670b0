/** Large and unfinished JSON bodies: parsed elsewhere, refused in the same words, bounded for each workspace. */
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readBody } from '../src/http/body.ts'
import type { FairQueue } from '../src/lib/queue.ts'
import { routes } from '../src/lists/routes.ts'
import { hangMs, until } from './harness/process.ts'
import { openService, type Service, type Tenant } from './harness/service.ts'

let service: Service
let one: Tenant
let other: Tenant
beforeAll(async () => {
  service = await openService()
  one = await service.tenant('One')
  other = await service.tenant('Other')
  for (const tenant of [one, other]) await service.allow(tenant)
  await service.open('extended')
})
afterAll(() => service.close())

async function post(body: Buffer, { key }: Tenant = one, path = '/campaigns/preview') {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(`${service.url}/api/v1${path}`, { method: 'POST', headers, body })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

/** The same JSON with white space, so that it is read in a thread. */
function padded(body: Buffer, before = Buffer.alloc(0)): Buffer {
  return Buffer.concat([before, Buffer.alloc(300_000, ' '), body])
}

describe('a body over 256 KB', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  const odd: Readonly<Record<string, Buffer>> = {
    'text that is not JSON': Buffer.from('{"name": nothing}'),
    'a text that never ends': Buffer.from('{"name": "x'),
    'an escape at the end': Buffer.from('{"name": "x\\'),
    nothing: Buffer.from(' '),
    'deep nesting': Buffer.from(`{"name": ${nested(40)}}`),
    'nesting up to the limit': Buffer.from(`{"name": ${nested(31)}}`),
    'a property twice': Buffer.from('{"name": "a", "n\\u0061me": "b"}'),
    'a property that ends with a backslash twice': Buffer.from('{"a\\\\": 1, "b\\"": 2, "a\\\\": 3}'),
    'the property __proto__': Buffer.from('{"__proto__": {}}'),
    'a NUL': Buffer.from('{"name": "a\\u0000"}'),
    'a lone surrogate': Buffer.from('{"contacts": [{"identifier": "\\ud800"}]}'),
    'a lone surrogate in a name': Buffer.from('{"contacts": [{"\\udc00": 1}]}'),
    'a number out of range': Buffer.from('{"max_followups": 1e999}'),
    'bytes that are not UTF-8': Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
    'many properties': Buffer.from(`{${Array.from({ length: 201 }, (_, n) => `"p${n}":1`).join(',')}}`),
    'many items': Buffer.from(`{"contacts": [${Array(10_001).fill('1').join(',')}]}`),
    'an unknown property': Buffer.from('{"nmae": "x"}'),
    'a list': Buffer.from('[]'),
    'a text': Buffer.from('"text"'),
    null: Buffer.from('null'),
  }
  test.each(Object.entries(odd))('400 in the same words as a small one: %s', async (_, body) => {
    const small = await post(body)
    expect(small.status).toBe(400)
    expect(await post(padded(body))).toEqual(small)
  })

  test('400 with a byte order mark, as a small one', async () => {
    const mark = Buffer.from('\ufeff')
    const body = Buffer.from('{"name": "x"}')
    const small = await post(Buffer.concat([mark, body]))
    expect(small.status).toBe(400)
    expect(await post(padded(body, mark))).toEqual(small)
  })

  test('201 with every character as it was sent', async () => {
    const name = 'é😀\u202e"\\/\b\f\n\r\t\u2028 ~'
    const account_id = await service.account(one.workspace_id)
    const contacts = Array.from({ length: 3_000 }, (_, n) => ({ identifier: `@person_${n}`, name }))
    const body = { name, message_text: 'Hello {{name}}', account_pool: [account_id], contacts }
    const text = Buffer.from(JSON.stringify(body))
    const made = await post(padded(text), one, '/campaigns')
    expect(made).toMatchObject({ status: 201, body: { campaign: { name } } })
  })

  test('is parsed in turn, and not for a caller who has left', async () => {
    const raw = (bytes: Buffer) =>
      Object.assign(Readable.from([bytes.subarray(0, 9), bytes.subarray(9)]), {
        headers: { 'content-type': 'application/json' },
      }) as never
    const sender = {
      source: 'test',
      left: () => AbortSignal.abort(new Error('left')),
      onEnd: () => {},
    }
    const rules = { method: 'POST', body: true }
    expect(await readBody(raw(Buffer.from('{ "a"     : 1 }')), rules, sender)).toEqual({ a: 1 })
    await expect(readBody(raw(padded(Buffer.from('{}'))), rules, sender)).rejects.toThrow('left')
  })

  test('401 for a key that is refused, whatever the body says', async () => {
    const stranger = { ...one, key: `${one.key.slice(0, -1)}0` }
    const answer = await post(padded(Buffer.from('{"name": nothing}')), stranger)
    expect(answer).toMatchObject({ status: 401, body: { code: 'invalid_key' } })
  })
})

/** Sends the head and the first bytes of a body of 8 MB, and never the rest. */
function unfinished({ key }: Tenant, bytes: number): { socket: Socket; heard: () => string } {
  const { hostname, port } = new URL(service.url)
  const socket = connect(Number(port), hostname)
  let heard = ''
  socket.setEncoding('latin1').on('data', (text) => {
    heard += text
  })
  socket.on('error', () => {})
  socket.write(
    `POST /api/v1/campaigns HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${key}\r\n` +
      'Content-Type: application/json\r\nContent-Length: 8000000\r\n\r\n',
  )
  socket.write(Buffer.alloc(bytes, ' '))
  return { socket, heard: () => heard }
}

describe('unfinished bodies', () => {
  test('429 once those of a workspace have 32 MiB: no other workspace is refused, and what they held is free again', async () => {
    const many = Array.from({ length: 12 }, () => unfinished(one, 7_900_000))
    const refused = () => many.filter(({ heard }) => heard().includes('"rate_limited"')).length
    await until('all but four are refused', hangMs, () => refused() === 8)
    expect(many.filter(({ heard }) => heard().startsWith('HTTP/1.1 429 '))).toHaveLength(8)
    expect((await post(padded(Buffer.from('{}')), other)).body.code).toBe('invalid_request')
    for (const { socket } of many) socket.destroy()
    await until('the workspace has room', hangMs, async () => {
      const large = Buffer.concat([Buffer.alloc(7_900_000, ' '), Buffer.from('{}')])
      return (await post(large)).body.code === 'invalid_request'
    })
  })
})

test('a body counts until its answer: one of 7.9 MB after the other is read', async () => {
  const large = Buffer.concat([Buffer.alloc(7_900_000, ' '), Buffer.from('{}')])
  for (let n = 0; n < 6; n++) expect((await post(large)).body.code).toBe('invalid_request')
})

describe('POST /campaigns', () => {
  test('201 one after the other in a workspace, while another workspace has its own turn', async () => {
    const creation = routes.find(({ name }) => name === 'create_campaign')
    const { in_turn: turns } = creation as { readonly in_turn: FairQueue }
    const bodyOf = async ({ workspace_id }: Tenant) => ({
      ...{ name: 'x', message_text: 'Hello', contacts: [{ identifier: '@person' }] },
      account_pool: [await service.account(workspace_id)],
    })
    const [mine, theirs] = [await bodyOf(one), await bodyOf(other)]
    const held = Promise.withResolvers<void>()
    const holding = turns(
      { key: one.workspace_id, timer: () => () => {}, left: undefined },
      () => held.promise,
    )
    const asked = [mine, mine, mine].map((body) => service.post('/campaigns', { key: one.key, body }))
    await until('all of them wait', hangMs, () => turns.countWaiting() === 3)
    expect((await service.post('/campaigns', { key: other.key, body: theirs })).status).toBe(201)
    expect(turns.countWaiting()).toBe(3)
    held.resolve()
    await holding
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([201, 201, 201])
  })
})
