/**
 * Sends requests at a fixed rate, without waiting for answers; at most `pendingMax` are open at a time.
 * It reads, searches, sends, writes campaigns and polls for events with many keys, and a signed-in user follows the live stream.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { ask, post, sendOf } from '../faults/clients.ts'
import type { CallRecord } from '../faults/oracle.ts'
import type { Plant } from '../faults/plant.ts'
import type { Random } from '../faults/random.ts'
import { askStream, OpenStream } from '../harness/stream.ts'

const pendingMax = 300
const answerMsMax = 45_000
/** A workspace may create few more in an hour. */
const campaignsMax = 60

export interface Failure {
  readonly what: string
  readonly status: number | null
  readonly code: string | null
  readonly account_id?: string
  /** The idempotency key of a send. */
  readonly key?: string
}

/** What was asked while one thing was done to the processes. */
export interface Tally {
  requests: number
  /** Of a send, until its answer. */
  longestSendMs: number
  readonly failures: Failure[]
}

interface DriverOptions {
  readonly url: string
  readonly keys: readonly string[]
  readonly cookie: string
  /** Whether every process has the live stream. */
  readonly streams: boolean
  readonly random: Random
  /** Requests a second. */
  readonly rate: number
}

type Kind = 'chats' | 'history' | 'search' | 'events' | 'session' | 'send' | 'campaign'

const kinds: readonly (readonly [Kind, number])[] = [
  ['send', 10],
  ['chats', 4],
  ['history', 4],
  ['search', 2],
  ['events', 2],
  ['session', 2],
  ['campaign', 1],
]

export class Driver {
  readonly history: CallRecord[] = []
  readonly tallies = new Map<string, Tally>()
  /** How often the live stream was opened, and marks arrived. */
  readonly stream = { opened: 0, marks: 0 }
  /** Requests that were not made, because too many were open. */
  skipped = 0
  readonly #plant: Plant
  readonly #options: DriverOptions
  readonly #pending = new Set<Promise<void>>()
  #phase = 'start'
  #over = false
  #running: Promise<unknown> | undefined
  #asked = 0
  #campaigns = 0

  constructor(plant: Plant, options: DriverOptions) {
    this.#plant = plant
    this.#options = options
  }

  start(): void {
    this.#over = false
    this.#running = Promise.all([this.#drive(), ...(this.#options.streams ? [this.#follow()] : [])])
  }

