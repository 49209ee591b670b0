/** Delivers events. Attempts run beside the loop, each endpoint on its own, and hold no database connection. */
import type { App } from '../../app.ts'
import { Gatherer } from '../../lib/gatherer.ts'
import { passOn, readTraceparent } from '../../lib/traceparent.ts'
import { openSecret, signatureHeaders } from '../../lib/webhook-signatures.ts'
import { requireAddress } from './address.ts'
import { type CallOutcome, type HttpCaller, isSuccess } from './call.ts'
import { bodyOf } from './deliveries.ts'
import {
  type AttemptResult,
  claimEndpoints,
  type DueDelivery,
  type EndpointState,
  leaseSeconds,
  loadDue,
  recordAttempts,
  releaseLeases,
  renewLeases,
} from './endpoints.ts'
import { breakerFailures, nextDelay } from './schedule.ts'

/** How many attempts of one endpoint run concurrently. */
const concurrency = 8
/** How many deliveries are loaded ahead: for one endpoint, and for all together, which bounds the memory. */
const readyMax = { least: 16, most: 128, together: 4_096 } as const
/** How many endpoints with due deliveries a process holds. */
const endpointsMax = 256
const recordMax = 500
/** How often it looks for more without a wake-up. */
const lookMs = 250
const renewMs = (leaseSeconds * 1_000) / 3
const stopMsMax = 5_000 // limit: attempts at a stop
const retryMs = { first: 100, most: 2_000 } as const

export type Ending = 'delivered' | 'failed' | 'cut_off'

/** An endpoint that this process holds. */
interface Endpoint {
  /** Null until it is loaded for the first time. */
  state: EndpointState | null
  /** Loaded and not started. */
  ready: DueDelivery[]
  /** Whether more may be due than is loaded. */
  more: boolean
  /** Started and not recorded. */
  readonly busy: Set<string>
  running: number
  /** How many attempts have ended: rows read before the last one ended are stale. */
  ended: number
  /** Failures in a row, including those not recorded yet. */
  failures: number
}

interface DelivererOptions {
  readonly caller: HttpCaller
  readonly count: (ending: Ending) => void
  /** Gets the seconds from an event to its accepted delivery. */
  readonly lag: (seconds: number) => void
}

export class Deliverer {
  readonly #app: App
  readonly #caller: HttpCaller
  readonly #count: (ending: Ending) => void
  readonly #lag: (seconds: number) => void
  readonly #owner: string
  readonly #endpoints = new Map<string, Endpoint>()
  readonly #recorder: Gatherer<EndedCall, true>
  readonly #attempts = new Set<Promise<void>>()
  readonly #cut = new AbortController()
  #renewedAt = 0
  #claimAt = 0
  #news = Promise.withResolvers<void>()
  #stopping = false

  constructor(app: App, { caller, count, lag }: DelivererOptions) {
    this.#app = app
    this.#caller = caller
    this.#count = count
    this.#lag = lag
    this.#owner = app.sources.newId()
    this.#recorder = new Gatherer({ most: recordMax, work: (ended) => this.#record(ended) })
  }

  /** How many attempts have started and are not recorded. */
  get underWay(): number {
    return this.#attempts.size
  }

  /** Called when there may be deliveries for endpoints that no process holds yet. */
  lookForMore(): void {
    this.#claimAt = 0
    this.#news.resolve()
  }

