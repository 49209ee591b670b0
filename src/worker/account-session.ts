/**
 * One account's session, driven by the process that holds its lease: connects, checks that it is alive, stores its
 * updates, reconnects. A failure here does not affect other accounts.
 */

import type { App } from '../app.ts'
import {
  findProxy,
  markAccount,
  noteConnected,
  noteNotConnected,
  noteTrouble,
  openAccountStore,
  tidyAccount,
  unreadableProxy,
} from '../capabilities/accounts/accounts.ts'
import { giveUpWanted, type WantedHistory } from '../capabilities/history/history.ts'
import type { DrivenAccount } from '../ledger/attempt.ts'
import type { Echoes } from '../ledger/echoes.ts'
import { enqueued } from '../ledger/enqueue.ts'
import {
  type HeldLease,
  holdsLease,
  isHeldSince,
  type Lease,
  type Moment,
  momentOf,
  noteNotLive,
  type Writes,
} from '../ledger/leases.ts'
import { within } from '../ledger/within.ts'
import type { FairQueue } from '../lib/queue.ts'
import type { Closed, Outcome, Platform, Session, UpdateBatch } from '../platform/port.ts'
import { ingest } from './ingest.ts'
import type { SessionCounters } from './metrics.ts'
import {
  backoff,
  connectOutcome,
  demandedSeconds,
  endReason,
  restFor,
  type SessionEnd,
  silentReason,
  stoppedReason,
  storeMsMost,
} from './session-ends.ts'
import { fetchWanted, type SyncContext, syncAccount } from './sync.ts'

const connectMsMax = 20_000
/** A session that was quiet for this long is pinged. */
const quietMs = 30_000 // limit: quiet session
const pingMsMax = 15_000 // limit: answer to a ping
/** How long closing waits for answers to submissions. A renewed lease always has more time left than this. */
const drainMsMax = 8_000
/** A session that ended sooner counts as one more failure. */
const stableMs = 10_000

export interface AccountSession {
  readonly lease: Lease
  /** Milliseconds since the platform's last sign of life; null: none yet. */
  silentMs(): number | null
  readonly state: 'connecting' | 'connected' | 'over'
  /** The session, while there is one. */
  driven(): DrivenAccount | undefined
  /** The lease was renewed by a statement sent at this moment. */
  renewed(asked: Moment): void
  /** Fetches older history that a caller waits for. */
  fetch(wanted: WantedHistory): Promise<void>
  /** Closes the session. Resolves once none of its work is running. */
  stop(): Promise<void>
}

interface SessionOptions {
  readonly worker_id: string
  readonly lease: Lease
  /** When the statement that took the lease was sent. */
  readonly leased_at: Moment
  readonly platform: Platform
  /** Connects when it is this account's turn: only a few accounts of a process connect at a time. */
  readonly inTurn: FairQueue
  /** Called when the account cannot be driven, or not by this worker: the pool can release the lease. */
  readonly over: () => void
  readonly ingested: (updates: number) => void
  readonly counters: SessionCounters
  /** Called once every update the platform had is stored. */
  readonly connected: () => Promise<void>
  readonly echoes: Echoes
  /** Called when the account is still ours but the database knows less of it than was seen committed. */
  readonly behind: () => void
  /** What this process has seen committed for the account, in this session and before. */
  readonly writes: Writes
  readonly wait: ConnectWait
}

/** When the platform allows this process to connect the account again, by the monotonic clock. */
export interface ConnectWait {
  until: number
}

export function openAccountSession(app: App, options: SessionOptions): AccountSession {
  const session = new DrivenSession(app, options)
  session.begin()
  return session
}

class DrivenSession implements AccountSession {
  readonly lease: Lease
  state: AccountSession['state'] = 'connecting'
  readonly #app: App
  readonly #options: SessionOptions
  readonly #stopping = new AbortController()
  #aliveAt: number | null = null
  #position: string | null
  #running: Promise<void> = Promise.resolve()
  #storing: Promise<boolean> = Promise.resolve(true)
  #syncing: SyncContext | undefined
  readonly #awaited = new Set<Promise<unknown>>()
  readonly #held: HeldLease
  #leasedAt: Moment
  #caughtUp = Promise.withResolvers<void>()
  /** Wakes the sync, which is over or will look again. */
  #gapped = () => {}

