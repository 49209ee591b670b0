/** The arguments of a call, as the route wants them. What is wrong with them, the route's own schemas say. */
import type { Tool } from './tools.ts'

export interface ToolInput {
  readonly params: Readonly<Record<string, unknown>>
  readonly query: Readonly<Record<string, unknown>>
  readonly body: unknown
}

export type Arguments = Readonly<Record<string, unknown>>

/** What the path does not name goes into the body, or into the query of a route without one. */
export function splitArguments({ route, numbers }: Tool, given: Arguments): ToolInput {
  const inPath = new Set(Object.keys((route.params as { shape?: object } | undefined)?.shape ?? {}))
  const [params = {}, rest = {}] = [true, false].map((named) =>
    Object.fromEntries(Object.entries(given).filter(([name]) => inPath.has(name) === named)),
  )
  if (route.body) return { params, query: {}, body: rest }
  // A text for a number keeps its quotes, so that the route refuses it.
  const asText = ([name, value]: [string, unknown]) => [
    name,
    numbers.has(name) ? JSON.stringify(value) : value,
  ]
  return { params, query: Object.fromEntries(Object.entries(rest).map(asText)), body: undefined }
}
