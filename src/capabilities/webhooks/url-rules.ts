/** Which URLs a webhook may have, and which addresses it may connect to. This makes no look-ups. */
import { type AllowedHosts, hostOf, hostProblemOf } from '../../lib/public-hosts.ts'
import { lengthOf } from '../../lib/text.ts'

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

interface Target {
  readonly url: URL
  /** Without the brackets of an IPv6 address and without a final dot. */
  readonly host: string
  readonly allowed: boolean
}

/** `allow` is PARLEY_WEBHOOK_ALLOW: its hosts may be plain HTTP or private. Returns the target of a URL, or what is wrong with it, as a continuation of the property's name. */
export function readTarget(text: string, allow: AllowedHosts): Target | string {
  if (lengthOf(text) > urlLengthMax) return `must have at most ${urlLengthMax} characters`
  // A URL parser drops line breaks and tabs silently, so two different texts would be the same URL.
  if (/[\s\p{Cc}\\]/u.test(text)) return 'must not contain white space, control characters or backslashes'
  const url = URL.parse(text)
  if (!url) return 'must be a URL, such as https://example.com/hook'
  const host = hostOf(url)
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
  return allowed ? undefined : hostProblemOf(host)
}
