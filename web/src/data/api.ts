/** How the dashboard calls the service. The route lists type requests and responses (`api-types.ts`). */

import { type Routes, readingRoutes } from './api-types.ts'
import { noteServiceTime } from './service-clock.ts'

export type RouteName = keyof Routes
export type Answer<R extends RouteName> = Routes[R]['answer']
type Input<R extends RouteName> = {
  [Part in keyof Routes[R] as Exclude<Part, 'answer'>]: Part extends 'query'
    ? Query<Routes[R][Part]>
    : Routes[R][Part]
}
/** What may be left out may also be undefined. */
type Query<Q> = { [Name in keyof Q]: object extends Pick<Q, Name> ? Q[Name] | undefined : Q[Name] }
type Asked<R extends RouteName> =
  object extends Input<R> ? [input?: Input<R>, how?: RequestOptions] : [input: Input<R>, how?: RequestOptions]

interface AnyInput {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
}

export type Upload = (
  url: string,
  sent: { headers: Readonly<Record<string, string>>; body: unknown; signal: AbortSignal | undefined },
) => Promise<Response>

/** Options of one request. */
interface RequestOptions {
  /** Names the change, so that repeating the request repeats the answer and not the change. */
  readonly key?: string
  /** Sends the body another way, such as with a file. */
  readonly upload?: Upload | undefined
  readonly signal?: AbortSignal | undefined
}

interface ErrorBody {
  readonly code: string
  readonly error: string
}

/** The service refused, or no answer of its own arrived (`unreachable`). */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly status: number
  readonly code: string
  readonly request_id: string | undefined
  /** Seconds to wait before the next request. */
  readonly retry_after: number | undefined

  constructor(status: number, { code, error }: ErrorBody, headers?: Headers) {
    super(error.replace(waitWords, ''))
    this.status = status
    this.code = code
    this.request_id = headers?.get('x-request-id') ?? undefined
    const seconds = Number.parseInt(headers?.get('retry-after') ?? '', 10)
    this.retry_after = Number.isNaN(seconds) ? undefined : seconds
  }
}

/** How programs read the time to wait; pages say it in seconds. */
const waitWords = / Retry (after the seconds in Retry-After|in some seconds)\.$/

const prefix = '/dashboard/api'
const unreachable = { code: 'unreachable', error: 'Parley cannot be reached.' }
const garbled = {
  code: 'unreachable',
  error: 'The answer did not come from Parley. Is there a proxy in between?',
}
/** The request may still have reached the service. */
const lost = {
  code: 'unreachable',
  error:
    'The connection dropped, so we can’t tell whether this went through. Check below before you try again.',
}

const isReading = (name: RouteName) => name.startsWith('GET ') || readingRoutes.has(name)

export async function ask<R extends RouteName>(name: R, ...[input, how]: Asked<R>): Promise<Answer<R>> {
  const { params = {}, query = {}, body }: AnyInput = input ?? {}
  const [method = 'GET', path = ''] = name.split(' ')
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, key: string) => encodeURIComponent(params[key] ?? ''))
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([key, value]): [string, string][] =>
      value === undefined ? [] : [[key, String(value)]],
    ),
  )
  const url = `${prefix}${filled}${search.size > 0 ? `?${search}` : ''}`
  const response = await send(url, { method, body, ...how }).catch(() => undefined)
  how?.signal?.throwIfAborted()
  if (!response) throw new Refused(0, isReading(name) ? unreachable : lost)
  noteServiceTime(response.headers)
  const answer: unknown = await response.json().catch(() => undefined)
  if (!response.ok && isErrorBody(answer)) throw new Refused(response.status, answer, response.headers)
  if (!response.ok || answer === undefined) {
    throw new Refused(response.status, isReading(name) ? garbled : lost, response.headers)
  }
  return answer as Answer<R>
}

async function send(url: string, { method, body, key, upload, signal }: Sending): Promise<Response> {
  const named: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key }
  if (upload) return upload(url, { headers: named, body, signal })
  return fetch(url, {
    method,
    credentials: 'same-origin',
    headers: { ...named, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  })
}

interface Sending extends RequestOptions {
  readonly method: string
  readonly body: unknown
}

function isErrorBody(answer: unknown): answer is ErrorBody {
  return typeof answer === 'object' && answer !== null && 'code' in answer
}
