/**
 * The sandbox's control address, on an admin port: only for callers on this machine that address this machine, with
 * clear errors.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { linkPath, linkProtocol } from '../src/platform/sandbox/frames.ts'
import { copyDatabase, type TestDatabase } from './harness/database.ts'
import { endProcesses, spawnParley } from './harness/process.ts'
import { testSecret } from './harness/worker.ts'

let directory: string
let database: TestDatabase
const bases = { sandbox: '', start: '' }
let mainPort: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-control-'))
  database = await copyDatabase()
  const sandbox = spawnParley(['sandbox', '--port', '0', '--data-dir', join(directory, 'alone')])
  const start = spawnParley(['start', '--port', '0', '--data-dir', join(directory, 'start')], {
    DATABASE_URL: database.url,
    PARLEY_SECRET: testSecret,
    PARLEY_HOST: '0.0.0.0',
    // Holds for the main port only.
    PARLEY_TRUSTED_PROXIES: '127.0.0.1',
    PARLEY_SANDBOX_CONTROL: 'on',
  })
  bases.sandbox = await sandbox.ready()
  bases.start = await start.admin()
  mainPort = await start.ready()
})
afterAll(async () => {
  await endProcesses()
  await database.drop()
  await rm(directory, { recursive: true, force: true })
})

interface ControlCall {
  readonly method?: string
  readonly path: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The address to connect to, if not loopback. */
  readonly hostname?: string
  /** The path is complete, and not below the control address. */
  readonly whole?: boolean
}

interface Answer {
  readonly status: number | undefined
  readonly body: Record<string, unknown>
}

/** With the headers exactly as given: `fetch` would choose the host by itself. */
function ask(base: string, asking: ControlCall) {
  const { method = 'POST', path, body, headers = {}, hostname = '127.0.0.1', whole = false } = asking
  const { port } = new URL(base)
  return new Promise<Answer>((resolve, reject) => {
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const asked = request({
      hostname,
      port,
      method,
      path: whole ? path : `/sandbox/v1${path}`,
      headers: { ...type, ...headers },
    })
    asked.once('error', reject)
    asked.once('response', (response) => {
      text(response).then(
        (answer) => resolve({ status: response.statusCode, body: answer ? JSON.parse(answer) : {} }),
        reject,
      )
    })
    asked.end(body)
  })
}

describe.each(['sandbox', 'start'] as const)('the control address of parley %s', (verb) => {
  const person = { path: '/people', body: JSON.stringify({ name: 'Mara' }) }

  test.each(['localhost', 'localhost:8090', '127.0.0.1', '127.0.0.1:1', '[::1]', '[::1]:8090'])(
    '200 for the host %s',
    async (host) => {
      expect(await ask(bases[verb], { ...person, headers: { host } })).toMatchObject({ status: 200 })
    },
  )

  test.each([
    { host: 'evil.example' },
    { host: 'evil.example:8090' },
    { host: 'localhost.evil.example' },
    { host: '127.0.0.1.evil.example' },
    { host: '127.0.0.1:80@evil.example' },
    { host: '10.0.0.1' },
    { host: 'localhost', 'x-forwarded-for': '127.0.0.1' },
    { host: 'localhost', 'X-Forwarded-Host': 'localhost' },
    { host: 'localhost', 'x-forwarded-anything': '' },
    { host: 'localhost', forwarded: 'for=127.0.0.1' },
    { host: 'localhost', 'x-real-ip': '127.0.0.1' },
    { host: 'localhost', 'x-client-ip': '127.0.0.1' },
    { host: 'localhost', 'x-cluster-client-ip': '127.0.0.1' },
    { host: 'localhost', 'true-client-ip': '127.0.0.1' },
    { host: 'localhost', 'cf-connecting-ip': '127.0.0.1' },
    { host: 'localhost', 'x-envoy-external-address': '127.0.0.1' },
    { host: 'localhost', 'x-original-forwarded-for': '127.0.0.1' },
    { host: 'localhost', 'fly-client-ip': '127.0.0.1' },
    { host: 'localhost', 'cf-ray': '127.0.0.1' },
    { host: 'localhost', 'fastly-client-ip': '127.0.0.1' },
    { host: 'localhost', 'x-azure-clientip': '127.0.0.1' },
    { host: 'localhost', 'x-appengine-user-ip': '127.0.0.1' },
    { host: 'localhost', 'do-connecting-ip': '127.0.0.1' },
    { host: 'localhost', 'x-remote-addr': '127.0.0.1' },
    { host: 'localhost', via: '1.0 proxy' },
    { host: 'localhost', origin: 'http://localhost' },
    { host: 'localhost', origin: 'null' },
  ])('404 for %j, without an effect', async (headers) => {
    for (const asked of [
      person,
      { method: 'GET', path: '/journal' },
      { method: 'DELETE', path: '/faults' },
    ]) {
      expect(await ask(bases[verb], { ...asked, headers })).toMatchObject({
        status: 404,
        body: { code: 'not_found' },
      })
    }
  })

  test.each(['/%73andbox/v1/journal', '/sandbox/v1/%6aournal', '/sandbox%2Fv1/journal'])(
    '404 for %s, which a filter on the path does not recognise',
    async (path) => {
      const answer = await ask(bases[verb], { method: 'GET', path, whole: true })
      expect(answer).toMatchObject({ status: 404, body: { error: expect.stringContaining('percent') } })
    },
  )

  const account_id = 'acc_nobody'
  test.each([
    ['/people', '{}', 'name'],
    ['/people', '{"name":""}', 'name'],
    ['/people', '{"name":"Mara","behaviour":"shouts"}', 'behaviour'],
    ['/people', '{"name":"Mara","username":"1 2"}', 'username'],
    ['/people', '{"name":"Mara","phone":"call me"}', 'phone'],
    ['/people', '{"name":"Mara","delay_seconds":-1}', 'delay_seconds'],
    ['/people', '{"name":"Mara","surprise":1}', 'surprise'],
    ['/people', '{"name":"Mara\\u0000"}', 'NUL'],
    ['/people', '{"name":"\\ud800"}', 'surrogate'],
    ['/people', '{"name":"Mara"', 'JSON'],
    ['/people', '[]', 'object'],
    ['/people', '', 'body'],
    ['/messages', JSON.stringify({ account_id, person_id: 1001, text: '' }), 'text'],
    ['/messages', JSON.stringify({ account_id, person_id: 1001, text: 'x'.repeat(4_097) }), '4096'],
    ['/messages', JSON.stringify({ account_id, person_id: 1.5, text: 'x' }), 'person_id'],
    ['/messages', JSON.stringify({ account_id, person_id: 1001, text: 'x', at: 'noon' }), 'at'],
    [
      '/messages',
      JSON.stringify({ account_id, person_id: 1001, text: 'x', at: '0000-01-01T00:00:00Z' }),
      'at',
    ],
    [
      '/messages',
      JSON.stringify({ account_id, person_id: 1001, text: 'x', at: '9999-12-31T23:59:59-14:00' }),
      'at',
    ],
    ['/edit', JSON.stringify({ account_id, person_id: 1001, message_id: '01', text: 'x' }), 'message_id'],
    ['/delete', JSON.stringify({ account_id, person_id: 1001 }), 'message_id'],
    ['/faults', '{"on":"send","fault":"twice"}', 'twice'],
    ['/faults', '{"on":"updates","fault":"refuse"}', 'refuse'],
    ['/faults', '{"on":"lunch","fault":"refuse"}', 'on'],
    ['/faults', '{"on":"send","fault":"refuse","times":-1}', 'times'],
  ])('400 for %s with %s', async (path, body, named) => {
    const answer = await ask(bases[verb], { path, body })
    expect(answer).toMatchObject({ status: 400, body: { code: expect.stringMatching(/^invalid_/) } })
    expect(answer.body.error).toContain(named)
    expect(answer.body.error).toMatch(/\w+ \w+/)
  })

  test.each(['-1', 'x', '1.5', '1&after=2'])('400 for the journal after %s', async (after) => {
    const answer = await ask(bases[verb], { method: 'GET', path: `/journal?after=${after}` })
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  })

  test('404 for an account that never connected, and for an unknown address', async () => {
    const body = JSON.stringify({ account_id, person_id: 1001, text: 'hello' })
    expect(await ask(bases[verb], { path: '/messages', body })).toMatchObject({ status: 404 })
    expect(await ask(bases[verb], { path: '/elsewhere', body })).toMatchObject({ status: 404 })
  })
})

