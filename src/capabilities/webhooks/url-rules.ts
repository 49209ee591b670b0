/** Which URLs a webhook may have, and which addresses it may connect to. This makes no look-ups. */
import ipaddr from 'ipaddr.js'
import { lengthOf, quote } from '../../lib/text.ts'

const urlLengthMax = 2048

/** Ports from 1024 on that browsers block: https://fetch.spec.whatwg.org/#port-blocking */
const browserPorts = [
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697,
  10080,
]
/** Ports of databases and caches, which may interpret a request as commands. */
const databasePorts = [
  1433, 1434, 1521, 2379, 2380, 3050, 3306, 5432, 5433, 5984, 6379, 6380, 7474, 7687, 8086, 9042, 9200, 9300,
  11211, 26257, 27017, 27018, 27019, 28015, 33060, 50000,
]
export const blockedPorts: ReadonlySet<number> = new Set([...browserPorts, ...databasePorts])

/** Names of this machine or its local network. */
const localNames = ['localhost', 'local', 'internal', 'home.arpa']

/** In a public range, but answered by the host itself: the metadata service of Azure. */
const metadataAddress = '168.63.129.16'

/** Global unicast. ipaddr.js also calls addresses unicast that are in no known range, such as `::7f00:1`. */
const globalUnicast: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3]

/** The hosts of PARLEY_WEBHOOK_ALLOW: these may be plain HTTP or private. */
export type Allowed = ReadonlySet<string>

interface Target {
  readonly url: URL
  /** Without the brackets of an IPv6 address and without a final dot. */
  readonly host: string
  readonly allowed: boolean
}

/** The target of a URL, or what is wrong with it, as a continuation of the property's name. */
export function readTarget(text: string, allow: Allowed): Target | string {
  if (lengthOf(text) > urlLengthMax) return `must have at most ${urlLengthMax} characters`
  // A URL parser drops line breaks and tabs silently, so two different texts would be the same URL.
  if (/[\s\p{Cc}\\]/u.test(text)) return 'must not contain white space, control characters or backslashes'
  const url = URL.parse(text)
  if (!url) return 'must be a URL, such as https://example.com/hook'
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  const allowed = allow.has(host)
  const problem = problemOf(url, { host, allowed })
  return problem ?? { url, host, allowed }
}

function problemOf(url: URL, { host, allowed }: Omit<Target, 'url'>): string | undefined {
  if (url.protocol !== 'https:' && !(allowed && url.protocol === 'http:'))
    return 'must begin with https://, unless PARLEY_WEBHOOK_ALLOW of the service lists the host'
  if (url.username || url.password) return 'must not contain a user name or a password'
  if (url.hash || url.href.endsWith('#')) return 'must not have a fragment'
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  const standard = port === 443 || (allowed && port === 80)
  if (!standard && (port < 1024 || blockedPorts.has(port))) {
    return `must not use port ${port}; use 443 or a port from 1024 on`
  }
  if (allowed) return undefined
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
