/** The client's address: the peer's own, or the one reported by a proxy that the operator trusts. */
import type { IncomingMessage } from 'node:http'
import { isWithin, type Network, readAddress } from '../lib/addresses.ts'

/**
 * The last address of `X-Forwarded-For` that is not a trusted proxy's. Each proxy appends the address that asked it, so
 * anything the client wrote itself is further left and is never reached.
 */
export function clientAddressOf(raw: IncomingMessage, trusted: readonly Network[]): string {
  const peer = readAddress(raw.socket.remoteAddress ?? '')
  if (!peer) return 'unknown'
  if (!isWithin(trusted, peer)) return peer.toString() // guard: who may say where a client is
  const said = [raw.headers['x-forwarded-for'] ?? ''].flat().join(',').split(',')
  for (const text of said.reverse()) {
    const address = readAddress(withoutPort(text.trim()))
    // No trusted proxy wrote anything left of this.
    if (!address) break
    if (!isWithin(trusted, address)) return address.toString() // guard: proxies behind proxies
  }
  return peer.toString()
}

/** Some proxies append the port: `203.0.113.7:4711`, `[2001:db8::1]:4711`. */
function withoutPort(text: string): string {
  return text.replace(/^\[(.*)\](:\d+)?$/, '$1').replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
}
