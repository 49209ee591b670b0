/** The stream of marks as the leading tab reads it, on a real socket. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { until } from '../../../../test/harness/process.ts'

// By a name that the compiler does not follow: the service's own types know no browser.
const load = (path: string) => import(path)

const stateMsMax = 30_000
let answer: (response: ServerResponse) => void
let asked = 0
const server = createServer((_, response) => {
  asked++
  answer(response)
})
const { fetch } = globalThis

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  // A browser sends the page's origin.
  vi.stubGlobal('fetch', (path: string, init: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init))
})
beforeEach(() => {
  asked = 0
})
afterAll(async () => {
  vi.unstubAllGlobals()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

/** Reads until the end of the session, or until the returned function is called. */
async function read() {
  const { readStream } = await load('./stream.ts')
  const heard: unknown[] = []
  const stop = new AbortController()
  const say = (what: string) => () => void heard.push(what)
  const ended = readStream(
    {
      opened: say('opened'),
      lost: say('lost'),
      refused: say('refused'),
      marks: (marks: readonly { kind: string }[]) => heard.push(marks.map(({ kind }) => kind)),
      alive: () => {},
    },
    stop.signal,
  )
  return { heard, ended, stop: () => stop.abort() }
}

const marks = (...kinds: string[]) =>
  `event: marks\ndata: ${JSON.stringify(kinds.map((kind) => ({ kind })))}\n\n`

test('marks arrive whole and in order, however the network cuts them', async () => {
  const pieces = [
    `: hello\n\n${marks('chats')}event: ma`,
    'rks\ndata: [{"kind":',
    `"notes"}]\n\n${marks('keys', 'gates')}`,
  ]
  answer = (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    const next = () => {
      const piece = pieces.shift()
      if (piece !== undefined) response.write(piece, () => setImmediate(next))
    }
    next()
  }
  const { heard, ended, stop } = await read()
  await until('all marks are there', stateMsMax, () => heard.length === 4)
  expect(heard).toEqual(['opened', ['chats'], ['notes'], ['keys', 'gates']])
  stop()
  await ended
})

test('a stream that is cut is opened again, and says that marks may be missing', async () => {
  answer = (response) => {
    response.writeHead(200).write(marks('chats'))
    if (asked === 1) response.write(': end', () => response.destroy())
  }
  const { heard, ended, stop } = await read()
  await until('it is open again', stateMsMax, () => heard.length >= 5)
  expect(heard).toEqual(['opened', ['chats'], 'lost', 'opened', ['chats']])
  stop()
  await ended
})

test.each([
  ['a service without room', (response: ServerResponse) => void response.writeHead(503).end()],
  [
    'a stream that another one replaces',
    (response: ServerResponse) => void response.end('event: replaced\n\n'),
  ],
])('%s is not asked again soon', async (_, act) => {
  answer = act
  const { heard, ended, stop } = await read()
  await until('it is refused', stateMsMax, () => heard.includes('refused'))
  expect(heard).not.toContain('lost')
  expect(asked).toBe(1)
  stop()
  await ended
})

test('the end of the session ends the reading', async () => {
  answer = (response) => void response.writeHead(401).end()
  const { heard, ended, stop } = await read()
  await Promise.race([ended, until('it is asked again', stateMsMax, () => asked > 1)])
  expect([heard, asked]).toEqual([[], 1])
  stop()
})
