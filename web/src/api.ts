/** How the dashboard calls the service. The route lists type requests and responses (`api-types.ts`). */
import type { Routes } from './api-types.ts'

export type RouteName = keyof Routes
export type Answer<R extends RouteName> = Routes[R]['answer']
type Input<R extends RouteName> = Omit<Routes[R], 'answer'>
type Asked<R extends RouteName> =
  object extends Input<R> ? [input?: Input<R>, how?: Manner] : [input: Input<R>, how?: Manner]

interface AnyInput {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
}

/** How to ask, besides what. */
export interface Manner {
  /** Names the change, so that repeating the request repeats the answer and not the change. */
  readonly key?: string
  /** Goes along with the body's fields, as a form. */
  readonly file?: File | undefined
  readonly signal?: AbortSignal | undefined
  /** The part of the file that has left, from 0 to 1. */
  readonly onProgress?: ((part: number) => void) | undefined
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
    super(error)
    this.status = status
    this.code = code
    this.request_id = headers?.get('x-request-id') ?? undefined
    const seconds = Number.parseInt(headers?.get('retry-after') ?? '', 10)
    this.retry_after = Number.isNaN(seconds) ? undefined : seconds
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
  if (!response) throw new Refused(0, reading.test(name) ? unreachable : lost)
  const answer: unknown = await response.json().catch(() => undefined)
  if (!response.ok && isErrorBody(answer)) throw new Refused(response.status, answer, response.headers)
  if (!response.ok || answer === undefined) {
    throw new Refused(response.status, reading.test(name) ? garbled : lost, response.headers)
  }
  return answer as Answer<R>
}

async function send(
  url: string,
  { method, body, key, file, signal, onProgress }: Sending,
): Promise<Response> {
  const named: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key }
  if (file) return sendForm(url, { headers: named, form: formOf(body, file), signal, onProgress })
  return fetch(url, {
    method,
    credentials: 'same-origin',
    headers: { ...named, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  })
}

interface Sending extends Manner {
  readonly method: string
  readonly body: unknown
}

function formOf(body: unknown, file: File): FormData {
  const form = new FormData()
  for (const [field, value] of Object.entries(body ?? {})) form.set(field, String(value))
  form.set('attachments', file)
  return form
}

interface SentForm extends Pick<Manner, 'signal' | 'onProgress'> {
  readonly headers: Readonly<Record<string, string>>
  readonly form: FormData
}

/** `fetch` does not say how much of a file has left. */
function sendForm(url: string, { headers, form, signal, onProgress }: SentForm): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('POST', url)
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.upload.onprogress = ({ loaded, total }) => onProgress?.(total > 0 ? loaded / total : 0)
    request.onerror = request.onabort = request.ontimeout = () => reject(new Error('No answer arrived.'))
    request.onload = () => resolve(responseOf(request))
    signal?.addEventListener('abort', () => request.abort(), { once: true })
    request.send(form)
  })
}

function responseOf(request: XMLHttpRequest): Response {
  const lines = request
    .getAllResponseHeaders()
    .trim()
    .split(/[\r\n]+/)
  const headers = lines.flatMap((line): [string, string][] => {
    const at = line.indexOf(':')
    return at > 0 ? [[line.slice(0, at), line.slice(at + 1).trim()]] : []
  })
  return new Response(request.responseText, { status: request.status, headers })
}

function isErrorBody(answer: unknown): answer is ErrorBody {
  return typeof answer === 'object' && answer !== null && 'code' in answer
}
