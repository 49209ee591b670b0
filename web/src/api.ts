/** How the dashboard calls the service. The route lists type requests and responses (`api-types.ts`). */
import type { Routes } from './api-types.ts'

export type RouteName = keyof Routes
export type Answer<R extends RouteName> = Routes[R]['answer']
type Input<R extends RouteName> = Omit<Routes[R], 'answer'>
type Arguments<R extends RouteName> = object extends Input<R> ? [input?: Input<R>] : [input: Input<R>]

interface AnyInput {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
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

  constructor(status: number, { code, error }: ErrorBody, request_id?: string) {
    super(error)
    this.status = status
    this.code = code
    this.request_id = request_id
  }
}

const prefix = '/dashboard/api'
const unreachable = { code: 'unreachable', error: 'Parley cannot be reached.' }
const garbled = { code: 'unreachable', error: 'The answer is not one of Parley’s. Is something in between?' }
/** The request may still have reached the service. */
const lost = {
  code: 'unreachable',
  error:
    'Parley’s answer was lost, so it is not known whether this was done. The page reads again what is there: look before you try again.',
}

/** Routes that change nothing, whatever their method. */
const reading = /^GET |\/(look|preview|search)$/

export async function ask<R extends RouteName>(name: R, ...[input]: Arguments<R>): Promise<Answer<R>> {
  const { params = {}, query = {}, body }: AnyInput = input ?? {}
  const [method = 'GET', path = ''] = name.split(' ')
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, key: string) => encodeURIComponent(params[key] ?? ''))
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([key, value]): [string, string][] =>
      value === undefined ? [] : [[key, String(value)]],
    ),
  )
  const response = await fetch(`${prefix}${filled}${search.size > 0 ? `?${search}` : ''}`, {
    method,
    credentials: 'same-origin',
    ...(body !== undefined && {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  }).catch(() => undefined)
  if (!response) throw new Refused(0, reading.test(name) ? unreachable : lost)
  const answer: unknown = await response.json().catch(() => undefined)
  const request_id = response.headers.get('x-request-id') ?? undefined
  if (!response.ok && isErrorBody(answer)) throw new Refused(response.status, answer, request_id)
  if (!response.ok || answer === undefined) {
    throw new Refused(response.status, reading.test(name) ? garbled : lost, request_id)
  }
  return answer as Answer<R>
}

function isErrorBody(answer: unknown): answer is ErrorBody {
  return typeof answer === 'object' && answer !== null && 'code' in answer
}
