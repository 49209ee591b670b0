/** One log line for every request, with enough to find out what happened to which caller, and no secret. */
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { probes } from './harness/probes.ts'
import { hangMs, until } from './harness/process.ts'
import type { Tenant } from './harness/service.ts'
import { openWorkplace, type Workplace } from './harness/worker.ts'

let workplace: Workplace
let tenant: Tenant
beforeAll(async () => {
  workplace = await openWorkplace({ routes: probes })
  tenant = await workplace.service.tenant()
})
afterAll(() => workplace.close())

interface Line {
  readonly level: string
  readonly msg: string
  readonly request_id?: string
  readonly client_request_id?: string
  readonly operation?: string
  readonly status?: number
  readonly code?: string
  readonly operation_id?: string
  readonly trace_id?: string
  readonly parent_id?: string
}

const lines = (): Line[] => workplace.service.log.map((line) => JSON.parse(line))

/** The line of one request, which is logged once its answer is sent. */
function lineOf(request_id: string | null): Promise<Line> {
  return until(`the request ${request_id} is written down`, hangMs, () =>
    lines().find((line) => line.msg === 'request' && line.request_id === request_id),
  )
}

function send(body: unknown, idempotency_key: string, headers: Readonly<Record<string, string>> = {}) {
  return workplace.service.post('/messages', {
    key: tenant.key,
    body,
    headers: { 'idempotency-key': idempotency_key, ...headers },
  })
}

describe('a refused request', () => {
  test.each([
    ['a wrong key', '/me', { authorization: 'Bearer nothing' }, 401, 'invalid_key'],
    ['an unknown address', '/nothing', {}, 404, 'not_found'],
    ['a query that is not known', '/me?x=1', {}, 400, 'invalid_request'],
    ['a malformed address', '/chats/%zz', {}, 400, 'invalid_request'],
  ])('names the code of %s', async (_, path, headers, status, code) => {
    const given = { authorization: `Bearer ${tenant.key}`, ...headers }
    const response = await fetch(`${workplace.service.url}/api/v1${path}`, { headers: given })
    await response.text()
    expect(response.status).toBe(status)
    expect(await lineOf(response.headers.get('x-request-id'))).toMatchObject({ level: 'info', status, code })
  })

  test('names the code of a body that is too large, while it is still being sent', async () => {
    const { status, headers } = await send({ text: 'x'.repeat(3 << 20) }, randomUUID())
    expect(status).toBe(413)
    expect(await lineOf(headers.get('x-request-id'))).toMatchObject({ status, code: 'payload_too_large' })
  })

  test('names the code of malformed HTTP', async () => {
    const { hostname, port } = new URL(workplace.service.url)
    const answer = await new Promise<string>((resolve) => {
      let heard = ''
      const socket = connect(Number(port), hostname, () => socket.write('NOT HTTP AT ALL\r\n\r\n'))
      socket.on('data', (bytes) => {
        heard += bytes
      })
      socket.on('close', () => resolve(heard))
    })
    const [, request_id = ''] = /x-request-id: (\S+)/i.exec(answer) ?? []
    expect(await lineOf(request_id)).toMatchObject({ status: 400, code: 'invalid_request' })
  })
})

describe('a request about an operation', () => {
  let account_id: string
  let chat_id: string
  beforeAll(async () => {
    await workplace.work()
    account_id = await workplace.connected(tenant)
    const person = workplace.person()
    workplace.write(account_id, person, 'hello')
    await workplace.untilStored(account_id, 1)
    chat_id = `platform:chat:${person}`
  })

  test('names it, and the code if it was refused', async () => {
    const text = 'Good morning'
    const sent = await send({ account_id, chat_id, text }, 'first')
    const operation_id = sent.headers.get('x-operation-id')
    expect(operation_id).toBe(sent.body.operation_id)
    const line = await lineOf(sent.headers.get('x-request-id'))
    expect(line).toMatchObject({ status: 200, operation: 'send_message', operation_id })
    expect(line.code).toBeUndefined()

    workplace.fault({ on: 'send', fault: 'flood_wait', seconds: 60, times: 1, account_id })
    const flooded = await send({ account_id, chat_id, text }, 'second')
    expect(flooded).toMatchObject({ status: 503, body: { code: 'flood_wait' } })
    expect(await lineOf(flooded.headers.get('x-request-id'))).toMatchObject({
      status: 503,
      code: 'flood_wait',
      operation_id: flooded.headers.get('x-operation-id'),
    })
  })
})

