/** Splits the arguments of a call as the route expects them. The route's own schemas report what is wrong with them. */
import type { Tool } from './tools.ts'

interface ToolInput {
  readonly params: Readonly<Record<string, unknown>>
  readonly query: Readonly<Record<string, unknown>>
  readonly body: unknown
}

export type Arguments = Readonly<Record<string, unknown>>

/** Arguments that are not in the path go into the body, or into the query of a route without a body. */
export function splitArguments({ route, numbers }: Tool, given: Arguments): ToolInput {
  const inPath = new Set(Object.keys((route.params as { shape?: object } | undefined)?.shape ?? {}))
  const [params = {}, rest = {}] = [true, false].map((named) =>
    Object.fromEntries(Object.entries(given).filter(([name]) => inPath.has(name) === named)),
  )
  if (route.body) return { params, query: {}, body: rest }
  // A string given for a number keeps its quotes, so that the route refuses it.
  const asText = ([name, value]: [string, unknown]) => [
    name,
    numbers.has(name) ? JSON.stringify(value) : value,
  ]
  return { params, query: Object.fromEntries(Object.entries(rest).map(asText)), body: undefined }
}
