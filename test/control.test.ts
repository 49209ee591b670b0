/** The sandbox's control address: for callers on this machine that mean this machine, in sentences. */
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { copyDatabase, type TestDatabase } from './harness/database.ts'
import { endProcesses, spawnParley } from './harness/process.ts'
import { testSecret } from './harness/worker.ts'

let directory: string
let database: TestDatabase
const bases = { sandbox: '', start: '' }
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-control-'))
  database = await copyDatabase()
  const sandbox = spawnParley(['sandbox', '--port', '0', '--data-dir', join(directory, 'alone')])
  const start = spawnParley(['start', '--port', '0', '--data-dir', join(directory, 'start')], {
    DATABASE_URL: database.url,
    PARLEY_SECRET: testSecret,
    PARLEY_HOST: '0.0.0.0',
  })
  bases.sandbox = await sandbox.ready()
  bases.start = await start.ready()
})
afterAll(async () => {
  await endProcesses()
  await database.drop()
  await rm(directory, { recursive: true, force: true })
})

interface Asked {
  readonly method?: string
  readonly path: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Where to knock, if not on the loopback address. */
  readonly hostname?: string
}

interface Answer {
  readonly status: number | undefined
  readonly body: Record<string, unknown>
}

/** With the headers exactly as given: `fetch` would choose the host by itself. */
function ask(base: string, { method = 'POST', path, body, headers = {}, hostname = '127.0.0.1' }: Asked) {
  const { port } = new URL(base)
  return new Promise<Answer>((resolve, reject) => {
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const asked = request({
      hostname,
      port,
      method,
      path: `/sandbox/v1${path}`,
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
    { host: 'localhost', forwarded: 'for=127.0.0.1' },
  ])('404 for %j, and nothing happens', async (headers) => {
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

  test('404 for an account that never connected, and for an address nobody knows', async () => {
    const body = JSON.stringify({ account_id, person_id: 1001, text: 'hello' })
    expect(await ask(bases[verb], { path: '/messages', body })).toMatchObject({ status: 404 })
    expect(await ask(bases[verb], { path: '/elsewhere', body })).toMatchObject({ status: 404 })
  })
})

describe('a service that listens everywhere', () => {
  test('404 for callers of other addresses, whatever host they name', async () => {
    const outside = Object.values(networkInterfaces())
      .flat()
      .flatMap((each) => (each && !each.internal && each.family === 'IPv4' ? [each.address] : []))
    for (const hostname of outside) {
      const headers = { host: 'localhost' }
      const answer = await ask(bases.start, { method: 'GET', path: '/journal', headers, hostname })
      expect(answer).toMatchObject({ status: 404 })
    }
    expect(await ask(bases.start, { method: 'GET', path: '/journal' })).toMatchObject({ status: 200 })
  })
})
