/** The dashboard's live stream as a browser receives it. */
import { type IncomingMessage, request } from 'node:http'
import type { Mark } from '../../src/mark.ts'
import { hangMs, until } from './process.ts'

export class OpenStream {
  readonly response: IncomingMessage
  readonly marks: Mark[] = []
  /** Every other event, and comments as they are. */
  readonly others: string[] = []
  ended = false
  #rest = ''

  constructor(response: IncomingMessage) {
    this.response = response
    response.setEncoding('utf8').on('data', (text: string) => this.#read(text))
    response.on('close', () => {
      this.ended = true
    })
    // The service may cut it off.
    response.on('error', () => {})
  }

  /** Waits until a mark like this has arrived. */
  received(like: Partial<Mark>): Promise<Mark> {
    const fits = (mark: Mark) =>
      Object.entries(like).every(([name, value]) => mark[name as keyof Mark] === value)
    return until(`a mark like ${JSON.stringify(like)} arrives`, hangMs, () => this.marks.find(fits))
  }

  hasEnded(): Promise<boolean> {
    return until('the stream ends', hangMs, () => this.ended)
  }

  close(): void {
    this.response.destroy()
  }

  #read(text: string): void {
    const parts = (this.#rest + text).split('\n\n')
    this.#rest = parts.pop() ?? ''
    for (const part of parts) {
      const [, data] = /^event: marks\ndata: (.*)$/.exec(part) ?? []
      if (data === undefined) this.others.push(part)
      else this.marks.push(...(JSON.parse(data) as Mark[]))
    }
  }
}

interface StreamRequest {
  readonly cookie?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
}

/** The answer, whatever its status, before its body. */
export function askStream(
  { url }: { readonly url: string },
  { cookie, headers = {} }: StreamRequest,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = { ...(cookie !== undefined && { cookie }), accept: 'text/event-stream', ...headers }
    const asked = request(`${url}/dashboard/api/stream`, { headers: sent, agent: false }, resolve)
    asked.on('error', reject)
    asked.end()
  })
}

/** Open once the first event has arrived. */
export async function openStream(
  service: { readonly url: string },
  cookie: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<OpenStream> {
  const response = await askStream(service, { cookie, headers })
  if (response.statusCode !== 200) throw new Error(`The stream answered ${response.statusCode}.`)
  const stream = new OpenStream(response)
  await until('the stream begins', hangMs, () => stream.others.length > 0)
  return stream
}
