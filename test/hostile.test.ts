/**
 * Hostile requests. Each gets a clear refusal or a closed connection; nothing is written, and other callers are
 * served.
 */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../src/db/sql.ts'
import { limit, time } from '../src/lib/shapes.ts'
import { ok, type Route, route } from '../src/route.ts'
import { probes } from './harness/probes.ts'
import { hangMs } from './harness/process.ts'
import { openService, type Service, type Tenant } from './harness/service.ts'

/** Operations of this test's own: one that takes no body, as pause does, and one with a query. */
const own: readonly Route[] = [
  route({
    name: 'probe_pause',
    method: 'POST',
    path: '/probe/{id}/pause',
    summary: 'Takes no body',
    scopes: ['write'],
    effect: 'local',
    params: z.strictObject({ id: z.string() }),
    response: z.object({ ok: z.boolean() }),
    example: { params: { id: '1' }, response: { ok: true } },
    handle: async () => ok({ ok: true }),
  }),
  route({
    name: 'probe_list',
    method: 'GET',
    path: '/probe/list',
    summary: 'Has a query',
    scopes: ['read'],
    effect: 'read',
    query: z.object({ limit: limit(100, 50), since: time.optional(), q: z.string().optional() }),
    response: z.object({ limit: z.number() }),
    example: { response: { limit: 50 } },
    handle: async (_app, { query }) => ok({ limit: query.limit, since: query.since, q: query.q }),
  }),
]

/** A complete request arrives in time on the busiest machine. Requests that never end have a service of their own. */
const limits = { headersMs: 60_000, bodyMs: 60_000 }
const brief = { headersMs: 1_000, bodyMs: 1_000 }
let service: Service
let tenant: Tenant
let before: unknown
let impatient: Service
let impatientKey: string

beforeAll(async () => {
  service = await openService({ routes: [...probes, ...own], ...limits })
  await service.open('extended')
  tenant = await service.tenant()
  await service.allow(tenant)
  impatient = await openService({ routes: probes, ...brief })
  const owner = await impatient.tenant()
  await impatient.allow(owner)
  impatientKey = owner.key
})
afterAll(async () => {
  await service.close()
  await impatient.close()
})

beforeEach(async () => {
  before = await written()
})
afterEach(async () => {
  expect(await written()).toEqual(before)
  expect((await service.get('/me', { key: tenant.key })).status).toBe(200)
  expect(service.log.filter((line) => line.includes('"level":"error"'))).toEqual([])
  expect(Reflect.get({}, 'x')).toBeUndefined()
  expect(Reflect.get({}, 'polluted')).toBeUndefined()
})

function written(): Promise<unknown> {
  return service.app.db.one(sql`
    select (select count(*) from operations) as operations, (select count(*) from suppressions) as suppressions`)
}

interface RawAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

const note = '/api/v1/probe/platform:chat:42/notes'
let serial = 0

/** A request that would succeed, apart from the given changes. */
async function send(given: {
  path?: string
  method?: string
  body?: string | Uint8Array<ArrayBuffer> | ReadableStream
  headers?: Record<string, string>
}): Promise<RawAnswer> {
  const response = await fetch(`${service.url}${given.path ?? note}`, {
    method: given.method ?? 'POST',
    headers: {
      authorization: `Bearer ${tenant.key}`,
      'content-type': 'application/json',
      'idempotency-key': `hostile-${serial++}`,
      ...given.headers,
    },
    ...(given.body !== undefined && { body: given.body, duplex: 'half' }),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

type Part = string | Uint8Array | { waitMs: number }
const speak = (...parts: readonly Part[]) => speakTo(service, ...parts)

/** Sends the bytes on a bare socket and reads one whole answer; undefined when the connection just ends. */
function speakTo({ url }: Service, ...parts: readonly Part[]): Promise<RawAnswer | undefined> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    let heard = ''
    const deadline = setTimeout(() => {
      socket.destroy()
      reject(new Error(`No answer in time; heard ${JSON.stringify(heard)}.`))
    }, hangMs)
    const settle = () => {
      clearTimeout(deadline)
      socket.destroy()
      resolve(readAnswer(heard))
    }
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      heard = `${heard}${text}`.replace(/^HTTP\/1.1 100 Continue\r\n\r\n/, '')
      if (isWhole(heard)) settle()
    })
    socket.on('error', () => {})
    socket.on('close', settle)
    socket.on('connect', async () => {
      for (const part of parts) {
        if (socket.destroyed) return
        if (typeof part === 'object' && 'waitMs' in part) await sleep(part.waitMs)
        else if (!socket.write(part)) await new Promise((go) => socket.once('drain', go).once('close', go))
      }
    })
  })
}