  /** Counts what is asked from now on under this name. Resolves when everything asked before has its answer. */
  async phase(name: string): Promise<void> {
    this.#phase = name
    await Promise.all(this.#pending)
  }

  async stop(): Promise<void> {
    this.#over = true
    await this.#running
    await Promise.all(this.#pending)
  }

  /** Every send once more: a final answer stays as it was. */
  async repeat(): Promise<CallRecord[]> {
    const calls = new Map(this.history.map((call) => [call.key, call]))
    const answers: CallRecord[] = []
    for (const { key, account_id, chat_id, payload } of calls.values()) {
      const { text } = payload as { text: string }
      const call = sendOf({ key, account_id, chat_id, text })
      answers.push(await ask(this.#plant, call, { url: this.#options.url, api_key: this.#key() }))
    }
    this.history.push(...answers)
    return answers
  }

  async #drive(): Promise<void> {
    const { rate, random } = this.#options
    const begunAt = performance.now()
    for (let n = 0; !this.#over; n++) {
      await sleep(Math.max(0, begunAt + (n * 1_000) / rate - performance.now()))
      if (this.#pending.size >= pendingMax) this.skipped++
      else this.#launch(this.#choose(random))
    }
  }

  #choose(random: Random): Kind {
    const kind = random.weigh(kinds)
    if (kind !== 'campaign') return kind
    return this.#campaigns++ < campaignsMax ? kind : 'send'
  }

  #launch(kind: Kind): void {
    const tally = this.#tally()
    tally.requests++
    const askedAt = performance.now()
    const work = this.#do(kind, this.#asked++)
      .then((failure) => failure && void tally.failures.push(failure))
      .catch((error) => void tally.failures.push({ what: kind, status: null, code: String(error) }))
    this.#pending.add(work)
    void work.finally(() => {
      if (kind === 'send') tally.longestSendMs = Math.max(tally.longestSendMs, performance.now() - askedAt)
      this.#pending.delete(work)
    })
  }

  #tally(): Tally {
    const known = this.tallies.get(this.#phase)
    if (known) return known
    const tally: Tally = { requests: 0, longestSendMs: 0, failures: [] }
    this.tallies.set(this.#phase, tally)
    return tally
  }

  #do(kind: Kind, number: number): Promise<Failure | undefined> {
    const { random } = this.#options
    const account_id = random.pick(this.#plant.accounts)
    const chat_id = `platform:chat:${random.pick(this.#plant.people)}`
    switch (kind) {
      case 'chats':
        return this.#read('GET', '/api/v1/chats?limit=20')
      case 'history':
        return this.#read('GET', `/api/v1/chats/${chat_id}/messages?account_id=${account_id}`)
      case 'search':
        return this.#read('POST', '/api/v1/search', { query: 'hello' })
      case 'events':
        return this.#read('GET', '/api/v1/events?limit=10')
      case 'session':
        return this.#read('GET', '/dashboard/api/session')
      case 'send':
        return this.#send(number, { account_id, chat_id })
      case 'campaign':
        return this.#write(number, account_id)
    }
  }

  async #read(method: string, path: string, body?: object): Promise<Failure | undefined> {
    const { url, cookie } = this.#options
    const isUser = path.startsWith('/dashboard')
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(isUser ? { cookie, origin: url } : { authorization: `Bearer ${this.#key()}` }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(answerMsMax),
    })
    const answer = (await response.json()) as { code?: string }
    return response.ok
      ? undefined
      : { what: `${method} ${path}`, status: response.status, code: answer.code ?? null }
  }

  async #send(number: number, place: { account_id: string; chat_id: string }): Promise<Failure | undefined> {
    const call = sendOf({ ...place, key: `scale-${number}`, text: `scale ${number}` })
    const answer = await ask(this.#plant, call, { url: this.#options.url, api_key: this.#key() })
    this.history.push(answer)
    const { key, status, code } = answer
    return status === 200 ? undefined : { what: 'send', status, code, account_id: place.account_id, key }
  }

  async #write(number: number, account_id: string): Promise<Failure | undefined> {
    const { person_id } = await this.#plant.addPerson({ behaviour: 'silent' })
    await this.#plant.control('POST', '/messages', { account_id, person_id, text: 'Hello' })
    const contacts = [{ identifier: (await this.#plant.addPerson({ behaviour: 'silent' })).username }]
    const payload = { name: `scale ${number}`, message_text: `campaign ${number}`, contacts }
    const call = {
      path: '/campaigns',
      key: `campaign-${number}`,
      payload: { ...payload, account_pool: [account_id] },
    }
    const { status, code } = await post(this.#plant, call, { url: this.#options.url, api_key: this.#key() })
    return status === 201 || status === 200 ? undefined : { what: 'campaign', status, code, account_id }
  }

  #key(): string {
    return this.#options.random.pick(this.#options.keys)
  }

  /** As a browser does: it opens the stream again whenever it ends. */
  async #follow(): Promise<void> {
    const { url, cookie } = this.#options
    while (!this.#over) {
      const response = await askStream({ url }, { cookie, headers: { origin: url } }).catch(() => undefined)
      if (response?.statusCode !== 200) {
        const failure = { what: 'stream', status: response?.statusCode ?? null, code: null }
        this.#tally().failures.push(failure)
        response?.destroy()
        await sleep(500)
        continue
      }
      this.stream.opened++
      const stream = new OpenStream(response)
      while (!stream.ended && !this.#over) await sleep(100)
      this.stream.marks += stream.marks.length
      stream.close()
    }
  }
}
