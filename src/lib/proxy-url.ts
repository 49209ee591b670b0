/** The address of a proxy, as users write it, with or without credentials. This makes no look-ups. */
import { type AllowedHosts, hostOf, hostProblemOf } from './public-hosts.ts'
import { lengthOf } from './text.ts'

const schemes = ['socks5', 'http', 'https'] as const

export interface ProxyUrl {
  readonly scheme: (typeof schemes)[number]
  /** Without the brackets of an IPv6 address. */
  readonly host: string
  readonly port: number
  readonly credentials: { readonly username: string; readonly password: string } | null
}

const urlLengthMax = 2048
/** SOCKS5 has one byte for the length of each. */
const credentialBytesMax = 255

/** The proxy, or what is wrong with the text, as a continuation of the property's name. It never quotes the text. */
export function parseProxyUrl(text: string): ProxyUrl | string {
  if (lengthOf(text) > urlLengthMax) return `must have at most ${urlLengthMax} characters`
  if (/[\s\p{Cc}\\]/u.test(text)) return 'must not contain white space, control characters or backslashes'
  if (
    /^(tg:\/\/proxy|https?:\/\/(t|telegram)\.me\/proxy)\b/i.test(text) ||
    /^mtproxy:|[?&]secret=/i.test(text)
  ) {
    return 'must be a SOCKS5 or HTTP proxy: MTProxy links are not supported, because such a proxy may change what Telegram shows'
  }
  const [, named] = /^(\w+):\/\/(?!\/)/.exec(text) ?? []
  const scheme = schemes.find((each) => each === named?.toLowerCase())
  if (!scheme)
    return 'must begin with socks5://, http:// or https://, such as socks5://proxy.example.com:1080'
  // Only under a scheme of the web a URL's host is decoded and normalised: `socks5://%31%32%37.0.0.1` would keep its own.
  const url = URL.parse(`http${text.slice(scheme.length)}`) // guard: the host of a proxy is normalised
  const port = url ? portOf(url, text) : undefined
  const host = url ? hostOf(url).toLowerCase() : ''
  if (!url || host === '' || port === undefined)
    return 'must name a host and a port, such as socks5://proxy.example.com:1080'
  if (!/^\/?$/.test(url.pathname) || /[?#]/.test(text)) return 'must end after the port'
  const credentials = credentialsOf(url)
  if (typeof credentials === 'string') return credentials
  return { scheme, host, port, credentials }
}

/** A URL parser drops the standard port of http and https, which a proxy's address must name all the same. */
function portOf(url: URL, text: string): number | undefined {
  const [, digits] = /:(\d{1,5})\/?$/.exec(text) ?? []
  const port = Number(url.port || digits)
  return port > 0 && port < 65_536 ? port : undefined
}

function credentialsOf(url: URL): ProxyUrl['credentials'] | string {
  if (!url.username && !url.password) return null
  try {
    const username = decodeURIComponent(url.username)
    const password = decodeURIComponent(url.password)
    const isShort = [username, password].every((each) => Buffer.byteLength(each) <= credentialBytesMax)
    if (!isShort || /\p{Cc}/u.test(username + password) || username.includes(':') || username === '') {
      return `must have a user name without a colon, and at most ${credentialBytesMax} bytes in name and password each`
    }
    return { username, password }
  } catch {
    return 'must have a user name and a password that are percent-encoded correctly'
  }
}

/** What is wrong with the proxy's host, unless the operator has listed it. */
export function proxyHostProblemOf({ host }: ProxyUrl, allow: AllowedHosts): string | undefined {
  if (allow.has(host)) return undefined
  const problem = hostProblemOf(host)
  return problem && `${problem}, unless PARLEY_PROXY_ALLOW of the service lists it`
}

/** As it is shown and recorded: without credentials. */
export function shownProxy({ scheme, host, port }: ProxyUrl): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}
