/** Checks an answer against the document: its status, its code, its headers, its properties. */
import { isDeepStrictEqual } from 'node:util'
import { apiPrefix } from '../../src/contract.ts'
import { errors } from '../../src/lib/errors.ts'
import { routes } from '../../src/lists/routes.ts'
import { makeOpenApi } from '../../src/openapi/openapi.ts'
import type { Route } from '../../src/route.ts'

interface Response {
  readonly headers: Readonly<Record<string, unknown>>
  readonly content: {
    readonly 'application/json'?: { readonly examples?: Readonly<Record<string, unknown>> }
  }
}

interface Operation {
  readonly responses: Readonly<Record<string, Response>>
}

const document = makeOpenApi(routes) as unknown as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

/** Headers of HTTP itself, and security headers for browsers; they mean the same everywhere. */
const ofHttp = new Set([
  'accept-ranges',
  'cache-control',
  'connection',
  'content-disposition',
  'content-encoding',
  'content-length',
  'content-range',
  'content-security-policy',
  'content-type',
  'cross-origin-resource-policy',
  'date',
  'etag',
  'keep-alive',
  'referrer-policy',
  'strict-transport-security',
  'transfer-encoding',
  'vary',
  'x-content-type-options',
])

export interface CheckedAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: { readonly code?: unknown }
}

/** Whether the document has the address, with any method. */
export function isDocumented(path: string): boolean {
  return routeAt(path) !== undefined
}

/** What the document does not name. Undefined if it names everything, or the address is not the contract's. */
export function findUndocumented(method: string, path: string, answer: CheckedAnswer): string | undefined {
  const operation = operationAt(method, path)
  if (!operation) return undefined
  const what = `${method} ${path} answered ${answer.status}`
  const response = operation.responses[answer.status]
  if (!response) return `${what}, a status that the document does not name.`
  const { examples } = response.content['application/json'] ?? {}
  const code = answer.status >= 400 ? answer.body.code : undefined
  if (code !== undefined && !(String(code) in (examples ?? {}))) {
    return `${what} ${String(code)}, a code that the document does not name.`
  }
  const named = new Set(Object.keys(response.headers).map((name) => name.toLowerCase()))
  const header = [...answer.headers.keys()].find((name) => !named.has(name) && !ofHttp.has(name))
  if (header) return `${what} with ${header}, a header that the document does not name.`
  if (method === 'HEAD') return undefined
  return answer.status >= 400
    ? findUnsound(what, answer)
    : shapeProblem(routeAt(path, method), what, answer.body)
}

/** Checks a refusal's form, which all refusals share: a sentence, a known code, and the headers of every answer. */
export function findUnsound(what: string, { status, headers, body }: CheckedAnswer): string | undefined {
  if (Object.keys(body).sort().join() !== 'code,error')
    return `${what} in another form than every refusal has.`
  const { code, error } = body as { readonly code: string; readonly error?: unknown }
  if (!Object.hasOwn(errors, code)) return `${what} ${String(code)}, a code that there is not.`
  if (typeof error !== 'string' || error.length < 10) return `${what} ${code} without a sentence.`
  if (status === 500) return `${what}, which is a bug.`
  const missing = always.find((name) => !headers.has(name))
  return missing && `${what} without ${missing}.`
}

/** The headers of every answer, including the answer to a malformed request. */
export const always = ['x-request-id', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']

/** Parsing drops the properties that the schema does not know. */
function shapeProblem(route: Route | undefined, what: string, body: unknown): string | undefined {
  if (!route) return undefined
  const shown = route.name === 'list_events' ? withoutMadeUp(body as EventPage) : body
  const parsed = route.response.safeParse(shown)
  if (!parsed.success) return `${what} in a shape that the document does not have: ${parsed.error.message}`
  return isDeepStrictEqual(parsed.data, shown)
    ? undefined
    : `${what} with a property that the document does not name.`
}

interface EventPage {
  readonly events: readonly { readonly data: object }[]
}

/** Tests put empty events into the outbox. Every event of the service names an account. */
function withoutMadeUp(page: EventPage): EventPage {
  return { ...page, events: page.events.filter(({ data }) => 'account_id' in data) }
}

/** An address refuses a method it does not have as any of its operations would. */
function operationAt(method: string, path: string): Operation | undefined {
  const known = routeAt(path, method)
  const operations = known && document.paths[known.path]
  if (!operations) return undefined
  const wanted = method === 'HEAD' ? 'get' : method.toLowerCase()
  return operations[wanted] ?? Object.values(operations)[0]
}

/** The operation of this method, otherwise any operation of the address. */
function routeAt(path: string, method?: string): Route | undefined {
  const [bare = ''] = path.replace(apiPrefix, '').split('?')
  const exact = routes.filter((route) => route.path === bare)
  const here = exact.length > 0 ? exact : routes.filter((route) => matches(route, bare))
  return here.find((route) => route.method === method) ?? here[0]
}

function matches({ path: pattern }: Route, path: string): boolean {
  return new RegExp(`^${pattern.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path)
}
