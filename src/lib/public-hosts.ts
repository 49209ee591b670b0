/**
 * Which hosts the service may connect to when a user names them: a user must not reach, or find out about, the operator's own
 * network. A name is looked up and checked at every connection, because its addresses may change.
 */
import { lookup, Resolver } from 'node:dns/promises'
import ipaddr from 'ipaddr.js'
import { quote } from './text.ts'

/** Hosts that the operator has listed: these may be private. */
export type AllowedHosts = ReadonlySet<string>

/** Every address of a name. Tests pass their own resolver. */
export type Resolve = (name: string) => Promise<readonly string[]>

/** Names of this machine or its local network. */
const localNames = ['localhost', 'local', 'internal', 'home.arpa']

/** In a public range, but answered by the host itself: the metadata service of Azure. */
const metadataAddress = '168.63.129.16'

/** Global unicast. ipaddr.js also calls addresses unicast that are in no known range, such as `::7f00:1`. */
const globalUnicast: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3]

/** The host of a URL, without the brackets of an IPv6 address and without a final dot. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
}

/** What is wrong with a host that the operator has not listed, as a continuation of the property's name. Makes no look-up. */
export function hostProblemOf(host: string): string | undefined {
  if (ipaddr.isValid(host)) return isPublic(host) ? undefined : `must not use the address ${quote(host)}`
  // A second dot at the end would turn `localhost` into another name.
  if (host.split('.').includes('')) return 'must not have an empty part in its host name'
  const local = localNames.some((name) => host === name || host.endsWith(`.${name}`))
  return local || !host.includes('.') ? `must not use the local name ${quote(host)}` : undefined
}

/** Whether an address is on the public internet. IPv4 mapped to IPv6 is judged as IPv4. */
export function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  if (parsed.range() !== 'unicast' || parsed.toString() === metadataAddress) return false
  return !(parsed instanceof ipaddr.IPv6) || parsed.match(globalUnicast)
}

export class HostRefused extends Error {
  override readonly name = 'HostRefused'
  readonly problem: 'dns' | 'blocked_address'

  constructor(problem: HostRefused['problem']) {
    super(problem)
    this.problem = problem
  }
}

/** The addresses of a name, all of which may be connected to. */
export async function requireAddresses(
  name: string,
  allow: AllowedHosts,
  resolve: Resolve = resolveName,
): Promise<readonly string[]> {
  // An operator's own names may be in the hosts file, which DNS does not read.
  const addresses = allow.has(name) ? await lookupAll(name) : await resolve(name)
  if (addresses.length === 0) throw new HostRefused('dns')
  // One private address blocks the name, because it would be chance which address is connected to.
  if (!allow.has(name) && !addresses.every((address) => allow.has(address) || isPublic(address))) {
    throw new HostRefused('blocked_address') // guard: every address of a name is checked
  }
  return addresses
}

async function lookupAll(name: string): Promise<readonly string[]> {
  const found = await lookup(name, { all: true }).catch(() => [])
  return found.map(({ address }) => address)
}

/** Asks the name servers directly: a name that never resolves must not block one of the few look-up threads. */
async function resolveName(name: string): Promise<readonly string[]> {
  return resolveWith(new Resolver({ timeout: 3_000, tries: 2 }), name)
}

/** Both families. If one fails while the other answers, the name counts as not having it. */
export async function resolveWith(resolver: Resolver, name: string): Promise<readonly string[]> {
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
}
