/** The key in an address, `/api/mcp?key=…`: taken out of it before anything else sees the request, so that nothing logs it. */
import type { IncomingMessage } from 'node:http'
import { mcpPath } from '../contract.ts'

const taken = new WeakMap<IncomingMessage, readonly string[]>()

/** The whole query goes: nothing at this address reads one. */
export function takeQueryKey(raw: IncomingMessage): void {
  const url = raw.url ?? ''
  if (!url.startsWith(`${mcpPath}?`)) return
  raw.url = mcpPath
  taken.set(raw, new URLSearchParams(url.slice(mcpPath.length)).getAll('key'))
}

/** As many as came. */
export function queryKeysOf(raw: IncomingMessage): readonly string[] {
  return taken.get(raw) ?? []
}