function isWhole(heard: string): boolean {
  const end = heard.indexOf('\r\n\r\n')
  const length = /content-length: (\d+)/i.exec(heard.slice(0, end))?.[1]
  return end > 0 && length !== undefined && heard.length - end - 4 >= Number(length)
}

function readAnswer(heard: string): RawAnswer | undefined {
  const end = heard.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [first = '', ...lines] = heard.slice(0, end).split('\r\n')
  const headers = new Headers(lines.map((line) => line.split(/:\s*/, 2) as [string, string]))
  return { status: Number(first.split(' ')[1]), headers, text: heard.slice(end + 4) }
}

function head(lines: Readonly<Record<string, string>> = {}, path = note): string {
  const all = {
    Host: 'parley',
    Authorization: `Bearer ${tenant.key}`,
    'Content-Type': 'application/json',
    'Idempotency-Key': `hostile-${serial++}`,
    ...lines,
  }
  return `POST ${path} HTTP/1.1\r\n${Object.entries(all)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}`
}

/** A clear refusal in the form that all of them have. */
function refused(heard: RawAnswer | undefined, status: number, code: string): { error: string } {
  const body = JSON.parse(heard?.text ?? 'null')
  expect({ status: heard?.status, code: body?.code }).toEqual({ status, code })
  expect(Object.keys(body).sort()).toEqual(['code', 'error'])
  expect(body.error).toMatch(/^\S.*[.?]$/s)
  expect(heard?.headers.get('content-type')).toBe('application/json; charset=utf-8')
  for (const name of ['limit', 'remaining', 'reset']) {
    expect(heard?.headers.get(`x-ratelimit-${name}`), name).toMatch(/^\d+$/)
  }
  expect(heard?.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  return body
}

const noteOf = (fields: string) => `{"text":"hello"${fields}}`

describe('a body', () => {
  test.each([
    ['not JSON', 'hello'],
    ['half of it', '{"text":"hel'],
    ['a single quote', "{'text':'hello'}"],
    ['a comma too many', '{"text":"hello",}'],
    ['a comment', '{"text":"hello"/**/}'],
    ['two documents', '{"text":"a"}{"text":"b"}'],
    ['NaN', noteOf(',"tags":[NaN]')],
    ['no object', '"hello"'],
    ['null', 'null'],
    ['an array', '[]'],
    ['only white space', '  '],
    ['an unterminated string', '{"text":"\\'],
    ['an unterminated key', '{"\\u00'],
    ['a wrong escape in a key', '{"\\q":1}'],
    ['a raw NUL', '{"text":"a\0b"}'],
    ['a raw line break in a string', '{"text":"a\nb"}'],
    ['a byte order mark', `\ufeff${noteOf('')}`],
    ['10,000 levels', '['.repeat(10_000) + ']'.repeat(10_000)],
    ['100,000 levels', noteOf(`,"tags":${'['.repeat(100_000)}${']'.repeat(100_000)}`)],
    ['100,000 objects inside each other', '{"a":'.repeat(100_000)],
    ['33 levels', noteOf(`,"tags":${'['.repeat(32)}${']'.repeat(32)}`)],
    ['a number out of range', noteOf(',"tags":[1e400]')],
    ['the property __proto__', noteOf(',"__proto__":{"x":1}')],
    ['__proto__ in disguise', noteOf(',"\\u005f_proto__":{"x":1}')],
    ['__proto__ further down', noteOf(',"tags":[{"__proto__":{"x":1}}]')],
    ['a constructor', noteOf(',"constructor":{"prototype":{"x":1}}')],
    ['a property twice', noteOf(',"text":"again"')],
    ['a property twice, in disguise', noteOf(',"te\\u0078t":"again"')],
    ['a property twice, further down', noteOf(',"tags":[{"a":1,"a":2}]')],
    ['a wrong type', '{"text":1}'],
    ['nothing that is required', '{}'],
    ['blank text', '{"text":" \\u3000\\n"}'],
    ['text of 4,097 characters', JSON.stringify({ text: '😀'.repeat(4097) })],
    ['400,000 array items of the wrong type', `{"text":"a","tags":[${'1,'.repeat(400_000)}1]}`],
    ['100,000 unknown properties', `{${Array.from({ length: 70_000 }, (_, at) => `"k${at}":1`).join(',')}}`],
    ['an account id of 10,000 characters', noteOf(`,"account_id":"${'a'.repeat(10_000)}"`)],
    ['an empty account id', noteOf(',"account_id":""')],
  ])('400 for %s', async (_, body) => {
    refused(await send({ body }), 400, 'invalid_request')
  })

  test.each([
    ['NUL in a value', '{"text":"a\\u0000b"}'],
    ['NUL in a key', noteOf(',"a\\u0000":1')],
    ['a lone high surrogate in a value', '{"text":"a\\ud800b"}'],
    ['a lone low surrogate in a value', '{"text":"\\udc00"}'],
    ['a lone surrogate in a key', noteOf(',"\\udfff":1')],
    ['a lone surrogate in a list', noteOf(',"tags":["\\ud83d"]')],
    ['NUL in an account id', noteOf(',"account_id":"acc_\\u0000"')],
  ])('400 invalid_text for %s', async (_, body) => {
    refused(await send({ body }), 400, 'invalid_text')
  })

  test.each([
    ['a stray byte', [0xff]],
    ['an encoded surrogate', [0xed, 0xa0, 0x80]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['half a character', [0xf0, 0x9f]],
  ])('400 invalid_text for what is not UTF-8: %s', async (_, bytes) => {
    const body = Buffer.concat([Buffer.from('{"text":"a'), Buffer.from(bytes), Buffer.from('"}')])
    refused(await send({ body: new Uint8Array(body) }), 400, 'invalid_text')
  })

  test('400 names what is wrong in a sentence, and at most ten faults', async () => {
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`k${at}`, at]))
    const { error } = refused(
      await send({ body: JSON.stringify({ text: 'a', ...many }) }),
      400,
      'invalid_request',
    )
    expect(error).toContain('"k9"')
    expect(error).not.toContain('"k10"')
    const long = await send({ body: noteOf(`,"${'é'.repeat(5_000)}":1`) })
    expect(refused(long, 400, 'invalid_request').error.length).toBeLessThan(200)
  })

  test('400 without any body, and with an empty one', async () => {
    refused(await send({}), 400, 'invalid_request')
    refused(await send({ body: '' }), 400, 'invalid_request')
  })

  test.each([
    ['no type', ''],
    ['text/plain', 'text/plain'],
    ['a form', 'application/x-www-form-urlencoded'],
    ['multipart', 'multipart/form-data; boundary=x'],
    ['another charset', 'application/json; charset=utf-16'],
    ['nearly JSON', 'application/jsonp'],
    ['two types', 'application/json, text/plain'],
    ['a broken type', 'application/json; charset'],
  ])('415 for %s', async (_, type) => {
    refused(
      await send({ body: noteOf(''), headers: { 'content-type': type } }),
      415,
      'unsupported_media_type',
    )
  })

  test.each(['gzip', 'br', 'deflate', 'gzip, identity', 'x'])(
    '415 for one encoded as %s',
    async (encoding) => {
      const body = new Uint8Array(gzipSync(noteOf('')))
      const heard = await send({ body, headers: { 'content-encoding': encoding } })
      refused(heard, 415, 'unsupported_media_type')
    },
  )
})

