/** The entrance of `/api/mcp`: what it checks before it reads a message, in which order, and what it logs. */
import { request as httpRequest } from 'node:http'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { askMcp, callTool, eras, type McpAsk, sendMessage } from '../../test/harness/mcp.ts'
import { openService, type Service, type Tenant } from '../../test/harness/service.ts'
import { makeKey } from '../access/keys.ts'
import { revokeKey } from '../capabilities/keys/keys.ts'
import { mcpPath } from '../contract.ts'

let service: Service
let own: Tenant
beforeAll(async () => {
  service = await openService()
  own = await service.tenant()
})
afterAll(() => service.close())
afterEach(() => service.open('rest'))

const listTools = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
const foreign = { origin: 'https://evil.example' }

/** A valid request, apart from the given changes. */
function ask(given: Partial<McpAsk> = {}) {
  return askMcp({ url: service.url, key: own.key, body: listTools, ...given })
}

function statusAndCode(given: Partial<McpAsk>): Promise<readonly [number, string | undefined]> {
  return ask(given).then(({ status, body }) => [status, body.code])
}

describe('the order of checks', () => {
  const wrong = { key: 'svc_live_wrong', headers: foreign, method: 'PUT', body: '[' }

  test('503 before everything else while the gate rest is closed', async () => {
    await service.shut('rest')
    expect(await statusAndCode(wrong)).toEqual([503, 'rest_disabled'])
  })

  test('401 without a valid key, before the rest', async () => {
    expect(await statusAndCode(wrong)).toEqual([401, 'invalid_key'])
  })

  test('429 before the origin is checked', async () => {
    const small = await openService({ env: { PARLEY_RATE_LIMIT: '2' } })
    try {
      const { key } = await small.tenant()
      const each = () => askMcp({ ...wrong, url: small.url, key })
      expect((await each()).status).toBe(403)
      expect((await each()).status).toBe(403)
      const refused = await each()
      expect(refused.body.code).toBe('rate_limited')
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(refused.headers.get('x-ratelimit-remaining')).toBe('0')
    } finally {
      await small.close()
    }
  })

  test('403 for a foreign page before its method is checked', async () => {
    expect(await statusAndCode({ ...wrong, key: own.key })).toEqual([403, 'origin_refused'])
  })

  test('405 with Allow before the body is read', async () => {
    const answer = await ask({ ...wrong, key: own.key, headers: {} })
    expect([answer.status, answer.body.code]).toEqual([405, 'method_not_allowed'])
    expect(answer.headers.get('allow')).toBe('POST')
  })

  test('400 for a body that is not JSON, and 415 for another type', async () => {
    expect(await statusAndCode({ body: '[' })).toEqual([400, 'invalid_request'])
    expect(await statusAndCode({ headers: { 'content-type': 'text/plain' } })).toEqual([
      415,
      'unsupported_media_type',
    ])
  })
})

test.each(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'PATCH', 'QUERY'])('405 for %s', async (method) => {
  const { status, headers } = await askMcp({ url: service.url, key: own.key, method })
  expect([status, headers.get('allow')]).toEqual([405, 'POST'])
})

test('every answer has rate limits, a request id and no-store', async () => {
  const answers = [
    ask(),
    ask({ key: 'svc_live_wrong' }),
    ask({ headers: foreign }),
    ask({ body: [] }),
    ask({ body: { jsonrpc: '2.0', id: 1, method: 'no/such' } }),
    ask({ body: { jsonrpc: '2.0', method: 'notifications/initialized' } }),
    askMcp({ url: service.url, key: own.key, method: 'GET' }),
    ...eras.map((era) => sendMessage({ url: service.url, key: own.key, era }, 'tools/list')),
  ]
  for (const { headers } of await Promise.all(answers)) {
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(headers.get('x-ratelimit-limit')).toBe('1000000')
    expect(headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/)
    expect(headers.get('x-ratelimit-reset')).toMatch(/^\d+$/)
    expect(headers.get('www-authenticate')).toBe(null)
  }
})

