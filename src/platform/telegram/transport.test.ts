import { randomBytes } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import { ConnectionClosedError } from '@fuman/net'
import { TcpConnection } from '@fuman/node'
import { afterEach, describe, expect, test } from 'vitest'
import { within } from '../../../test/platform/conformance-recorder.ts'
import { Client } from './client.ts'
import { NotWritten } from './errors.ts'
import { openSessionStorage } from './storage.ts'
import { guardedTransport } from './transport.ts'

const servers: Server[] = []

afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

/** Answers the first bytes of every connection with these, and then stays silent. */
async function listen(answer: Uint8Array = new Uint8Array(0)) {
  const heard: Buffer[] = []
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.on('data', (bytes) => heard.push(bytes))
    socket.once('data', () => socket.write(answer))
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const bound = server.address()
  const port = bound !== null && typeof bound === 'object' ? bound.port : 0
  const dc = { id: 2, ipAddress: '127.0.0.1', port, ipv6: false, mediaOnly: false, testMode: false }
  return { dc, heard, sockets }
}

type Listening = Awaited<ReturnType<typeof listen>>

async function connectTo({ dc }: Listening, held: () => boolean = () => true) {
  const blob = { version: 1, dc_id: 2, key: randomBytes(256).toString('base64'), places: {} }
  const storage = openSessionStorage(Buffer.from(JSON.stringify(blob)))
  if (!storage) throw new Error('The blob is not ours.')
  const ended = Promise.withResolvers<string>()
  const client = new Client(
    { api_id: 1, api_hash: 'x', test_dc: dc },
    { storage, held, migrates: false, proxy: null, pushed: () => {}, ended: ended.resolve },
  )
  client.connect().catch(() => {})
  return { client, ended: ended.promise }
}

/** The header of a frame of this length, and what follows it. */
function frame(length: number, rest: readonly number[] = []): Uint8Array {
  const header = Buffer.alloc(4)
  header.writeUInt32LE(length)
  return Buffer.concat([header, Buffer.from(rest)])
}

describe('a connection', () => {
  test('whose lease has expired writes no byte, and ends', async () => {
    const server = await listen()
    const { ended } = await connectTo(server, () => false)
    expect(await within(20_000, ended)).toBe('The lease has run out.')
    await expect.poll(() => server.sockets[0]?.destroyed).toBe(true)
    expect(Buffer.concat(server.heard)).toHaveLength(0)
  })

  test('that gets a frame of four bytes, which is a transport error, ends', async () => {
    const minus404 = [0x6c, 0xfe, 0xff, 0xff]
    const { ended } = await connectTo(await listen(frame(4, minus404)))
    expect(await within(20_000, ended)).toBe('Transport error -404.')
  })

  test('that gets a frame of more than 4 MiB ends before the frame is read', async () => {
    const { ended } = await connectTo(await listen(frame(4 * 1024 * 1024 + 1)))
    expect(await within(20_000, ended)).toBe('A frame is too long.')
  })

  test('that gets more than 2 KiB without encryption ends before they are read', async () => {
    const { ended } = await connectTo(await listen(frame(2049, [0, 0, 0, 0, 0, 0, 0, 0])))
    expect(await within(20_000, ended)).toBe('A frame of the key exchange is too long.')
  })

  test('that is cut ends, and every later call is not_written', async () => {
    const server = await listen()
    const { client, ended } = await connectTo(server)
    await expect.poll(() => server.heard.length).toBeGreaterThan(0)
    server.sockets[0]?.destroy()
    expect(await within(20_000, ended)).toBe('The connection was lost.')
    const bytes = Buffer.concat(server.heard).length
    await expect(client.call({ _: 'updates.getState' })).rejects.toThrow(NotWritten)
    expect(Buffer.concat(server.heard)).toHaveLength(bytes)
    expect(server.sockets).toHaveLength(1)
  })

  test('whose lease expires between two calls ends, and the second call is not_written', async () => {
    const server = await listen()
    let held = true
    const { client, ended } = await connectTo(server, () => held)
    await expect.poll(() => server.heard.length).toBeGreaterThan(0)
    held = false
    await expect(client.call({ _: 'updates.getState' })).rejects.toThrow(NotWritten)
    expect(await within(20_000, ended)).toBe('The lease has run out.')
  })

  test('that was closed reports no end, and a second close does nothing', async () => {
    const server = await listen()
    let ends = 0
    const { client, ended } = await connectTo(server)
    void ended.then(() => ends++)
    await expect.poll(() => server.sockets.length).toBe(1)
    await client.close()
    await client.close()
    await expect.poll(() => server.sockets[0]?.destroyed).toBe(true)
    expect(ends).toBe(0)
  })
})

describe('the transport of a session', () => {
  const guard = { held: () => true, ended: () => {} }

  test('dials once', async () => {
    const { dc } = await listen()
    const transport = guardedTransport(guard, { dialsMax: 1, loopbackOnly: true, proxy: null })
    await transport.connect(dc)
    await expect(transport.connect(dc)).rejects.toThrow()
    transport.close()
  })

  test('reports a write that fails as the end of the connection, whatever the socket says', async () => {
    const { dc } = await listen()
    const transport = guardedTransport(guard, { dialsMax: 1, loopbackOnly: true, proxy: null })
    const connection = await transport.connect(dc)
    if (!(connection instanceof TcpConnection)) throw new Error('It is another connection.')
    connection.socket.destroy()
    await expect(connection.write(Buffer.from('bytes'))).rejects.toThrow(ConnectionClosedError)
    transport.close()
  })

  test('of a test dials only loopback', async () => {
    const { dc } = await listen()
    const transport = guardedTransport(guard, { dialsMax: 5, loopbackOnly: true, proxy: null })
    await expect(transport.connect({ ...dc, ipAddress: 'localhost' })).rejects.toThrow()
    transport.close()
  })
})