describe('a service that listens on all addresses', () => {
  test('404 on its main port, for every caller and header', async () => {
    const own = Object.values(networkInterfaces())
      .flat()
      .flatMap((each) => (each && !each.internal && each.family === 'IPv4' ? [each.address] : []))
    const paths = ['/sandbox/v1/journal', '/%73andbox/v1/journal', '/sandbox/v1/openapi.json', '/metrics']
    for (const hostname of ['127.0.0.1', ...own]) {
      for (const path of paths) {
        const headers = { host: 'localhost' }
        const asked = { method: 'GET', path, whole: true, headers, hostname }
        expect(await ask(mainPort, asked)).toMatchObject({ status: 404, body: { code: 'not_found' } })
      }
    }
    for (const path of ['/healthz', '/readyz']) {
      expect(await ask(mainPort, { method: 'GET', path, whole: true })).toMatchObject({ status: 200 })
    }
  })

  test('has an admin port that only this machine reaches', async () => {
    const own = Object.values(networkInterfaces())
      .flat()
      .flatMap((each) => (each && !each.internal && each.family === 'IPv4' ? [each.address] : []))
    for (const hostname of own) {
      const asked = ask(bases.start, { method: 'GET', path: '/journal', hostname })
      await expect(asked).rejects.toThrow('ECONNREFUSED')
    }
    expect(await ask(bases.start, { method: 'GET', path: '/journal' })).toMatchObject({ status: 200 })
  })

  test('200 shows the calls in its reference as calls of the admin port', async () => {
    const answer = await ask(mainPort, { method: 'GET', path: '/docs/sandbox.json', whole: true })
    expect(answer.body.servers).toEqual([{ url: `${bases.start}/sandbox/v1` }])
  })
})

describe('the link to parley sandbox', () => {
  function upgrade(headers: Readonly<Record<string, string>>, path = linkPath): Promise<number | undefined> {
    const { hostname, port } = new URL(bases.sandbox)
    const asked = request({
      hostname,
      port,
      path,
      headers: { connection: 'upgrade', upgrade: linkProtocol, ...headers },
    })
    return new Promise((resolve, reject) => {
      asked.once('error', reject)
      asked.once('response', (response) => resolve(response.resume().statusCode))
      asked.once('upgrade', (response, socket) => {
        socket.destroy()
        resolve(response.statusCode)
      })
      asked.end()
    })
  }

  test('101 for a service on this machine', async () => {
    expect(await upgrade({})).toBe(101)
  })

  test.each([
    [{ host: 'evil.example' }],
    [{ origin: 'http://127.0.0.1' }],
    [{ 'x-forwarded-for': '127.0.0.1' }],
    [{ via: '1.1 proxy' }],
  ])('404 for %j', async (headers) => {
    expect(await upgrade(headers)).toBe(404)
  })
})