describe('X-Request-Id of the caller', () => {
  const ask = async (id: string) => {
    const { headers } = await workplace.service.get('/me', {
      key: tenant.key,
      headers: { 'x-request-id': id },
    })
    return { answered: headers.get('x-request-id'), line: await lineOf(headers.get('x-request-id')) }
  }

  test.each(['0199a1f0-0000-7000-8000-000000000001', 'trace.7:span-12_a', 'x'.repeat(128)])(
    'is logged next to ours: %s',
    async (id) => {
      const { answered, line } = await ask(id)
      expect(answered).not.toBe(id)
      expect(line.client_request_id).toBe(id)
    },
  )

  test.each(['has a space', '{"a":1}', 'x'.repeat(129), '+49 170 1234567', 'ünïcode', 'a,b'])(
    'is omitted in another format: %s',
    async (id) => {
      expect((await ask(Buffer.from(id).toString('latin1'))).line.client_request_id).toBeUndefined()
    },
  )

  test('is omitted if it contains a key', async () => {
    expect((await ask(tenant.key)).line.client_request_id).toBeUndefined()
    expect(workplace.service.log.join()).not.toContain(tenant.key)
  })
})

describe('traceparent of the caller', () => {
  const trace = { trace_id: '4bf92f3577b34da6a3ce929d0e0e4736', parent_id: '00f067aa0ba902b7' }
  const traceparent = `00-${trace.trace_id}-${trace.parent_id}-01`
  const ask = async (headers: Record<string, string>, path = '/me') => {
    const answer = await workplace.service.get(path, { key: tenant.key, headers })
    return lineOf(answer.headers.get('x-request-id'))
  }

  test('is logged in the line of its request, also of a refused one, and of no other', async () => {
    expect(await ask({ traceparent })).toMatchObject({ status: 200, ...trace })
    expect(await ask({ traceparent }, '/nothing')).toMatchObject({ status: 404, ...trace })
    expect((await ask({})).trace_id).toBeUndefined()
  })

  test('is logged in the line about an unexpected failure', async () => {
    const account_id = await workplace.service.account(tenant.workspace_id)
    const chat_id = await workplace.service.chat({ account_id, workspace_id: tenant.workspace_id })
    await workplace.service.allow(tenant)
    const { status, headers } = await workplace.service.post(`/probe/${chat_id}/notes`, {
      key: tenant.key,
      body: { account_id, text: 'refuse' },
      headers: { traceparent, 'idempotency-key': 'fails' },
    })
    expect(status).toBe(500)
    const request_id = headers.get('x-request-id')
    const failed = lines().find((line) => line.level === 'error' && line.request_id === request_id)
    expect(failed).toMatchObject(trace)
  })

  test.each(['x', `${traceparent},${traceparent}`, `${traceparent}-x`, traceparent.toUpperCase()])(
    'is not logged if it is malformed: %s',
    async (given) => {
      const line = await ask({ traceparent: given })
      expect(line).toMatchObject({ status: 200 })
      expect(JSON.stringify(line)).not.toContain(trace.trace_id)
    },
  )

  test('is not logged if there are two headers', async () => {
    const { hostname, port } = new URL(workplace.service.url)
    const socket = connect(Number(port), hostname)
    const lines = [
      'GET /nothing-twice HTTP/1.1',
      'host: 127.0.0.1',
      `traceparent: ${traceparent}`,
      `Traceparent: ${traceparent}`,
    ]
    socket.end(`${lines.join('\r\n')}\r\nconnection: close\r\n\r\n`)
    const line = await until('the request is written down', hangMs, () =>
      workplace.service.log.find((each) => each.includes('"/nothing-twice"')),
    )
    expect(line).not.toContain(trace.trace_id)
  })
})

describe('a probe', () => {
  test('is not logged at the default level', async () => {
    const { url, log } = workplace.service
    for (const path of ['/healthz', '/readyz', '/nothing']) await (await fetch(url + path)).text()
    await until('the last of them is written down', hangMs, () =>
      log.some((line) => line.includes('"/nothing"')),
    )
    expect(log.filter((line) => line.includes('"/healthz"') || line.includes('"/readyz"'))).toEqual([])
  })
})
