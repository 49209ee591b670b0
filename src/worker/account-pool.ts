/** Which accounts this process drives: takes its share, renews the leases, releases what exceeds the share. */

import type { App } from '../app.ts'
import { messagesDue } from '../capabilities/campaigns/running/running.ts'
import { historyWanted, listWanted } from '../capabilities/history/history.ts'
import type { DrivenAccount } from '../ledger/attempt.ts'
import type { Instance } from '../ledger/crossing.ts'
import type { Echoes } from '../ledger/echoes.ts'
import {
  accountsChanged,
  claimAccounts,
  type Lease,
  leaseSeconds,
  listLeases,
  type Moment,
  momentOf,
  noteWrites,
  readShares,
  releaseLease,
  renewLeases,
  type Writes,
} from '../ledger/leases.ts'
import { confirmAccounts, type Marks } from '../ledger/runs.ts'
import { fairQueue } from '../lib/queue.ts'
import type { Loop } from '../loop.ts'
import type { Platform } from '../platform/port.ts'
import { type AccountSession, type ConnectWait, openAccountSession } from './account-session.ts'
import { answerQuestions } from './history-answers.ts'
import {
  countAccounts,
  countSessions,
  countSync,
  countUpdates,
  type SessionCounters,
  showPlatforms,
} from './metrics.ts'

const tickMs = 1_000
const renewMs = 5_000
/** History calls on demand that run at a time for one account. */
const fetchesMax = 2

export type Platforms = ReadonlyMap<string, Platform>

interface PoolOptions {
  readonly worker_id: string
  readonly platforms: Platforms
  readonly echoes: Echoes
  /** What this process knows of the database; undefined while it must not cross anything. */
  readonly instance: () => Instance | undefined
  /** The database has lost commits that this process saw. */
  readonly behind: () => void
  /** Whether this process may drive accounts at all: it must be able to write its journal. */
  readonly mayDrive: () => Promise<boolean>
  /** Workers whose journals are on this process's disk. */
  readonly neighbours: () => Promise<readonly string[]>
}