describe('the key', () => {
  test('200 with the key in the address', async () => {
    expect((await ask({ key: undefined, query: `?key=${own.key}` })).status).toBe(200)
    expect((await ask({ key: undefined, query: `?a=1&key=${own.key}&b=%ff` })).status).toBe(200)
  })

  test('uses the header when both are given', async () => {
    const other = makeKey().key
    expect((await ask({ query: `?key=${other}` })).status).toBe(200)
    expect(await statusAndCode({ key: other, query: `?key=${own.key}` })).toEqual([401, 'invalid_key'])
    expect(
      await statusAndCode({ key: undefined, headers: { authorization: '' }, query: `?key=${own.key}` }),
    ).toEqual([401, 'invalid_key'])
  })

  test('401 for a key that is repeated, empty, or in another place', async () => {
    const twice = `?key=${own.key}&key=${own.key}`
    for (const query of [twice, '?key=', '?key', '?Key=x', `?api_key=${own.key}`, `?key=${own.key}%00`]) {
      expect(await statusAndCode({ key: undefined, query })).toEqual([401, 'invalid_key'])
    }
    expect(await statusAndCode({ key: undefined, headers: { cookie: `key=${own.key}` } })).toEqual([
      401,
      'invalid_key',
    ])
  })

  test("the API's addresses accept no key in the address", async () => {
    const response = await fetch(`${service.url}/api/v1/me?key=${own.key}`)
    expect(response.status).toBe(401)
    // Only this exact address does: the query of one that looks like it is not read either.
    for (const path of [`${mcpPath}/x`, `${mcpPath}x`, '/api/%6Dcp']) {
      const { status } = await fetch(`${service.url}${path}?key=${own.key}`, { method: 'POST' })
      expect([401, 404]).toContain(status)
    }
  })

  test('an MCP-only key works here and nowhere else', async () => {
    const { key } = await service.key({ ...own, mcp_only: true })
    expect((await callTool({ url: service.url, key }, 'service_whoami')).isError).toBeUndefined()
    expect((await service.get('/me', { key })).body.code).toBe('missing_scope')
  })

  test('401 once it is revoked', async () => {
    const { key, id } = await service.key(own)
    expect((await ask({ key })).status).toBe(200)
    await revokeKey(service.app, 'system', id)
    await service.settle()
    expect(await statusAndCode({ key })).toEqual([401, 'invalid_key'])
  })

  test('every request counts against its rate', async () => {
    const [first, second] = [await ask(), await ask()]
    const left = ({ headers }: typeof first) => Number(headers.get('x-ratelimit-remaining'))
    expect(left(first) - left(second)).toBe(1)
  })
})

describe('the origin', () => {
  const host = () => new URL(service.url).host

  test('200 for programs, which send none, and for our own pages', async () => {
    expect((await ask()).status).toBe(200)
    expect((await ask({ headers: { origin: service.url } })).status).toBe(200)
  })

  test.each([
    'null',
    'https://evil.example',
    'http://127.0.0.1:1',
    'http://localhost',
    'https://127.0.0.1',
    '',
    'x',
  ])('403 for %j', async (origin) => {
    expect(await raw({ host: host(), origin })).toBe(403)
  })

  test('403 for a host name that an attacker points here, and for two origins', async () => {
    expect(await raw({ host: 'evil.example', origin: 'http://evil.example' })).toBe(403)
    expect(await raw({ host: 'localhost.evil.example', origin: 'http://localhost.evil.example' })).toBe(403)
    expect(await raw({ host: host(), origin: [service.url, service.url] })).toBe(403)
    expect(await raw({ host: host(), origin: service.url })).toBe(200)
  })

  test('200 for pages at PARLEY_BASE_URL, requested by that name', async () => {
    const public_ = await openService({ env: { PARLEY_BASE_URL: 'https://parley.example/' } })
    try {
      const { key } = await public_.tenant()
      const at = { url: public_.url, key }
      expect(await raw({ host: 'parley.example', origin: 'https://parley.example' }, at)).toBe(200)
      expect(await raw({ host: 'parley.example', origin: 'http://parley.example' }, at)).toBe(403)
      expect(await raw({ host: 'parley.example' }, at)).toBe(200)
    } finally {
      await public_.close()
    }
  })

  /** `fetch` sets these headers itself. */
  function raw(headers: Record<string, string | string[]>, at = { url: service.url, key: own.key }) {
    return new Promise<number>((resolve, reject) => {
      const sent = httpRequest(
        `${at.url}${mcpPath}`,
        {
          method: 'POST',
          headers: {
            authorization: `Bearer ${at.key}`,
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            ...headers,
          },
        },
        (response) => {
          response.resume().once('end', () => resolve(response.statusCode ?? 0))
        },
      )
      sent.once('error', reject).end(JSON.stringify(listTools))
    })
  }
})

