/** Shared by the tests of webhooks: a receiver on a real socket, and a service whose background work needs no platform. */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from '../../src/db/sql.ts'
import { emit, type NewEvent } from '../../src/events/emit.ts'
import { loops } from '../../src/lists/loops.ts'
import { advanceClock } from '../../src/worker/clock.ts'
import type { Running } from '../../src/worker/run-loops.ts'
import { assembleWorker, runWorker, type Worker } from '../../src/worker/worker.ts'
import { hangMs, until } from './process.ts'
import { type Answer, openService, type Service, type Tenant } from './service.ts'

interface Received {
  readonly body: string
  readonly headers: IncomingHttpHeaders
  readonly id: string
}

/** Answers with `answer`; 200 by default. */
export class Receiver {
  readonly url: string
  readonly received: Received[] = []
  answer: (response: ServerResponse, received: Received) => void = (response) => void response.end()
  readonly #close: () => Promise<void>

  private constructor(url: string, close: () => Promise<void>) {
    this.url = url
    this.#close = close
  }

  static async open(port = 0): Promise<Receiver> {
    const server = createServer(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      const body = Buffer.concat(chunks).toString()
      const received = { body, headers: request.headers, id: String(request.headers['webhook-id']) }
      receiver.received.push(received)
      receiver.answer(response, received)
    })
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    const { port: bound } = server.address() as AddressInfo
    const receiver = new Receiver(`http://127.0.0.1:${bound}/hook`, async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    })
    return receiver
  }

  status(status: number, headers: Readonly<Record<string, string>> = {}): void {
    this.answer = (response) => void response.writeHead(status, headers).end('said no')
  }

  get ids(): string[] {
    return this.received.map(({ id }) => id)
  }

  close(): Promise<void> {
    return this.#close()
  }
}

interface Endpoint {
  readonly id: string
  readonly secret: string
}

interface DeliveryRow {
  readonly id: string
  readonly event_id: string
  readonly sequence: number | null
  readonly state: string
  readonly attempts: number
  readonly next_attempt_at: string | null
  readonly last: { status: number | null; error: string | null; ms: number; at: string } | null
}

/** A service with its loops in this process, and receivers it can reach. */
export class WebhookPlace {
  readonly service: Service
  readonly #directory: string
  #worker: Worker | undefined
  #running: Running | undefined

  private constructor(service: Service, directory: string) {
    this.service = service
    this.#directory = directory
  }

  static async open(env: Readonly<Record<string, string>> = {}): Promise<WebhookPlace> {
    const service = await openService({ env: { PARLEY_WEBHOOK_ALLOW: '127.0.0.1', ...env } })
    return new WebhookPlace(service, await mkdtemp(join(tmpdir(), 'parley-hooks-')))
  }

  get db() {
    return this.service.app.db
  }

  async work(): Promise<void> {
    const parts = { platforms: new Map(), directory: this.#directory, loops }
    this.#worker = await assembleWorker(this.service.app, parts)
    this.#running = runWorker(this.service.app, this.#worker)
  }

  async rest(): Promise<void> {
    await this.#running?.stop()
    this.#running = undefined
  }

  /** Moves a manual clock. Everything due by then has been done when it resolves. */
  advance(seconds: number): Promise<Date> {
    return advanceClock(this.service.app, { platforms: [], loops: this.#worker?.loops ?? [] }, seconds)
  }

  async endpoint({ key }: Tenant, url: string, events?: readonly string[]): Promise<Endpoint> {
    const { status, body } = await this.service.post('/webhooks', { key, body: { url, events } })
    if (status !== 201) throw new Error(JSON.stringify(body))
    const { webhook, secret } = body as unknown as { webhook: { id: string }; secret: string }
    return { id: webhook.id, secret }
  }

  async emitMany(
    workspace_id: string,
    count: number,
    data: (n: number) => unknown = (n) => ({ n }),
  ): Promise<void> {
    const one = (n: number): NewEvent => ({ type: 'message.received', occurred_at: null, data: data(n) })
    for (let n = 0; n < count; n += 500) {
      const lot = Array.from({ length: Math.min(500, count - n) }, (_, each) => one(n + each))
      await this.db.transaction((tx) => emit(tx, workspace_id, lot))
    }
  }

  call(method: string, { key }: Tenant, path: string, body?: object): Promise<Answer> {
    return this.service.call(method, `/webhooks/${path}`, { key, body })
  }

  async webhook(tenant: Tenant, id: string) {
    const { body } = await this.service.get('/webhooks', { key: tenant.key })
    const all = body.webhooks as {
      id: string
      active: boolean
      consecutive_failures: number
      disabled_at: string
    }[]
    const found = all.find((each) => each.id === id)
    if (!found) throw new Error('There is no such webhook.')
    return found
  }

  async deliveries(tenant: Tenant, id: string, query = ''): Promise<DeliveryRow[]> {
    const { body } = await this.call('GET', tenant, `${id}/deliveries?limit=100${query}`)
    return body.deliveries as unknown as DeliveryRow[]
  }

  /** Waits until this many deliveries of the endpoint are in the state. */
  untilState(webhook_id: string, state: string, count: number): Promise<boolean> {
    return until(`${count} are ${state}`, hangMs, async () => {
      const row = await this.db.one<{ count: number }>(sql`
        select count(*)::int as count from webhook_deliveries
        where webhook_id = ${webhook_id} and state = ${state}`)
      return row.count >= count
    })
  }

  async close(): Promise<void> {
    await this.rest()
    await this.service.close()
    await rm(this.#directory, { recursive: true, force: true })
  }
}
