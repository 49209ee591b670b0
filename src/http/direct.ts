/** Who may use an admin port: a program that connects directly, not a proxy and not a page in a browser. */
import type { IncomingMessage } from 'node:http'
import { ApiError } from '../lib/errors.ts'

/**
 * Headers that proxies, load balancers and networks in front of a service add. Most names say that something was forwarded, or
 * whose address it is; the others begin with the vendor's name.
 */
const forwardingHeaders = [
  /^via$/,
  /forwarded/, // Forwarded, X-Forwarded-*, X-Original-Forwarded-For, X-Vercel-Forwarded-For
  /(client|real|connecting|remote|user|originating|external|socket)-?(ip|addr|address)$/, // X-Real-IP, Fly-Client-IP, True-Client-IP
  /^(x-envoy|x-original|x-azure|x-appengine|x-vercel|x-amzn|x-amz-cf|x-arr|x-proxy|x-sucuri|cf|cdn|fly|fastly|wl-proxy)-/,
]

/** Refuses what a proxy forwarded, what a page asks for, and addresses written to get past a filter. */
export function findIndirect(raw: IncomingMessage): ApiError | undefined {
  const path = (raw.url ?? '').split('?', 1)[0] ?? ''
  if (!path.startsWith('/') || path.includes('%')) {
    return refused('The admin port does not accept paths with percent signs.')
  }
  for (const name of Object.keys(raw.headers)) {
    if (name === 'origin') return refused('The admin port does not serve web pages.')
    if (forwardingHeaders.some((form) => form.test(name))) {
      return refused(
        `The admin port does not accept requests through a proxy, and this request has the header ${name}.`,
      )
    }
  }
  return undefined
}

/** A page that was rebound to this address under its own name shows that name in `Host`. */
export function findForeignHost(raw: IncomingMessage): ApiError | undefined {
  const name = (raw.headers.host ?? '').toLowerCase()
  if (/^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/.test(name)) return undefined
  return refused('The sandbox accepts control requests at 127.0.0.1 or localhost only.')
}

function refused(detail: string): ApiError {
  return new ApiError('not_found', { detail })
}
