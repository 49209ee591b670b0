/** Checks where a browser's request comes from: one of our pages, at one of our addresses. */
import type { FastifyRequest } from 'fastify'
import { type Config, isLoopback } from '../config.ts'
import { ApiError } from '../lib/errors.ts'
import { quote } from '../lib/text.ts'
import type { Route } from '../route.ts'
import { isForm } from './multipart.ts'
import { isText } from './text-file.ts'

/** How a browser reaches us: over TLS, which a proxy terminates; on this machine; or in plain text over a network. */
export type Transport = 'tls' | 'loopback' | 'plain'

/** The transport that the `Host` header implies. Undefined: not an address of ours, such as a rebound name. */
function transportOf({ base_url }: Config, host: string): Transport | undefined {
  const name = host.toLowerCase()
  const base = base_url === undefined ? undefined : new URL(base_url)
  if (base && (name === base.host || name === `${base.host}:${base.protocol === 'https:' ? 443 : 80}`)) {
    if (base.protocol === 'https:') return 'tls'
    return isLoopbackHost(name) ? 'loopback' : 'plain'
  }
  return isLoopbackHost(name) ? 'loopback' : undefined
}

function isLoopbackHost(host: string): boolean {
  return isLoopback(host.replace(/:\d{1,5}$/, '').replace(/^\[(.*)\]$/, '$1'))
}

export function requireOwnHost(config: Config, host: string): Transport {
  const transport = transportOf(config, host)
  if (transport) return transport
  const address = config.base_url ? `${config.base_url} and at` : 'PARLEY_BASE_URL, once that is set, and at'
  throw new ApiError('origin_refused', {
    detail: `The dashboard is served at ${address} localhost, not at ${quote(host)}.`,
  })
}

/** Refuses a password, or a token as good as one, that would travel over a network in plain text. */
export function requirePrivate(request: FastifyRequest): void {
  if (request.transport === 'plain') {
    throw new ApiError('origin_refused', {
      detail:
        'Signing in needs HTTPS: set PARLEY_BASE_URL to an https address, or open the dashboard at localhost.',
    })
  }
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * A request that changes something must come from one of our pages, which the browser shows in one of two headers, and have a
 * body that no other site's form can send.
 */
export function requireOwnOrigin(config: Config, request: FastifyRequest, route: Route | undefined): void {
  if (safeMethods.has(request.method)) return
  const { origin, host = '', 'sec-fetch-site': site, 'content-type': type } = request.headers
  if (origin === undefined && site === undefined) throw new ApiError('origin_refused')
  if (site !== undefined && site !== 'same-origin') throw new ApiError('origin_refused')
  if (origin !== undefined && origin !== originOf(config, request.transport, host)) {
    throw new ApiError('origin_refused', { detail: explainOrigin(config, origin, host) })
  }
  const isJson = type === undefined || /^application\/json\s*(;|$)/i.test(type)
  const sound = isJson || takesFile(request, route) // guard: a file only where the route takes one
  if (!sound) {
    throw new ApiError('origin_refused', { detail: 'The dashboard accepts JSON only.' })
  }
}

function explainOrigin({ base_url }: Config, origin: string, host: string): string {
  const scheme = /^(https?):\/\/(.*)$/.exec(origin)
  const base = base_url === undefined ? undefined : new URL(base_url)
  // guard: a scheme that differs is named
  if (scheme && base && scheme[2] === base.host && origin !== base.origin) {
    return `The page is at ${quote(origin)}, but PARLEY_BASE_URL says ${base.protocol.slice(0, -1)}. Open the dashboard at ${base.origin}, or set PARLEY_BASE_URL to an address that begins with ${scheme[1]}.`
  }
  return `The page is at ${quote(origin)}, but the Host header says ${quote(host)}. A proxy must pass the Host header on.`
}

/** No other site's page can send these types without our permission either, as long as the origin is checked. */
function takesFile({ raw }: FastifyRequest, route: Route | undefined): boolean {
  if (route?.text) return isText(raw, route.text)
  return route?.form !== undefined && isForm(raw)
}

/**
 * For an address that programs call; they send no `Origin`. A page sends its own, and only ours may call: any other page has
 * been rebound or tricked into calling, even if a name of its own resolves to us.
 */
export function requireNoForeignPage(config: Config, request: FastifyRequest): void {
  const { origin, host = '' } = request.headers
  if (origin === undefined) return
  const transport = transportOf(config, host)
  const own = transport !== undefined && origin === originOf(config, transport, host)
  if (!own)
    throw new ApiError('origin_refused', {
      detail: 'The dashboard refuses requests from pages of other sites.',
    })
}

/** For what only our own pages may read: a browser says in one of two headers which site asks. */
export function requireNoForeignReader(config: Config, request: FastifyRequest): void {
  const { 'sec-fetch-site': site } = request.headers
  if (site !== undefined && site !== 'same-origin') throw new ApiError('origin_refused') // guard: the stream is for our own pages
  requireNoForeignPage(config, request)
}

/** In the format of the `Origin` header. */
function originOf({ base_url }: Config, transport: Transport | undefined, host: string): string {
  if (transport !== 'loopback' && base_url !== undefined) return new URL(base_url).origin
  return `http://${host.toLowerCase()}`
}
