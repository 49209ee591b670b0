/** Who may speak to an admin port: a program that means it, not a proxy and not a page in a browser. */
import type { IncomingMessage } from 'node:http'
import { ApiError } from '../lib/errors.ts'

/**
 * What proxies, balancers and networks in front of a service add. Most of them say somewhere in the name that something was
 * forwarded, or whose address it is; the others begin with the name of their maker.
 */
const forwardingHeaders = [
  /^via$/,
  /forwarded/, // Forwarded, X-Forwarded-*, X-Original-Forwarded-For, X-Vercel-Forwarded-For
  /(client|real|connecting|remote|user|originating|external|socket)-?(ip|addr|address)$/, // X-Real-IP, Fly-Client-IP, True-Client-IP
  /^(x-envoy|x-original|x-azure|x-appengine|x-vercel|x-amzn|x-amz-cf|x-arr|x-proxy|x-sucuri|cf|cdn|fly|fastly|wl-proxy)-/,
]

/** Refuses what a proxy passed on, what a page asks for, and addresses written so that a filter does not know them. */
export function findIndirect(raw: IncomingMessage): ApiError | undefined {
  const path = (raw.url ?? '').split('?', 1)[0] ?? ''
  if (!path.startsWith('/') || path.includes('%')) {
    return refused('The admin port answers addresses that are written plainly, without percent signs.')
  }
  for (const name of Object.keys(raw.headers)) {
    if (name === 'origin') return refused('The admin port does not answer pages in a browser.')
    if (forwardingHeaders.some((form) => form.test(name))) {
      return refused(`The admin port does not answer through a proxy, and this request carries ${name}.`)
    }
  }
  return undefined
}

/** A page that was lured here under a name of its own says so in `Host`. */
export function findForeignHost(raw: IncomingMessage): ApiError | undefined {
  const name = (raw.headers.host ?? '').toLowerCase()
  if (/^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/.test(name)) return undefined
  return refused('The sandbox is controlled under a loopback name only: ask 127.0.0.1 or localhost.')
}

function refused(detail: string): ApiError {
  return new ApiError('not_found', { detail })
}
