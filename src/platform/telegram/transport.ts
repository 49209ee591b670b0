/**
 * The sockets of a client. Before every write the transport checks that the lease still holds. It reports the end of
 * a connection, bounds its frames, and treats a transport error (a frame of four bytes) as the end. mtcute itself
 * would wait forever after the first -404, and delete the auth key after the second.
 */
import { ConnectionClosedError, type ITcpConnection } from '@fuman/net'
import { connectTcp, TcpConnection } from '@fuman/node'
import {
  IntermediatePacketCodec,
  type IPacketCodec,
  type ITelegramConnection,
  type TelegramTransport,
} from '@mtcute/core'
import { isLoopbackAddress } from '../../lib/addresses.ts'
import type { AccountProxy } from '../port.ts'
import { dialThrough, type Place } from './dial.ts'

/** The longest frame that is read: Telegram's answers have at most 1 MiB. */
const frameBytesMax = 4 * 1024 * 1024

/** The longest frame that is not encrypted. Those of a key exchange have some 700 bytes; mtcute calculates with them. */
const plainBytesMax = 2 * 1024

/** Why a connection ended whose key the data centre does not know: it was destroyed, or never logged in there. */
export const keyUnknown = 'Transport error -404.'

/** The data centre accepts no more connections from this address for now. */
export const tooManyConnections = 'Transport error -429.'

export function isTransportError(reason: string): boolean {
  return reason.startsWith('Transport error ')
}

interface Guard {
  /** Whether a byte may be written now. */
  held(): boolean
  /** The newest connection has ended, and with it the client. */
  ended(reason: string, cause?: Error): void
}

interface TransportRules {
  /** A session dials once. A login follows the account to its data centre. */
  readonly dialsMax: number
  /** For a test's data centre: no other address is ever dialled. */
  readonly loopbackOnly: boolean
  /** Null: it dials the data centre itself. */
  readonly proxy: AccountProxy | null
}

export interface GuardedTransport extends TelegramTransport {
  close(): void
}

export function guardedTransport(guard: Guard, rules: TransportRules): GuardedTransport {
  const open = new Set<ITcpConnection>()
  let newest: ITcpConnection | undefined
  let dials = 0
  let isOver = false
  const over = new AbortController()
  const end = (connection: ITcpConnection | undefined, reason: string) => {
    if (connection && open.delete(connection)) connection.close()
    if (connection === newest && !isOver) guard.ended(reason)
  }
  /** Never around the proxy: if it fails, so does the client. */
  const dial = async (place: Place): Promise<ITcpConnection> => {
    if (!rules.proxy) return connectTcp(place) // guard: never around the proxy
    try {
      return new TcpConnection(await dialThrough(rules.proxy, place, over.signal))
    } catch (error) {
      if (!isOver) guard.ended('The proxy failed.', error as Error)
      throw new ConnectionClosedError()
    }
  }
  return {
    packetCodec: () => new WatchedCodec((reason) => end(newest, reason)),
    async connect({ ipAddress: address, port }): Promise<ITelegramConnection> {
      // guard: one connection
      if (++dials > rules.dialsMax) throw new ConnectionClosedError()
      // guard: loopback only
      if (rules.loopbackOnly && !isLoopbackAddress(address)) throw new ConnectionClosedError()
      const connection = await dial({ address, port })
      if (isOver) {
        // The client was closed while it dialled.
        connection.close()
        throw new ConnectionClosedError()
      }
      connection.setNoDelay(true)
      open.add(connection)
      newest = connection
      return watchConnection(connection, guard, (reason) => end(connection, reason))
    },
    close() {
      isOver = true
      over.abort()
      for (const connection of open) connection.close()
      open.clear()
    },
  }
}

function watchConnection(
  connection: ITcpConnection,
  { held }: Guard,
  end: (reason: string) => void,
): ITelegramConnection {
  const write = connection.write.bind(connection)
  const read = connection.read.bind(connection)
  connection.write = async (bytes) => {
    const mayWrite = held() // guard: held before every write
    if (!mayWrite) {
      end('The lease has run out.')
      throw new ConnectionClosedError()
    }
    try {
      await write(bytes)
    } catch {
      end('The connection was lost.')
      // After any other error mtcute would write the same bytes again on its next connection.
      throw new ConnectionClosedError() // guard: a failed write is not repeated
    }
  }
  connection.read = async (into) => {
    try {
      return await read(into)
    } catch (error) {
      end('The connection was lost.')
      throw error
    }
  }
  return connection
}

type Reader = Parameters<IPacketCodec['decode']>[0]

class WatchedCodec extends IntermediatePacketCodec {
  readonly #end: (reason: string) => void

  constructor(end: (reason: string) => void) {
    super()
    this.#end = end
  }

  override decode(reader: Reader, eof: boolean): Uint8Array | null {
    const fault = faultOf(reader)
    if (fault === undefined) return super.decode(reader, eof)
    this.#end(fault)
    throw new ConnectionClosedError()
  }
}

/** Why the next frame ends the connection, if it does. Consumes nothing. */
function faultOf(reader: Reader): string | undefined {
  const length = peek(reader, 0)?.getUint32(0, true)
  if (length === undefined) return undefined
  // guard: bounded frame
  if (length > frameBytesMax) return 'A frame is too long.'
  // guard: transport error
  if (length === 4) {
    const code = peek(reader, 4)?.getInt32(0, true)
    return code === undefined ? undefined : `Transport error ${code}.`
  }
  const isPlain = peek(reader, 4)?.getInt32(0) === 0 && peek(reader, 8)?.getInt32(0) === 0
  // guard: bounded plain frame
  if (isPlain && length > plainBytesMax) return 'A frame of the key exchange is too long.'
  return undefined
}

/** Four bytes at this offset, if they have arrived. */
function peek(reader: Reader, offset: number): DataView | undefined {
  if (reader.available < offset + 4) return undefined
  const bytes = reader.readSync(offset + 4).slice(offset)
  reader.rewind(offset + 4)
  return new DataView(bytes.buffer)
}