describe('a body over the limit', () => {
  const chunk = Buffer.alloc(64 * 1024, 0x20)

  test.each([
    ['1 byte more', 1024 * 1024 + 1],
    ['3 MB', 3_000_000],
    ['30 MB', 30_000_000],
  ])('413 that the client receives when it declares the length: %s', async (_, size) => {
    const chunks = Array.from({ length: Math.ceil(size / chunk.length) }, (_, at) =>
      chunk.subarray(0, Math.min(chunk.length, size - at * chunk.length)),
    )
    const heard = await speak(`${head({ 'Content-Length': String(size) })}\r\n`, ...chunks)
    refused(heard, 413, 'payload_too_large')
    expect(heard?.headers.get('connection')).toBe('close')
    refused(await send({ body: new Uint8Array(size).fill(0x20) }), 413, 'payload_too_large')
  })

  test.each([
    ['3 MB', 3_000_000],
    ['30 MB', 30_000_000],
  ])('413 that the client receives when it does not: %s', async (_, size) => {
    const chunks = Array.from({ length: Math.ceil(size / chunk.length) }, () => [
      `${chunk.length.toString(16)}\r\n`,
      chunk,
      '\r\n',
    ])
    const heard = await speak(
      `${head({ 'Transfer-Encoding': 'chunked' })}\r\n`,
      ...chunks.flat(),
      '0\r\n\r\n',
    )
    refused(heard, 413, 'payload_too_large')
    expect(heard?.headers.get('connection')).toBe('close')
  })

  test('413 with Connection: close also when the whole body has arrived', async () => {
    for (let round = 0; round < 5; round++) {
      const body = new Blob([new Uint8Array(1024 * 1024 + 1).fill(0x20)]).stream()
      const heard = await send({ body })
      refused(heard, 413, 'payload_too_large')
      expect(heard.headers.get('connection')).toBe('close')
    }
  })

  test('401 before any of it is read', async () => {
    const body = new Uint8Array(3_000_000)
    refused(await send({ body, headers: { authorization: 'Bearer x' } }), 401, 'invalid_key')
    refused(await send({ body, path: '/api/v1/nothing' }), 404, 'not_found')
    refused(await send({ body, path: '/nothing' }), 404, 'not_found')
  })
})

