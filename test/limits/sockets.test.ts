/** Which connection is cut for a new one, with a maximum of 60 (`patched.ts`). */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createBoundedServer } from '../../src/http/sockets.ts'
import { hangMs, until } from '../harness/process.ts'

const connectionsMax = 60
let server: Server
let dropped: string[]
/** Requests that are not answered yet. */
let waiting: [IncomingMessage, ServerResponse][]
const clients = new Set<Client>()

interface Client {
  readonly socket: Socket
  received: string
  cut: boolean
}

beforeEach(async () => {
  dropped = []
  waiting = []
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === '/wait') waiting.push([request, response])
    else response.end(request.url === '/long' ? 'x'.repeat(20_000_000) : 'served')
  }
  const timeouts = { headersMs: 60_000, requestMs: 60_000, keepAliveMs: 60_000 }
  server = createBoundedServer(handle, timeouts, (reason) => dropped.push(reason))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(async () => {
  for (const { socket } of clients) socket.destroy()
  clients.clear()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

/** A separate connection, once the service has it. */
async function dial(send = '', from = '127.0.0.1'): Promise<Client> {
  const { port } = server.address() as AddressInfo
  const accepted = new Promise((resolve) => server.once('connection', resolve))
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  const client: Client = { socket, received: '', cut: false }
  socket
    .on('error', () => {})
    .on('close', () => {
      client.cut = true
    })
  socket.on('data', (bytes) => {
    client.received += bytes.toString('latin1')
  })
  clients.add(client)
  await accepted
  socket.write(send)
  return client
}

async function dialMany(count: number, send?: string, from?: string): Promise<Client[]> {
  const all: Client[] = []
  for (let at = 0; at < count; at++) all.push(await dial(send, from))
  return all
}

const get = (path = '/') => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const isServed = ({ received }: Client) => received.endsWith('served')

async function requireServed(client: Client): Promise<void> {
  client.socket.write(get())
  await until('it is served', hangMs, () => isServed(client))
}

test.each([
  ['idle', ''],
  ['with headers that do not end', 'GET / HTTP/1.1\r\nHost: a\r\nX-'],
  ['with a body that does not end', 'POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx'],
])('cuts those %s for new ones, the oldest first', async (_, send) => {
  const old = await dialMany(connectionsMax, send)
  for (const [at, client] of (await dialMany(5)).entries()) {
    await requireServed(client)
    await until('the oldest is cut', hangMs, () => old[at]?.cut === true)
  }
  expect(old.filter(({ cut }) => cut)).toHaveLength(5)
  expect(dropped).toEqual(Array(5).fill('connections'))
})

test('keeps one with a recent request, and cuts one without', async () => {
  const all = await dialMany(connectionsMax)
  const [first, second] = all
  await requireServed(first as Client)
  await requireServed(await dial())
  await until('the second is cut', hangMs, () => second?.cut === true)
  expect(first?.cut).toBe(false)
})

test('keeps one that waits for its answer; if all of them do, refuses the new one', async () => {
  const all = await dialMany(connectionsMax, get('/wait'))
  await until('all wait', hangMs, () => waiting.length === connectionsMax)
  const more = await dial()
  await until('the new one is cut', hangMs, () => more.cut)
  for (const [, response] of waiting) response.end('served')
  await until('all are served', hangMs, () => all.every(isServed))
})

test('cuts one that does not read its answer if no other can be cut', async () => {
  const reader = await dial(get('/long'))
  reader.socket.pause()
  await until('its answer is on the way', hangMs, () => reader.socket.bytesRead > 0)
  await dialMany(connectionsMax - 1, get('/wait'))
  await until('all others wait', hangMs, () => waiting.length === connectionsMax - 1)
  await requireServed(await dial())
  // Paused, it does not notice.
  reader.socket.resume()
  await until('the reader is cut', hangMs, () => reader.cut)
})

test.runIf(process.platform === 'linux')(
  'cuts the source that has most, even if others are idle',
  async () => {
    const few = await dialMany(2, '', '127.0.0.2')
    const many = await dialMany(connectionsMax - 2)
    for (const client of await dialMany(10, '', '127.0.0.3')) await requireServed(client)
    expect(few.filter(({ cut }) => cut)).toHaveLength(0)
    await until('ten of many are cut', hangMs, () => many.filter(({ cut }) => cut).length >= 10)
    for (const client of few) await requireServed(client)
  },
)
