/** The key in an address, `/api/mcp?key=…`: removed before any other code sees the request, so that nothing logs it. */
import type { IncomingMessage } from 'node:http'
import { mcpPath } from '../contract.ts'

const taken = new WeakMap<IncomingMessage, readonly string[]>()

/** Removes the whole query: nothing at this address reads one. */
export function takeQueryKey(raw: IncomingMessage): void {
  const url = raw.url ?? ''
  if (!url.startsWith(`${mcpPath}?`)) return
  raw.url = mcpPath
  taken.set(raw, new URLSearchParams(url.slice(mcpPath.length)).getAll('key'))
}

/** All keys that the address had. */
export function queryKeysOf(raw: IncomingMessage): readonly string[] {
  return taken.get(raw) ?? []
}