describe('a chat id', () => {
  test.each([
    '9223372036854775808',
    '-9223372036854775809',
    '9'.repeat(19),
    '9'.repeat(400),
    '9'.repeat(4_090),
    '-0',
    '+1',
    '01',
    '-01',
    '1e3',
    '1.0',
    '0x10',
    '1_000',
    '%20%201',
    '1%20',
    '1%0A',
    '1%00',
    '',
    '-',
    '%D9%A1%D9%A2',
    '%EF%BC%91',
    'NaN',
    'Infinity',
    'null',
    "1'%20or%20'1'='1",
  ])('400 for platform:chat:%s', async (digits) => {
    const heard = await send({ path: `/api/v1/probe/platform:chat:${digits}/notes`, body: noteOf('') })
    refused(heard, 400, digits.includes('%00') ? 'invalid_text' : 'invalid_request')
  })

  test.each([
    '1',
    'chat:1',
    'PLATFORM:CHAT:1',
    'platform:chat: 1',
    'platform:user:1',
    '__proto__',
    '%2e%2e%2f',
  ])('400 for %s', async (id) => {
    refused(await send({ path: `/api/v1/probe/${id}/notes`, body: noteOf('') }), 400, 'invalid_request')
  })

  test('4xx for one of 10,000 characters', async () => {
    const path = `/api/v1/probe/platform:chat:${'1'.repeat(10_000)}/notes`
    const heard = await send({ path, body: noteOf('') })
    expect([400, 404]).toContain(heard.status)
    expect(heard.headers.get('x-ratelimit-limit')).toMatch(/^\d+$/)
  })

  test.each(['9223372036854775807', '-9223372036854775808', '0', '-1'])(
    'accepts platform:chat:%s',
    async (digits) => {
      const heard = await send({ path: `/api/v1/probe/platform:chat:${digits}/notes`, body: noteOf('') })
      expect([heard.status, JSON.parse(heard.text).text]).toEqual([201, 'hello'])
      before = await written()
    },
  )
})

