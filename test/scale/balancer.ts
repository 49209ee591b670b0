/**
 * What stands before several `serve` processes: it asks each whether it is ready, gives every request to the next one that is,
 * and to another if a connection was refused. A request that a process has received goes nowhere else.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const lookMs = 250
const lookMsMax = 10_000
/** Longer than a client keeps a connection that it does not use. */
const keepAliveMs = 60_000

export class Balancer {
  readonly url: string
  /** The process that answered each idempotency key last. */
  readonly answered: ReadonlyMap<string, string>
  readonly #server: Server
  readonly #looking: NodeJS.Timeout

  private constructor(server: Server, looking: NodeJS.Timeout, answered: ReadonlyMap<string, string>) {
    this.answered = answered
    this.#server = server
    this.#looking = looking
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  /** `urls` are the processes at this moment. */
  static async open(urls: () => readonly string[]): Promise<Balancer> {
    const ready = new Set<string>()
    const look = async () => {
      const all = urls()
      for (const url of ready) if (!all.includes(url)) ready.delete(url)
      await Promise.all(
        all.map(async (url) => void ((await isReady(url)) ? ready.add(url) : ready.delete(url))),
      )
    }
    await look()
    let turn = 0
    const answered = new Map<string, string>()
    const server = createServer(async (incoming, answer) => {
      const body: Buffer[] = []
      for await (const chunk of incoming) body.push(chunk)
      const all = [...ready]
      const first = turn++
      const order = all.map((_, n) => all[(first + n) % all.length] ?? '')
      const by = await forward(order, { incoming, answer, body: Buffer.concat(body) })
      const key = incoming.headers['idempotency-key']
      if (by && typeof key === 'string') answered.set(key, by)
    })
    server.keepAliveTimeout = keepAliveMs
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return new Balancer(server, setInterval(look, lookMs), answered)
  }

  async close(): Promise<void> {
    clearInterval(this.#looking)
    this.#server.closeAllConnections()
    await once(this.#server.close(), 'close')
  }
}

async function isReady(url: string): Promise<boolean> {
  const asked = fetch(`${url}/readyz`, { signal: AbortSignal.timeout(lookMsMax) })
  return asked.then(
    async (response) => {
      await response.arrayBuffer()
      return response.ok
    },
    () => false,
  )
}

interface Exchange {
  readonly incoming: IncomingMessage
  readonly answer: ServerResponse
  readonly body: Buffer
}

/** Returns the process that answered. */
async function forward(urls: readonly string[], exchange: Exchange): Promise<string | undefined> {
  const { answer } = exchange
  for (const url of urls) {
    const outcome = await attempt(url, exchange)
    if (outcome === 'answered') return url
    if (outcome === 'lost') {
      answer.writeHead(502).end('{"code":"lost_by_balancer"}')
      return undefined
    }
  }
  answer.writeHead(503).end('{"code":"none_ready"}')
  return undefined
}

function attempt(
  url: string,
  { incoming, answer, body }: Exchange,
): Promise<'answered' | 'refused' | 'lost'> {
  return new Promise((resolve) => {
    const { method, url: path, headers } = incoming
    const asked = request(`${url}${path}`, { method, headers, agent: false })
    asked.once('response', (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(answer)
      // A stream ends when its process does.
      response.once('error', () => answer.destroy())
      resolve('answered')
    })
    asked.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code === 'ECONNREFUSED' ? 'refused' : 'lost')
    })
    answer.once('close', () => asked.destroy())
    asked.end(body)
  })
}