  /** Claims what is due and starts attempts. While it holds endpoints it waits in here, so that a stop finds it. */
  async step(stopping: AbortSignal): Promise<boolean> {
    this.#news = Promise.withResolvers<void>()
    await this.#claim()
    await this.#load()
    if (this.#endpoints.size + this.#attempts.size === 0) return false
    const wake = () => this.#news.resolve()
    stopping.addEventListener('abort', wake)
    if (!stopping.aborted) await Promise.race([this.#news.promise, this.#app.sources.sleep(lookMs)])
    stopping.removeEventListener('abort', wake) // the signal lives as long as the process
    if (stopping.aborted) await this.#stop()
    return true
  }

  /** Claims endpoints with due deliveries, and renews the leases it has. */
  async #claim(): Promise<void> {
    const { db, sources } = this.#app
    const now = sources.now()
    if (now - this.#renewedAt > renewMs) {
      await renewLeases(db, this.#owner, [...this.#endpoints.keys()]) // guard: leases of endpoints renewed
      this.#renewedAt = now
    }
    if (now < this.#claimAt) return
    this.#claimAt = now + lookMs
    const most = endpointsMax - this.#endpoints.size
    for (const id of await claimEndpoints(db, { owner: this.#owner, most })) {
      const none = { state: null, ready: [], more: false, busy: new Set<string>() }
      this.#endpoints.set(id, { ...none, running: 0, ended: 0, failures: 0 })
    }
  }

  /** Reads the current state of the endpoints and their due deliveries. Releases those with nothing to do. */
  async #load(): Promise<void> {
    if (this.#endpoints.size === 0) return
    const held = [...this.#endpoints].map(([webhook_id, endpoint]) => {
      return { webhook_id, endpoint, room: roomOf(endpoint, this.#readyMax), ended: endpoint.ended }
    })
    const busy = held.flatMap(({ endpoint }) => [...endpoint.busy, ...endpoint.ready.map(({ id }) => id)])
    const loaded = await loadDue(this.#app.db, { owner: this.#owner, wanted: held, busy })
    const found = new Map(loaded.map((each) => [each.state.webhook_id, each]))
    const idle: string[] = []
    for (const { webhook_id, endpoint, room, ended } of held) {
      const now = found.get(webhook_id)
      endpoint.more = room > 0 && now?.due.length === room
      if (now) this.#refresh(endpoint, now, ended === endpoint.ended)
      // Deleted, or taken by another process. Running attempts are still recorded.
      else endpoint.ready = [] // guard: nothing for a deleted endpoint
      if (!now) this.#endpoints.delete(webhook_id)
      else if (endpoint.busy.size + endpoint.ready.length === 0) idle.push(webhook_id)
    }
    for (const id of idle) this.#endpoints.delete(id)
    await releaseLeases(this.#app.db, this.#owner, idle)
  }

  /** `current`: no attempt has ended since it was read. */
  #refresh(
    endpoint: Endpoint,
    { state, due }: { state: EndpointState; due: readonly DueDelivery[] },
    current: boolean,
  ): void {
    endpoint.state = state
    if (current && endpoint.busy.size === 0) endpoint.failures = state.consecutive_failures
    endpoint.ready.push(...due)
    if (!state.active) endpoint.ready = endpoint.ready.filter(isTest) // guard: nothing for an endpoint that is off
    // Loaded before the breaker opened: they are loaded again when they are due.
    if (isOpen(endpoint) && !current) endpoint.ready = []
    this.#begin(endpoint)
  }

  /** Starts as many attempts as the endpoint may run at once. */
  #begin(endpoint: Endpoint): void {
    const { state } = endpoint
    if (isOpen(endpoint) && endpoint.busy.size > 0) endpoint.ready = [] // guard: one probe at a time
    const most = isOpen(endpoint) ? 1 : concurrency
    while (state && endpoint.running < most && endpoint.ready.length > 0 && !this.#stopping) {
      const delivery = endpoint.ready.shift() as DueDelivery
      endpoint.busy.add(delivery.id)
      endpoint.running += 1
      const attempt = this.#attempt(endpoint, state, delivery)
      this.#attempts.add(attempt)
      void attempt.then(() => this.#attempts.delete(attempt))
    }
    if (endpoint.more && endpoint.ready.length <= this.#readyMax / 2) this.#news.resolve()
  }

  get #readyMax(): number {
    const share = Math.floor(readyMax.together / this.#endpoints.size)
    return Math.max(readyMax.least, Math.min(readyMax.most, share))
  }

  /** One attempt, from the signature to the recorded outcome. It does not throw. */
  async #attempt(endpoint: Endpoint, state: EndpointState, delivery: DueDelivery): Promise<void> {
    const startedAt = this.#app.sources.now()
    const probe = isOpen(endpoint)
    const outcome = await this.#post(state, delivery)
    endpoint.running -= 1
    endpoint.ended += 1
    const ok = outcome !== undefined && outcome.error === null && isSuccess(outcome.status)
    // A response from an address that the endpoint no longer has does not count.
    const counts = outcome !== undefined && endpoint.state?.url_no === state.url_no
    if (counts && ok) endpoint.failures = 0
    else if (counts && !isTest(delivery)) endpoint.failures += 1
    this.#count(ok ? 'delivered' : outcome ? 'failed' : 'cut_off')
    const lagMs = this.#app.sources.date().getTime() - delivery.created_at.getTime()
    if (ok) this.#lag(lagMs / 1_000) // guard: the lag of accepted deliveries
    const recorded = outcome && this.#recordUntilStored({ state, delivery, outcome, ok, probe, startedAt })
    // The next one starts while this one is recorded.
    this.#begin(endpoint)
    await recorded
    endpoint.busy.delete(delivery.id)
    if (endpoint.busy.size === 0) this.#news.resolve()
  }

  /** Undefined if a stop cut it off. */
  async #post(state: EndpointState, delivery: DueDelivery): Promise<CallOutcome | undefined> {
    const body = bodyOf(delivery)
    const timestamp = Math.floor(Date.now() / 1_000)
    let headers: Record<string, string>
    let url: string
    try {
      url = requireAddress(this.#app, state)
      headers = signatureHeaders({ id: delivery.event_id, timestamp, body }, this.#secretsOf(state))
    } catch (err) {
      // Sealed with another PARLEY_SECRET. Nothing is sent without a signature.
      this.#app.log.error(
        { err, webhook_id: state.webhook_id },
        'the secret or the address of a webhook cannot be decrypted',
      )
      return { status: null, error: 'unsigned', ms: 0, response: null, retry_after: null }
    }
    const traced = this.#traceOf(delivery)
    return this.#caller.post({ url, headers: { ...headers, ...traced }, body }, this.#cut.signal)
  }

  /** Each attempt is a call of its own within the trace. Read again, so that no row can bring another header. */
  #traceOf({ traceparent }: DueDelivery): { traceparent?: string } {
    const trace = readTraceparent([traceparent]) // guard: a stored trace is read again
    return trace ? { traceparent: passOn(trace, this.#app.sources.newToken()) } : {}
  }

  #secretsOf({ webhook_id, secret, previous_secret }: EndpointState): [string, ...string[]] {
    const open = (sealed: Buffer) => openSecret(this.#app.secrets, webhook_id, sealed)
    return previous_secret ? [open(secret), open(previous_secret)] : [open(secret)]
  }

  /** Waits while the database is unavailable, because an attempt that is not recorded is sent again. */
  async #recordUntilStored(ended: EndedCall): Promise<void> {
    for (let tries = 0; !this.#cut.signal.aborted; tries++) {
      try {
        await this.#recorder.add(ended)
        return
      } catch (err) {
        this.#app.log.error({ err, tries }, 'the worker could not store webhook attempts')
        await this.#app.sources.sleep(Math.min(retryMs.first * 2 ** tries, retryMs.most))
      }
    }
  }

  async #record(ended: readonly EndedCall[]): Promise<readonly true[]> {
    const now = this.#app.sources.now()
    const attempts = ended.map((each) => attemptedOf(each, now))
    for (const { id, ...rest } of await recordAttempts(this.#app, this.#owner, attempts)) {
      this.#app.log.warn({ webhook_id: id, ...rest }, 'a webhook was deactivated after too many failures')
    }
    const workspaces = new Set(ended.map(({ delivery }) => delivery.workspace_id))
    this.#app.wake.mark(
      ...[...workspaces].map((workspace_id) => ({ workspace_id, kind: 'webhooks' }) as const),
    )
    return ended.map(() => true)
  }

  /** Lets running attempts end for a while, then cuts them off: the endpoint's next holder sends those again. */
  async #stop(): Promise<void> {
    this.#stopping = true
    const { db, sources, log } = this.#app
    const held = [...this.#endpoints.keys()]
    // No other process may take them while attempts run, and the last renewal may be a third of the lease ago.
    const renewed = renewLeases(db, this.#owner, held) // guard: leases of endpoints at a stop
    await renewed.catch((err) => log.warn({ err }, 'the worker could not renew its webhook leases'))
    const all = () => Promise.all(this.#attempts)
    await Promise.race([all(), sources.sleep(stopMsMax)]) // guard: attempts may end at a stop
    this.#cut.abort() // guard: attempts cut off at a stop
    await all()
    await releaseLeases(db, this.#owner, held)
    this.#endpoints.clear()
    await this.#caller.close()
  }
}

/** An attempt that has ended. */
interface EndedCall {
  readonly state: EndpointState
  readonly delivery: DueDelivery
  readonly outcome: CallOutcome
  readonly ok: boolean
  readonly probe: boolean
  /** On the monotonic clock. */
  readonly startedAt: number
}

function attemptedOf(
  { state, delivery, outcome, ok, probe, startedAt }: EndedCall,
  now: number,
): AttemptResult {
  const { id: delivery_id, attempts, series_attempts } = delivery
  const { retry_after, ...rest } = outcome
  const attempt = attempts + 1
  const series_attempt = series_attempts + 1
  const test = isTest(delivery)
  return {
    ...rest,
    webhook_id: state.webhook_id,
    url_no: state.url_no,
    delivery_id,
    series_attempts,
    test,
    probe,
    ok,
    ago_ms: now - startedAt,
    retry_seconds: ok || test ? null : nextDelay({ delivery_id, attempt, series_attempt, retry_after }),
  }
}

/** How many more deliveries may be loaded: with an open breaker one, and only if none is in flight. */
function roomOf(endpoint: Endpoint, most: number): number {
  const taken = endpoint.busy.size + endpoint.ready.length
  if (isOpen(endpoint)) return taken === 0 ? 1 : 0
  return Math.max(0, most - endpoint.ready.length)
}

function isOpen({ failures }: Endpoint): boolean {
  return failures >= breakerFailures
}

function isTest({ sequence }: DueDelivery): boolean {
  return sequence === null
}