describe('an address', () => {
  test.each([
    '/api/v1/probe/%ED%A0%80/notes',
    '/api/v1/%',
    '/api/v1/me%E0%A4%A',
    '/%ff',
    '/api/v1/probe/%C0%AF/notes',
  ])('400 for %s, which is not UTF-8', async (path) => {
    const stranger = await speak(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    if (path.startsWith('/api/')) refused(stranger, 401, 'invalid_key')
    else refused(stranger, 400, 'invalid_request')
    refused(await send({ path, body: noteOf('') }), 400, 'invalid_request')
  })

  test.each([
    ['NUL', 'q=%00', 'invalid_text'],
    ['limit 0', 'limit=0', 'invalid_request'],
    ['limit 101', 'limit=101', 'invalid_request'],
    ['limit -1', 'limit=-1', 'invalid_request'],
    ['limit 1.5', 'limit=1.5', 'invalid_request'],
    ['limit 1e2', 'limit=1e2', 'invalid_request'],
    ['limit +5', 'limit=%2B5', 'invalid_request'],
    ['limit with a space', 'limit=%205', 'invalid_request'],
    ['limit with a line break', 'limit=5%0A', 'invalid_request'],
    ['an empty limit', 'limit=', 'invalid_request'],
    ['Arabic digits', 'limit=%D9%A5', 'invalid_request'],
    ['limit twice', 'limit=5&limit=5', 'invalid_request'],
    ['the year 0', 'since=0000-01-01', 'invalid_request'],
    ['the hour 24', 'since=2024-01-01T24:00:00Z', 'invalid_request'],
    ['an offset of +99:99', 'since=2024-01-01T00:00:00%2B99:99', 'invalid_request'],
    ['30 February', 'since=2024-02-30', 'invalid_request'],
    ['a time twice', 'since=2024-01-01&since=2024-01-01', 'invalid_request'],
  ])('400 for a query with %s', async (_, query, code) => {
    refused(await send({ path: `/api/v1/probe/list?${query}`, method: 'GET' }), 400, code)
  })

  test.each(['q=%ED%A0%80', 'q=%', '&&&'])('200: a query of %s does no harm', async (query) => {
    const heard = await send({ path: `/api/v1/probe/list?${query}`, method: 'GET' })
    expect(heard.status).toBe(200)
    expect(JSON.parse(heard.text).limit).toBe(50)
  })

  test.each([
    '__proto__[x]=1',
    '__proto__=1',
    'constructor.prototype.x=1',
    'constructor=1',
    '&&&==',
    'x=1;y',
    `${'x'.repeat(5_000)}=1`,
  ])('400: a query of %s is unknown', async (query) => {
    const heard = await send({ path: `/api/v1/probe/list?${query}`, method: 'GET' })
    refused(heard, 400, 'invalid_request')
    expect(heard.text.length).toBeLessThan(200)
  })
})

describe('a header', () => {
  const body = noteOf('')
  const sized = (lines: Record<string, string> = {}) =>
    head({ 'Content-Length': String(Buffer.byteLength(body)), ...lines })

  test('401 for two Authorization headers', async () => {
    refused(await speak(sized(), `Authorization: Bearer ${tenant.key}\r\n\r\n${body}`), 401, 'invalid_key')
    refused(await speak(sized(), `authorization: Bearer x\r\n\r\n${body}`), 401, 'invalid_key')
    refused(
      await send({ body, headers: { authorization: `Bearer ${tenant.key}, Bearer x` } }),
      401,
      'invalid_key',
    )
  })

  test('400 for two Idempotency-Key headers, equal or not', async () => {
    for (const key of ['hostile', `hostile-${serial}`]) {
      const heard = await speak(sized(), `Idempotency-Key: ${key}\r\n\r\n${body}`)
      refused(heard, 400, 'invalid_request')
    }
  })

  test('400 for two Host headers, and for none', async () => {
    refused(await speak(sized(), `Host: evil\r\n\r\n${body}`), 400, 'invalid_request')
    refused(await speak(`${sized().replace('Host: parley\r\n', '')}\r\n${body}`), 400, 'invalid_request')
    refused(await speak('GET /api/v1/me HTTP/1.1\r\n\r\n'), 400, 'invalid_request')
    refused(await speak('GET /api/v1/me HTTP/1.0\r\n\r\n'), 400, 'invalid_request')
    const twice = 'Host: a.example\r\nHost: b.example'
    refused(await speak(`GET /healthz HTTP/1.0\r\n${twice}\r\n\r\n`), 400, 'invalid_request')
    refused(await speak('GET /healthz HTTP/1.1\r\n\r\n'), 400, 'invalid_request')
  })

  test.each(['/healthz', '/readyz'])(
    '200 for %s over HTTP/1.0 without a Host header, as proxies probe',
    async (path) => {
      expect((await speak(`GET ${path} HTTP/1.0\r\n\r\n`))?.status).toBe(200)
    },
  )

  test('401, and a forged X-Request-Id is not used as ours', async () => {
    const forged = '0199a1f0-0000-7000-8000-000000000001'
    const heard = await send({ headers: { authorization: '', 'x-request-id': forged }, body })
    refused(heard, 401, 'invalid_key')
    expect(heard.headers.get('x-request-id')).not.toBe(forged)
    const lines = service.log.filter((line) => line.includes(forged)).map((line) => JSON.parse(line))
    expect(lines).toMatchObject([{ client_request_id: forged, code: 'invalid_key' }])
    expect(lines.map(({ request_id }) => request_id)).toEqual([heard.headers.get('x-request-id')])
  })

  test('401, and forged rate and forwarding headers change no counts', async () => {
    const remaining = async (headers: Record<string, string>) => {
      const heard = await send({ headers: { authorization: 'Bearer x', ...headers }, body })
      refused(heard, 401, 'invalid_key')
      expect(heard.headers.get('x-ratelimit-limit')).toBe('1000000')
      return Number(heard.headers.get('x-ratelimit-remaining'))
    }
    const first = await remaining({})
    expect(await remaining({ 'x-forwarded-for': '203.0.113.7' })).toBe(first - 1)
    expect(await remaining({ forwarded: 'for=203.0.113.7', 'x-real-ip': '203.0.113.7' })).toBe(first - 2)
    expect(await remaining({ 'x-ratelimit-remaining': '1', 'x-ratelimit-limit': '9' })).toBe(first - 3)
  })

  test.each([
    ['a lone surrogate as bytes', Buffer.from([0xed, 0xa0, 0x80])],
    ['UTF-8', Buffer.from('é')],
    ['a tab inside', Buffer.from('a\tb')],
    ['DEL', Buffer.from([0x7f])],
  ])('400 for an Idempotency-Key with %s', async (_, bytes) => {
    const lines = sized().replace(/Idempotency-Key: .*\r\n/, '')
    const heard = await speak(`${lines}Idempotency-Key: a`, bytes, `b\r\n\r\n${body}`)
    expect(heard?.status).toBe(400)
    expect(heard?.headers.get('x-ratelimit-limit')).toMatch(/^\d+$/)
  })

  test('400 for a control character or a bare line feed in one', async () => {
    const lines = sized().replace(/Idempotency-Key: .*\r\n/, '')
    for (const value of ['a\0b', 'a\x1bb', 'a\rb', 'a\nb']) {
      refused(await speak(`${lines}Idempotency-Key: ${value}\r\n\r\n${body}`), 400, 'invalid_request')
    }
  })

  test('431 for 20 KB of them', async () => {
    refused(await speak(sized({ 'X-Long': 'a'.repeat(20_000) }), `\r\n${body}`), 431, 'headers_too_large')
    const many = Array.from({ length: 10_000 }, (_, at) => `X-${at}: 1\r\n`).join('')
    refused(await speak(sized(), `${many}\r\n${body}`), 431, 'headers_too_large')
    refused(await speak(`GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`), 431, 'headers_too_large')
  })

  test('answers an unknown Expect like any other request, and continues after 100-continue', async () => {
    const strange = await speak(sized({ Authorization: 'Bearer x', Expect: 'a-miracle' }), `\r\n${body}`)
    refused(strange, 401, 'invalid_key')
    const patient = await speak(sized({ Expect: '100-continue', 'Content-Length': '2' }), '\r\n{}')
    refused(patient, 400, 'invalid_request')
  })
})

describe('malformed HTTP', () => {
  const body = noteOf('')
  const length = `Content-Length: ${body.length}\r\n`

  test.each([
    ['garbage', 'hello\r\n\r\n'],
    ['bytes', Buffer.from([0, 1, 2, 3, 0xff, 0xfe, 13, 10, 13, 10])],
    ['a TLS hello', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03])],
    ['version 9.9', 'GET /api/v1/me HTTP/9.9\r\nHost: x\r\n\r\n'],
    ['no version', 'GET /api/v1/me\r\n\r\n'],
    ['an unknown method', 'STEAL /api/v1/me HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a method in lower case', 'get /api/v1/me HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a space in the address', 'GET /api/v1/ me HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a header without a colon', 'GET /api/v1/me HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n'],
    ['a folded header', 'GET /api/v1/me HTTP/1.1\r\nHost: x\r\n folded: 1\r\n\r\n'],
    ['a space before the colon', 'GET /api/v1/me HTTP/1.1\r\nHost : x\r\n\r\n'],
    ['the HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ])('400 for %s', async (_, said) => {
    refused(await speak(said), 400, 'invalid_request')
  })

  test.each([
    ['both lengths', `${length}Transfer-Encoding: chunked\r\n`],
    ['both, the other way round', `Transfer-Encoding: chunked\r\n${length}`],
    ['two lengths', `${length}Content-Length: 3\r\n`],
    ['a negative length', 'Content-Length: -1\r\n'],
    ['a length in words', 'Content-Length: ten\r\n'],
    ['a length past all numbers', `Content-Length: ${'9'.repeat(30)}\r\n`],
    ['chunked but not last', 'Transfer-Encoding: chunked, identity\r\n'],
    ['chunked twice', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n'],
    ['an unknown coding', 'Transfer-Encoding: xchunked\r\n'],
  ])('400 for a body with %s', async (_, lines) => {
    refused(await speak(head(), `${lines}\r\n`, body), 400, 'invalid_request')
  })

  test.each([
    ['a size that is no number', 'zz\r\n{}\r\n0\r\n\r\n'],
    ['a size past all numbers', 'fffffffffffffffff\r\n{}\r\n0\r\n\r\n'],
    ['a chunk longer than it says', '2\r\n{}{}\r\n0\r\n\r\n'],
    ['a negative size', '-2\r\n{}\r\n0\r\n\r\n'],
  ])('400 for chunks with %s', async (_, chunks) => {
    const heard = await speak(`${head({ 'Transfer-Encoding': 'chunked' })}\r\n`, chunks)
    refused(heard, 400, 'invalid_request')
  })

  test('a broken chunk in the middle of a body ends that connection and no other', async () => {
    const heard = await speak(
      `${head({ 'Transfer-Encoding': 'chunked' })}\r\n2\r\n{"\r\n`,
      { waitMs: 50 },
      'zz\r\n',
    )
    if (heard) refused(heard, 400, 'invalid_request')
  })

  test.each([
    ['the whole server', 'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['an absolute address', 'GET http://evil.example/api/v1/me HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['another host in the path', 'GET //evil.example/api/v1/me HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a tunnel', 'CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['an upgrade', 'GET /api/v1/me HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
    ['HTTP/2 over this', 'GET /api/v1/me HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'],
    ['version 2.0', 'GET /api/v1/me HTTP/2.0\r\nHost: x\r\n\r\n'],
    ['a version of an API', 'GET /api/v1/me HTTP/1.1\r\nHost: x\r\nAccept-Version: 9.x\r\n\r\n'],
    ['only the head', 'HEAD /api/v1/me HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'],
  ])('4xx or a closed connection for %s', async (_, said) => {
    const heard = await speak(said)
    if (!heard) return
    expect(heard.status).toBeGreaterThanOrEqual(400)
    expect(heard.status).toBeLessThan(500)
    expect(heard.headers.get('x-ratelimit-limit')).toMatch(/^\d+$/)
  })

  test('405 for any method that the address does not have', async () => {
    for (const method of ['TRACE', 'PROPFIND', 'PURGE', 'PUT', 'M-SEARCH']) {
      const said = `${method} /api/v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${tenant.key}\r\n\r\n`
      refused(await speak(said), 405, 'method_not_allowed')
    }
  })

  test('4xx or a closed connection for 500 requests with broken bytes', async () => {
    const bearer = { Authorization: `Bearer ${impatientKey}` }
    const sound = Buffer.from(`${head({ ...bearer, 'Content-Length': '2', Connection: 'close' })}\r\n[]`)
    const place = fc.nat(sound.length - 1)
    const damage = fc.record({
      changes: fc.array(fc.tuple(place, fc.nat(255)), { minLength: 1, maxLength: 6 }),
      cut: fc.option(place, { freq: 4 }),
    })
    const check = async ({ changes, cut }: { changes: [number, number][]; cut: number | null }) => {
      const bytes = Buffer.from(sound)
      for (const [at, byte] of changes) bytes[at] = byte
      const heard = await speakTo(impatient, bytes.subarray(0, cut ?? bytes.length))
      if (!heard) return
      expect(heard.status).toBeGreaterThanOrEqual(400)
      expect(heard.status).toBeLessThan(500)
      expect(heard.headers.get('x-ratelimit-limit')).toMatch(/^\d+$/)
      // The answer to HEAD has no body. If the damage made the body shorter, the rest is a second request with its
      // own answer.
      const length = Number(heard.headers.get('content-length'))
      if (heard.text) {
        const text = Buffer.from(heard.text).subarray(0, length).toString()
        expect(JSON.parse(text)).toEqual({ error: expect.any(String), code: expect.any(String) })
      }
    }
    await fc.assert(
      fc.asyncProperty(fc.array(damage, { minLength: 100, maxLength: 100 }), async (all) => {
        await Promise.all(all.map(check))
      }),
      { numRuns: 5, endOnFailure: true },
    )
  })
})

describe('a slow client', () => {
  const bearer = () => ({ Authorization: `Bearer ${impatientKey}` })

  test('408 when its headers do not arrive', async () => {
    const heard = await speakTo(impatient, 'POST /api/v1/me HTTP/1.1\r\nHost: x\r\n')
    refused(heard, 408, 'request_timeout')
    const dripping = Array.from({ length: 160 }, () => [{ waitMs: 25 }, 'a']).flat()
    refused(await speakTo(impatient, 'GET /', ...dripping), 408, 'request_timeout')
  })

  test('408 when its body does not arrive', async () => {
    const whole = `${head({ ...bearer(), 'Content-Length': '100' })}\r\n{"text"`
    refused(await speakTo(impatient, whole), 408, 'request_timeout')
    const dripping = Array.from({ length: 160 }, () => [{ waitMs: 25 }, '1\r\n \r\n']).flat()
    const chunked = `${head({ ...bearer(), 'Transfer-Encoding': 'chunked' })}\r\n`
    refused(await speakTo(impatient, chunked, ...dripping), 408, 'request_timeout')
  })

  test('has no effect when it goes away in the middle of a body', async () => {
    const { hostname, port } = new URL(service.url)
    for (let round = 0; round < 20; round++) {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      socket.write(`${head({ 'Content-Length': '100' })}\r\n{"text":"hello"`, () => {
        if (round % 2) socket.resetAndDestroy()
        else socket.destroy()
      })
    }
  })

  test('does not delay the others, even if many are slow', async () => {
    const { hostname, port } = new URL(service.url)
    const slow = Array.from({ length: 100 }, () => connect(Number(port), hostname))
    try {
      for (const socket of slow) socket.write('GET /api/v1/me HTTP/1.1\r\nHost: x\r\n')
      for (let round = 0; round < 10; round++) {
        expect((await service.get('/me', { key: tenant.key })).status).toBe(200)
      }
      // They are still connected: the others did not wait for them.
      expect(slow.filter(({ destroyed }) => destroyed)).toEqual([])
    } finally {
      for (const socket of slow) socket.on('error', () => {}).destroy()
    }
  })
})

describe('an operation without a body', () => {
  const path = '/api/v1/probe/1/pause'

  test.each([
    ['none', undefined, undefined],
    ['an empty one', '', 'application/json'],
    ['an empty one of any type', '', 'application/x-www-form-urlencoded'],
    ['{}', '{}', 'application/json'],
    ['{} with white space', ' {\n} \n', 'application/json'],
    ['{} of any type', '{}', 'text/plain'],
  ])('200 with %s', async (_, body, type) => {
    const headers = type === undefined ? {} : { 'content-type': type }
    const heard = await send({ path, ...(body !== undefined && { body }), headers })
    expect([heard.status, heard.text]).toEqual([200, '{"ok":true}'])
  })

  test('200 without a content type or a length', async () => {
    const lines = head({ Connection: 'close' }, path).replace(/Content-Type: .*\r\n/, '')
    expect((await speak(`${lines}\r\n`))?.status).toBe(200)
    const chunked = head({ 'Transfer-Encoding': 'chunked' }, path)
    expect((await speak(`${chunked}\r\n0\r\n\r\n`))?.status).toBe(200)
  })

  test.each(['{"a":1}', '[]', 'null', '0', '""', 'x', '{}{}', '{"__proto__":{"x":1}}', '{', '\ufeff'])(
    '400 with %s',
    async (body) => {
      refused(await send({ path, body }), 400, 'invalid_request')
    },
  )

  test('413 with more than fits', async () => {
    refused(await send({ path, body: ' '.repeat(2_000_000) }), 413, 'payload_too_large')
  })
})

test("4xx for any JSON that is not the operation's", async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue({ maxDepth: 4 }), fc.boolean(), async (value, wrapped) => {
      const body = JSON.stringify(wrapped ? { text: value, tags: value, account_id: value } : value)
      const { status } = await send({ body })
      expect([400, 403]).toContain(status)
    }),
    { numRuns: 300, endOnFailure: true },
  )
})