  constructor(app: App, options: SessionOptions) {
    this.#app = app
    this.#options = options
    this.lease = options.lease
    this.#position = options.lease.position
    this.#leasedAt = options.leased_at
    const { account_id, workspace_id, epoch } = options.lease
    const { worker_id, writes } = options
    this.#held = { worker_id, account_id, workspace_id, epoch, writes }
  }

  begin(): void {
    this.#running = this.#run()
      .catch((err) => {
        this.#app.log.error(
          { err, account_id: this.lease.account_id },
          'an account session ended unexpectedly',
        )
      })
      .finally(() => {
        this.state = 'over'
        if (!this.#stopping.signal.aborted) this.#options.over()
      })
  }

  renewed(asked: Moment): void {
    this.#leasedAt = asked
  }

  /** Asked before every write to a platform, so it asks no database. */
  #holdsStill(): boolean {
    return this.state !== 'over' && isHeldSince(this.#leasedAt, momentOf(this.#app.sources)) // guard: a session that is over holds nothing
  }

  silentMs(): number | null {
    return this.#aliveAt === null ? null : this.#app.sources.now() - this.#aliveAt
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { wait } = this.#options
    const waitMs = wait.until - this.#app.sources.now()
    if (waitMs > 0) await this.#rest(waitMs) // guard: a wait before the next connect outlives its session
    // After a wait the lease is looked at first.
    let failures = waitMs > 0 ? 1 : 0
    while (!this.#stopping.signal.aborted) {
      const end = await this.#attempt(failures).catch((err): SessionEnd => {
        if (this.#stopping.signal.aborted) return { kind: 'over' }
        this.#app.log.error({ err, account_id: this.lease.account_id, failures }, 'a session failed')
        return { kind: 'failed' }
      })
      if (end.kind === 'over') return
      failures = end.kind === 'lost' && end.lived_ms > stableMs ? 1 : failures + 1
      const restMs = restFor(end, failures, this.#app.sources.random())
      if (demandedSeconds(end) > 0) wait.until = this.#app.sources.now() + restMs
      await this.#rest(restMs)
    }
  }

  /** One session from connecting to its end, or why there was none. */
  async #attempt(failures: number): Promise<SessionEnd> {
    if (!(await this.#holds(failures))) return { kind: 'over' }
    this.state = 'connecting'
    this.#caughtUp = Promise.withResolvers<void>()
    const { promise: closed, resolve: close } = Promise.withResolvers<Closed>()
    const outcome = await this.#connect(close)
    this.#options.counters.connect(connectOutcome(outcome))
    if (outcome.kind === 'accepted') return this.#liveThrough(outcome.value, closed)
    if (outcome.kind === 'refused') {
      const status = outcome.reason === 'restricted' ? 'restricted' : 'needs_login'
      return this.#giveUp(status, outcome.detail ?? outcome.reason)
    }
    this.#logChange('connecting', {
      outcome: connectOutcome(outcome),
      failures,
      ...('reason' in outcome && { reason: outcome.reason }),
    })
    if (outcome.kind === 'not_written' && outcome.cause)
      await noteNotConnected(this.#app, this.#held, outcome.reason)
    return outcome
  }

