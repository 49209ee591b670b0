/** A browser as the dashboard sees it: it keeps its cookies and sends its origin. */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { signIn } from './person.ts'
import type { Service } from './service.ts'

export interface BrowserAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Record<string, unknown> & { readonly code?: string; readonly error?: string }
}

interface BrowserRequest {
  readonly body?: unknown
  /** Null removes a header that a browser would send. */
  readonly headers?: Readonly<Record<string, string | null>>
}

export class Browser {
  readonly #service: Service
  /** The host name it uses for the service. */
  readonly host: string
  readonly origin: string
  /** Name and value, as sent. */
  cookie: string | undefined
  /** The device cookie that a sign-in leaves, as sent. */
  device: string | undefined

  constructor(service: Service, origin = service.url) {
    this.#service = service
    this.origin = origin
    this.host = new URL(origin).host
  }

  /** A browser in which a user has already signed in. */
  static async signedIn(service: Service, user_id: string): Promise<Browser> {
    const browser = new Browser(service)
    browser.cookie = await signIn(service, user_id)
    return browser
  }

  /** Below /dashboard/api, unless the whole path is given. */
  ask(method: string, path: string, { body, headers = {} }: BrowserRequest = {}): Promise<BrowserAnswer> {
    const { hostname, port } = new URL(this.#service.url)
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
    const sent: Record<string, string | null | undefined> = {
      host: this.host,
      cookie: [this.cookie, this.device].filter((each) => each !== undefined).join('; ') || undefined,
      ...(method !== 'GET' && { origin: this.origin, 'sec-fetch-site': 'same-origin' }),
      ...(text !== undefined && {
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(text)),
      }),
      ...headers,
    }
    const given = Object.fromEntries(
      Object.entries(sent).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    )
    return new Promise((resolve, reject) => {
      const whole = /^\/(dashboard|%64ashboard|api|docs)\b/.test(path) ? path : `/dashboard/api${path}`
      const request = httpRequest({ hostname, port, method, path: whole, headers: given }, (response) => {
        let received = ''
        response.setEncoding('utf8').on('data', (chunk) => {
          received += chunk
        })
        response.on('end', () => {
          this.#keepCookie(response.headers)
          const parsed = received.startsWith('{') ? JSON.parse(received) : {}
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: parsed })
        })
      })
      request.on('error', reject)
      request.end(text)
    })
  }

  get = (path: string, asked?: BrowserRequest) => this.ask('GET', path, asked)
  post = (path: string, asked?: BrowserRequest) => this.ask('POST', path, asked)

  #keepCookie(headers: IncomingHttpHeaders): void {
    for (const line of headers['set-cookie'] ?? []) {
      const [pair = ''] = line.split(';', 1)
      if (/^(__Host-)?device=/.test(pair)) this.device = pair
      else this.cookie = pair.endsWith('=') ? undefined : pair
    }
  }
}
