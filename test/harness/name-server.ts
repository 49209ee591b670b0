/** A DNS server on loopback whose answers a test chooses, with a TTL of 0. */
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import type { AddressInfo } from 'node:net'
import ipaddr from 'ipaddr.js'

const types = { 1: 'A', 28: 'AAAA' } as const
type Question = (typeof types)[keyof typeof types]

interface NameServer {
  readonly resolver: Resolver
  /** How many queries it has received. */
  asked(): number
  close(): void
}

/** `answer` returns the addresses of a name; a name without any does not exist. */
export async function openNameServer(
  answer: (name: string, question: Question) => readonly string[],
): Promise<NameServer> {
  let asked = 0
  const socket = createSocket('udp4')
  socket.on('message', (message, { port, address }) => {
    asked += 1
    const { name, type, end } = readQuestion(message)
    const addresses = answer(name, types[type as keyof typeof types] ?? 'A')
    const header = Buffer.from(message.subarray(0, 12))
    header.writeUInt16BE(addresses.length > 0 ? 0x8180 : 0x8183, 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(addresses.length, 6)
    header.fill(0, 8, 12)
    const records = addresses.map((each) => recordOf(each, type))
    socket.send(Buffer.concat([header, message.subarray(12, end), ...records]), port, address)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  const resolver = new Resolver({ timeout: 5_000, tries: 3 })
  resolver.setServers([`127.0.0.1:${(socket.address() as AddressInfo).port}`])
  return { resolver, asked: () => asked, close: () => void socket.close() }
}

function readQuestion(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.'), type: message.readUInt16BE(at + 1), end: at + 5 }
}

/** A pointer to the name of the question, type, class IN, TTL 0, the address. */
function recordOf(address: string, type: number): Buffer {
  const bytes = Buffer.from(ipaddr.parse(address).toByteArray())
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(bytes.length, 10)
  return Buffer.concat([head, bytes])
}
