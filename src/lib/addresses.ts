/** Network addresses: how they are written, which networks contain them, and as which source they count. */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** Its first address, and the number of leading bits that all its addresses share. */
export type Network = readonly [Address, number]

/** Undefined if it is not an address. An IPv4 address that came over IPv6 (`::ffff:…`) is read as IPv4. */
export function readAddress(text: string): Address | undefined {
  // Neither alone is enough: ipaddr.js also reads `127.1` and `0x7f000001`, and isIP accepts zones such as `%eth-0`, on
  // which ipaddr.js throws.
  return isIP(text) === 0 || !ipaddr.isValid(text) ? undefined : ipaddr.process(text) // guard: zones of addresses
}

/**
 * The source that an address counts as. A provider gives a customer a /64 of IPv6 or more, so all addresses in it are one
 * source: otherwise a single machine would have as many budgets as it likes.
 */
export function sourceOf(address: string): string {
  const parsed = readAddress(address)
  if (!parsed) return address
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString()
  const network = parsed.parts.slice(0, 4).map((part) => part.toString(16))
  return `${network.join(':')}::/64` // guard: one source for a network
}

/** Networks larger than the largest private ones, 10.0.0.0/8 and fc00::/7, would trust strangers. */
const bitsMin = { 4: 8, 6: 7 } as const

export const networksRule =
  'must be addresses or networks of proxies with commas between them, such as 127.0.0.1,10.1.0.0/16: nothing larger than a /8, IPv6 a /7'

/** Undefined if one of them is not a network, or is too large. */
export function readNetworks(text: string): readonly Network[] | undefined {
  const parts = text.split(',').map((part) => part.trim())
  const networks = parts.filter(Boolean).map(readNetwork)
  return networks.every((network) => network !== undefined) ? networks : undefined
}

function readNetwork(text: string): Network | undefined {
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || address.includes('%') || rest.length > 0) return undefined
  const parsed = ipaddr.parse(address)
  // Such addresses are compared as IPv4, so this network would contain none of them.
  if (parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress()) return undefined
  const bitsMax = version === 4 ? 32 : 128
  if (bits === undefined) return [parsed, bitsMax]
  const wanted = /^\d{1,3}$/.test(bits) ? Number(bits) : -1
  if (wanted < bitsMin[version as 4 | 6] || wanted > bitsMax) return undefined // guard: networks of proxies are not all
  return [parsed, wanted]
}

export function isWithin(networks: readonly Network[], address: Address): boolean {
  return networks.some(
    ([first, bits]) => first.kind() === address.kind() && address.match([first, bits] as never),
  )
}

/** An address that never leaves this machine. A name is none: it may be looked up. */
export function isLoopbackAddress(text: string): boolean {
  return text === '::1' || (isIP(text) === 4 && text.startsWith('127.'))
}