  async #liveThrough(session: Session, closed: Promise<Closed>): Promise<SessionEnd> {
    const connectedAt = this.#app.sources.now()
    const { status, reason, retry_after_seconds = 0 } = await this.#live(session, closed)
    const lived_ms = this.#app.sources.now() - connectedAt
    this.#options.counters.end(endReason(status, reason))
    if (status !== 'lost') return this.#giveUp(status, reason)
    this.#logChange('lost', { reason, lived_ms: Math.round(lived_ms) })
    return { kind: 'lost', lived_ms, retry_after_seconds }
  }

  /** Reasons are sentences of adapters, which name no person, number or credential. */
  #logChange(state: 'connecting' | 'connected' | 'lost', more: Record<string, unknown> = {}): void {
    const line = { account_id: this.lease.account_id, state, ...more }
    if (state === 'connected') this.#app.log.info(line, 'an account is connected')
    else
      this.#app.log.warn(line, state === 'lost' ? 'the session of an account was lost' : 'connecting failed')
  }

  /** Connecting ends any other session of the account, so only the holder of the lease may reconnect. */
  async #holds(failures: number): Promise<boolean> {
    return failures === 0 || holdsLease(this.#app.db, this.#options.worker_id, this.lease)
  }

  async #connect(close: (reason: Closed) => void): Promise<Outcome<Session>> {
    const turn = {
      key: this.lease.account_id,
      timer: this.#app.sources.timer,
      left: this.#stopping.signal,
    }
    return this.#options.inTurn(turn, () => this.#connectNow(close))
  }

  async #connectNow(close: (reason: Closed) => void): Promise<Outcome<Session>> {
    const { account_id, name } = this.lease
    await this.#tidy()
    const store = openAccountStore(this.#app, this.#held)
    const proxy = await findProxy(this.#app, account_id)
    // guard: no connection without its proxy
    if (proxy === 'unreadable') return { kind: 'not_written', reason: unreadableProxy, cause: 'proxy' }
    const connecting = this.#options.platform.connect(
      { account_id, name, position: this.#position, held: () => this.#holdsStill(), store, proxy },
      { updates: (batch) => this.#take(batch), closed: close },
    )
    const outcome = await within(this.#app.sources, connectMsMax, connecting, this.#stopping.signal)
    if (outcome) return outcome
    // A session that opens after the time limit is closed again.
    void connecting
      .then((late) => (late.kind === 'accepted' ? late.value.close() : undefined))
      .catch(() => {})
    return { kind: 'unknown', reason: 'The platform did not answer in time.' }
  }

  /** If it fails, the account connects all the same, and the next connect tries again. */
  async #tidy(): Promise<void> {
    await tidyAccount(this.#app, this.#held).catch((err) => {
      this.#app.log.warn({ err, account_id: this.lease.account_id }, 'an account could not be tidied')
    })
  }

  /** From connected to closed. A quiet session is pinged, to find out whether it is still alive. */
  async #live(session: Session, closed: Promise<Closed>): Promise<Closed> {
    this.#noteAlive()
    const ending = new AbortController()
    const syncing = { held: this.#held, session, platform: this.#options.platform, signal: ending.signal }
    const listening = this.#listen(session, closed)
    let synced: Promise<void> | undefined
    try {
      // Not before all updates so far are stored: by then we know what was sent before.
      const early = await Promise.race([this.#caughtUp.promise, listening])
      if (early) return early
      this.state = 'connected'
      this.#logChange('connected')
      this.#syncing = syncing
      // The account is live already, so a caller that reads READY can use it.
      const { coldRamp } = this.#options.platform
      await noteConnected(this.#app, { held: this.#held, coldRamp }, session.self)
      await this.#options.connected()
      this.#app.wake.signal(enqueued)
      synced = this.#sync(syncing)
      return await listening
    } finally {
      this.#syncing = undefined
      ending.abort()
      await this.#noteNotLive()
      markAccount(this.#app, this.#held)
      await within(this.#app.sources, drainMsMax, Promise.allSettled(this.#awaited))
      await within(this.#app.sources, pingMsMax, session.close())
      // The next session starts where this one's last batch ends.
      await Promise.all([this.#storing, synced])
    }
  }

  async #noteNotLive(): Promise<void> {
    const why = this.#stopping.signal.aborted ? 'given up' : 'lost'
    await noteNotLive(this.#app.db, this.#held, why).catch((err) => {
      this.#app.log.warn(
        { err, account_id: this.lease.account_id },
        'that a session is over could not be noted',
      )
    })
  }

  /** Syncs the past beside the live updates, and again after a gap; retries after errors while the session lasts. */
  async #sync(syncing: SyncContext): Promise<void> {
    while (!syncing.signal.aborted) {
      try {
        const gap = Promise.withResolvers<void>()
        this.#gapped = gap.resolve
        await syncAccount(this.#app, syncing)
        await Promise.race([gap.promise, aborted(syncing.signal)])
      } catch (err) {
        this.#app.log.error(
          { err, account_id: this.lease.account_id },
          'the past of an account was not synced',
        )
        await within(this.#app.sources, storeMsMost, new Promise<void>(() => {}), syncing.signal)
      }
    }
  }

  driven(): DrivenAccount | undefined {
    if (this.#stopping.signal.aborted || !this.#syncing) return undefined
    const { held, session, platform } = this.#syncing
    const { gapJitter, paceMs } = platform
    return { held, session, awaits: (work) => this.#await(work), gapJitter, paceMs }
  }

  #await(work: Promise<unknown>): void {
    this.#awaited.add(work)
    void work.finally(() => this.#awaited.delete(work)).catch(() => {})
  }

  async fetch(wanted: WantedHistory): Promise<void> {
    if (this.#syncing) await fetchWanted(this.#app, this.#syncing, wanted)
    else await giveUpWanted(this.#app.db, wanted)
  }

  async #listen(session: Session, closed: Promise<Closed>): Promise<Closed> {
    const stopped: Closed = { status: 'lost', reason: stoppedReason }
    while (!this.#stopping.signal.aborted) {
      const ended = await within(this.#app.sources, quietMs, closed, this.#stopping.signal)
      if (ended) return ended
      if (this.#stopping.signal.aborted) return stopped
      if ((this.silentMs() ?? 0) < quietMs) continue
      const answered = await within(this.#app.sources, pingMsMax, session.ping(), this.#stopping.signal)
      if (!answered) return { status: 'lost', reason: silentReason }
      this.#noteAlive()
    }
    return stopped
  }

  async #take(batch: UpdateBatch): Promise<void> {
    this.#noteAlive()
    const storing = this.#store(batch)
    this.#storing = storing
    // Not stored: this promise never resolves, so the platform delivers the batch to the next session again.
    if (!(await storing)) await new Promise(() => {})
  }

  /** Stores a batch. Retries while the database is away; the platform holds back the next batch meanwhile. */
  async #store(batch: UpdateBatch): Promise<boolean> {
    const { account_id } = this.lease
    for (let failures = 0; !this.#stopping.signal.aborted; failures++) {
      try {
        const { restricts } = batch
        // guard: restricted before the gap is stored
        if (restricts) await noteTrouble(this.#app, this.#held, { status: 'restricted', reason: restricts })
        if (await this.#ingest(batch)) {
          this.#position = batch.position
          this.#options.ingested(batch.updates.length)
          if (batch.caught_up) this.#caughtUp.resolve()
          if (batch.updates.some(({ kind }) => kind === 'gap')) this.#options.counters.gap()
          if (batch.updates.some(({ kind }) => kind === 'gap')) this.#gapped() // guard: a gap is synced in the same session
          return true
        }
        if (await holdsLease(this.#app.db, this.#options.worker_id, this.lease)) this.#options.behind()
        else this.#app.log.warn({ account_id }, 'the lease of an account was lost')
        this.#stopping.abort()
        this.#options.over()
      } catch (err) {
        this.#app.log.error({ err, account_id, failures }, 'updates could not be stored')
        await this.#rest(Math.min(storeMsMost, backoff.firstMs * backoff.factor ** failures))
      }
    }
    return false
  }

  async #ingest(batch: UpdateBatch): Promise<boolean> {
    const { echoes } = this.#options
    const { position, caught_up } = batch
    const echoed = await echoes.take({ held: this.#held, position, caught_up }, batch)
    return echoed ?? ingest(this.#app, this.#held, batch)
  }

  #noteAlive(): void {
    this.#aliveAt = this.#app.sources.now()
  }

  async #giveUp(status: 'needs_login' | 'restricted', reason: string): Promise<SessionEnd> {
    this.#app.log.warn(
      { account_id: this.lease.account_id, status, reason },
      'an account cannot be connected',
    )
    await noteTrouble(this.#app, this.#held, { status, reason })
    return { kind: 'over' }
  }

  #rest(ms: number): Promise<void> {
    return within(this.#app.sources, ms, new Promise<void>(() => {}), this.#stopping.signal).then(() => {})
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