/** The sessions of this process. */
export class AccountPool {
  readonly loops: readonly Loop[] = [this.#leadLoop(), this.#historyLoop()]
  readonly #app: App
  readonly #worker_id: string
  readonly #platforms: Platforms
  readonly #sessions = new Map<string, AccountSession>()
  readonly #leaving = new Set<Promise<void>>()
  readonly #ingested: (updates: number) => void
  readonly #counters: SessionCounters
  readonly #options: PoolOptions
  /** Kept across sessions: if a lease was lost with other commits, its account is claimed again on a database that knows less. */
  readonly #writes = new Map<string, Writes>()
  /** Kept across sessions: the account may be released and claimed again within the wait. */
  readonly #waits = new Map<string, ConnectWait>()
  /** The run and the lease under which each account was last confirmed. */
  readonly #confirmed = new Map<string, string>()
  /** Each connection starts with a key exchange or a list of updates: a process that starts must not stall on all of them. */
  readonly #connects = fairQueue({
    atOnceMax: 10,
    waitingMax: 1,
    waitMsMax: 2_147_483_647,
    refuse: () => new Error('The account waited for weeks to connect.'),
  })
  #renewedAt: number

  constructor(app: App, options: PoolOptions) {
    const { worker_id, platforms } = options
    this.#app = app
    this.#worker_id = worker_id
    this.#platforms = platforms
    this.#options = options
    this.#renewedAt = app.sources.now()
    countAccounts(app, () => this.#sessions.values())
    countSync(app)
    showPlatforms(app, platforms.values())
    this.#counters = countSessions(app)
    this.#ingested = countUpdates(app)
  }

  /** The accounts that have a session here. */
  driven(): ReadonlyMap<string, DrivenAccount> {
    const driven = new Map<string, DrivenAccount>()
    for (const [account_id, session] of this.#sessions) {
      const live = session.driven()
      if (live) driven.set(account_id, live)
    }
    return driven
  }

  /** What this process has seen committed, including for accounts it no longer drives. */
  marks(): Marks {
    return new Map([...this.#writes].map(([account_id, { seen }]) => [account_id, seen]))
  }

  /** The database has lost commits, and the restore guard handles that: from now on, what the database knows counts. */
  startOver(): void {
    this.#writes.clear()
    this.restart()
  }

  /** Confirms accounts that have caught up, each once in a run. Called when one catches up, and with every heartbeat. */
  async confirm(): Promise<void> {
    const instance = this.#options.instance()
    if (!instance) return
    const run = `${instance.generation} ${instance.server_run}`
    const waiting = [...this.driven().values()]
      .map(({ held }) => held)
      .filter(({ account_id, epoch }) => this.#confirmed.get(account_id) !== `${run} ${epoch}`)
    if (waiting.length === 0) return
    const confirmed = new Set(await confirmAccounts(this.#app.db, instance, waiting))
    for (const { account_id, epoch } of waiting) {
      if (confirmed.has(account_id)) this.#confirmed.set(account_id, `${run} ${epoch}`)
    }
    if (confirmed.size > 0) this.#app.wake.signal(messagesDue)
  }

  /** Ends every session; the accounts are then claimed again. */
  restart(): void {
    for (const session of this.#sessions.values()) this.#drop(session)
  }

  #giveUpAll(): boolean {
    this.restart()
    return false
  }

  /** Closes every session and releases the leases. */
  async stop(): Promise<void> {
    this.restart()
    await Promise.all(this.#leaving)
  }

  #leadLoop(): Loop {
    return {
      name: 'accounts',
      restMs: tickMs,
      wakeOn: accountsChanged,
      step: async () => {
        // First, so that this process drops its sessions even while the database is away.
        if (this.#sessions.size === 0) this.#renewedAt = this.#app.sources.now()
        else if (this.#app.sources.now() - this.#renewedAt > renewMs) await this.#renew() // guard: sessions end with their leases
        // Other workers can drive the accounts that this one cannot.
        if (!(await this.#options.mayDrive())) return this.#giveUpAll() // guard: unwritable journal gives accounts up
        if (this.#sessions.size > 0) await this.#letGo()
        await this.#balance()
        return false
      },
    }
  }

  /** Fetches history that callers wait for, and answers questions about it. A slow account does not hold up the others. */
  #historyLoop(): Loop {
    const fetching = new Set<string>()
    const isBusy = (account_id: string) =>
      [...fetching].filter((place) => place.startsWith(`${account_id}:`)).length >= fetchesMax // guard: few history calls of an account
    const answering = new Set<string>()
    return {
      name: 'history',
      restMs: tickMs,
      wakeOn: historyWanted,
      step: async ({ db, log }) => {
        const sessions = this.#sessions
        for (const wanted of sessions.size > 0 ? await listWanted(db, [...sessions.keys()]) : []) {
          const { account_id, chat_id } = wanted
          const place = `${account_id}:${chat_id}`
          const session = sessions.get(account_id)
          if (!session || fetching.has(place) || isBusy(account_id)) continue
          fetching.add(place)
          void session
            .fetch(wanted)
            .catch((err) => log.warn({ err, account_id }, 'older history was not stored'))
            .finally(() => {
              fetching.delete(place)
              this.#app.wake.signal(historyWanted)
            })
        }
        await answerQuestions(this.#app, this.driven(), answering)
        return false
      },
    }
  }

  /** Closes the sessions if their leases could not be renewed in time, because another worker may hold them. */
  async #renew(): Promise<void> {
    const sessions = [...this.#sessions.values()]
    const renewals = sessions.map((session) => ({
      account_id: session.lease.account_id,
      epoch: session.lease.epoch,
      silent_ms: session.silentMs(),
    }))
    try {
      const asked = momentOf(this.#app.sources)
      const renewed = await renewLeases(this.#app.db, this.#worker_id, renewals)
      this.#renewedAt = asked.monotonic
      for (const session of sessions) {
        if (renewed.has(session.lease.account_id)) session.renewed(asked) // guard: only a renewed lease stays held
      }
    } catch (error) {
      if (this.#app.sources.now() - this.#renewedAt > leaseSeconds * 1000) {
        for (const session of this.#sessions.values()) this.#drop(session)
      }
      throw error
    }
  }

  /** Closes sessions of accounts that were disabled or taken by another worker. */
  async #letGo(): Promise<void> {
    const held = await listLeases(this.#app.db, this.#worker_id)
    for (const session of this.#sessions.values()) {
      if (held.get(session.lease.account_id) !== session.lease.epoch) this.#drop(session)
    }
  }

  async #balance(): Promise<void> {
    const { db } = this.#app
    const waits = [...this.#platforms.values()].some(({ takeoverSeconds }) => takeoverSeconds > 0)
    const neighbours = waits ? await this.#options.neighbours() : []
    for (const { platform, share } of await readShares(db, this.#worker_id, [...this.#platforms.keys()])) {
      const own = [...this.#sessions.values()].filter(({ lease }) => lease.platform === platform)
      for (const session of own.slice(share)) this.#drop(session)
      const takeover_seconds = this.#platforms.get(platform)?.takeoverSeconds ?? 0
      const claim = { worker_id: this.#worker_id, platform, limit: share - own.length }
      const asked = momentOf(this.#app.sources)
      for (const lease of await claimAccounts(db, { ...claim, takeover_seconds, neighbours })) {
        this.#take(lease, asked)
      }
    }
  }

  #take(lease: Lease, leased_at: Moment): void {
    const platform = this.#platforms.get(lease.platform)
    if (!platform) return
    const session = openAccountSession(this.#app, {
      worker_id: this.#worker_id,
      lease,
      leased_at,
      platform,
      inTurn: this.#connects,
      over: () => this.#drop(session),
      ingested: this.#ingested,
      counters: this.#counters,
      connected: () => this.confirm(),
      echoes: this.#options.echoes,
      behind: this.#options.behind,
      writes: this.#writesOf(lease),
      wait: this.#waitOf(lease),
    })
    this.#sessions.set(lease.account_id, session)
  }

  #writesOf({ account_id, writes: committed }: Lease): Writes {
    const writes = this.#writes.get(account_id) ?? { seen: committed } // guard: writes are kept over sessions
    noteWrites({ writes }, committed)
    this.#writes.set(account_id, writes)
    return writes
  }

  #waitOf({ account_id }: Lease): ConnectWait {
    const wait = this.#waits.get(account_id) ?? { until: 0 }
    this.#waits.set(account_id, wait)
    return wait
  }

  /** Not awaited: a session that is slow to close must not keep the other leases from being renewed. */
  #drop(session: AccountSession): void {
    const { account_id } = session.lease
    if (this.#sessions.get(account_id) === session) this.#sessions.delete(account_id)
    const left = this.#leave(session).catch((err) => {
      this.#app.log.warn({ err, account_id }, 'a lease could not be given back')
    })
    this.#leaving.add(left)
    void left.finally(() => this.#leaving.delete(left))
  }

  async #leave(session: AccountSession): Promise<void> {
    const { account_id, platform } = session.lease
    await session.stop()
    // This process may have claimed the account again meanwhile.
    const isGone = !this.#sessions.has(account_id) // guard: an account that came back is not forgotten
    if (isGone) this.#platforms.get(platform)?.forgetAccount?.(account_id) // guard: an account that leaves is forgotten
    await releaseLease(this.#app.db, this.#worker_id, session.lease)
    this.#app.wake.signal(accountsChanged)
  }
}