describe('the body', () => {
  test('400 for a list of 1,000 calls, and runs none of them', async () => {
    const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'service_whoami', arguments: {} } }
    const body = Array.from({ length: 1_000 }, (_, id) => ({ ...call, id }))
    const before = Number((await ask()).headers.get('x-ratelimit-remaining'))
    const refused = await ask({ body })
    expect([refused.status, refused.body.code]).toEqual([400, 'invalid_request'])
    expect(before - Number(refused.headers.get('x-ratelimit-remaining'))).toBe(1)
    expect(await statusAndCode({ body: [] })).toEqual([400, 'invalid_request'])
    expect(await statusAndCode({ body: [listTools] })).toEqual([400, 'invalid_request'])
  })

  test('413 beyond 1 MiB', async () => {
    const text = 'x'.repeat(1024 * 1024)
    const body = { ...listTools, params: { text } }
    expect(await statusAndCode({ body })).toEqual([413, 'payload_too_large'])
  })

  test('400 for too deep nesting, a repeated key, NUL, a lone surrogate or __proto__', async () => {
    const deep = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${'['.repeat(100_000)}`
    expect(await statusAndCode({ body: deep })).toEqual([400, 'invalid_request'])
    const message = (params: string) => `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${params}}`
    expect(await statusAndCode({ body: message('{"a":1,"a":2}') })).toEqual([400, 'invalid_request'])
    expect(await statusAndCode({ body: message('{"__proto__":{"x":1}}') })).toEqual([400, 'invalid_request'])
    expect(await statusAndCode({ body: message('{"a":"\\u0000"}') })).toEqual([400, 'invalid_text'])
    expect(await statusAndCode({ body: message('{"a":"\\ud800"}') })).toEqual([400, 'invalid_text'])
    expect(({} as { x?: number }).x).toBeUndefined()
  })

  test.each([
    'null',
    '1',
    '"x"',
    '{}',
    '{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":1}',
    '{"jsonrpc":"2.0","id":1,"result":{}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"service_whoami","arguments":[]}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"service_whoami","arguments":"x"}}',
  ])("%s is refused in the protocol's words", async (body) => {
    const { status, text } = await ask({ body })
    expect(status).toBeLessThan(500)
    expect(text).not.toContain('"structuredContent"')
  })

  test('survives a client that leaves in the middle of a call', async () => {
    const gone = new AbortController()
    const asked = fetch(`${service.url}${mcpPath}`, {
      method: 'POST',
      signal: gone.signal,
      headers: { authorization: `Bearer ${own.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(listTools),
    })
    gone.abort()
    await expect(asked).rejects.toThrow()
    expect((await ask()).status).toBe(200)
  })
})

test('opens no subscription', async () => {
  const { text } = await sendMessage({ url: service.url, key: own.key }, 'subscriptions/listen', {
    notifications: { toolsListChanged: true },
  })
  expect(text).toContain('Subscription limit reached')
})

describe('the log', () => {
  test('names the tool, the key by its prefix and the refusal, and never the key, wherever it was given', async () => {
    const { key, prefix } = await service.key({ ...own, scopes: ['write'] })
    await callTool({ url: service.url, key }, 'service_list_chats', { account_id: key })
    await ask({ key: undefined, query: `?key=${key}` })
    await ask({ key: undefined, query: `?x=${key}&key=${key}&key=${key}` })
    await ask({ key: undefined, query: `?key=${key}`, body: `"${key}` })
    await ask({ key: undefined, query: `?key=${key}`, method: key }).catch(() => undefined)
    await fetch(`${service.url}/api/%6Dcp?key=${key}`, { method: 'POST' })
    await fetch(`${service.url}${mcpPath}/${key}?key=${key}`, { method: 'POST' })
    await fetch(`${service.url}${mcpPath}%zz?key=${key}`, { method: 'POST' })
    const log = service.log.join('')
    expect(log).not.toContain(key)
    expect(log).not.toContain(key.slice(prefix.length))
    const lines = service.log.map((line) => JSON.parse(line))
    const line = lines.find(({ operation }) => operation === 'service_list_chats')
    expect(line).toMatchObject({ path: mcpPath, status: 200, code: 'missing_scope', key: prefix })
    expect(lines.some(({ operation, path }) => operation === 'mcp' && path === mcpPath)).toBe(true)
  })

  test('and metrics have the tool as their operation', async () => {
    await callTool({ url: service.url, key: own.key }, 'service_whoami')
    const metrics = await service.app.metrics.metrics()
    expect(metrics).toMatch(/parley_http_requests_total\{operation="service_whoami",status="200"\} [1-9]/)
  })
})
