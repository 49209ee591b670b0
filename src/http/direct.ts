/** Who may speak to an admin port: a program that means it, not a proxy and not a page in a browser. */
import type { IncomingMessage } from 'node:http'
import { ApiError } from '../lib/errors.ts'

/** What proxies add, each its own. `x-forwarded-` begins a whole family and is looked for as such. */
const forwardingHeaders = new Set([
  'forwarded',
  'via',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'true-client-ip',
  'cf-connecting-ip',
])

/** Refuses what a proxy passed on, what a page asks for, and addresses written so that a filter does not know them. */
export function findIndirect(raw: IncomingMessage): ApiError | undefined {
  const path = (raw.url ?? '').split('?', 1)[0] ?? ''
  if (!path.startsWith('/') || path.includes('%')) {
    return refused('The admin port answers addresses that are written plainly, without percent signs.')
  }
  for (const name of Object.keys(raw.headers)) {
    if (name === 'origin') return refused('The admin port does not answer pages in a browser.')
    if (forwardingHeaders.has(name) || name.startsWith('x-forwarded-')) {
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
