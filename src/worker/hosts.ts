/** Which accounts this process drives: takes its share, renews, gives back what is more than that. */
import {
  claimAccounts,
  type Lease,
  leaseSeconds,
  listLeases,
  readShare,
  releaseLease,
  renewLeases,
} from '../access/ledger/hosts.ts'
import type { App } from '../app.ts'
import { listWanted } from '../capabilities/history/history.ts'
import type { Platform } from '../platform/port.ts'
import { type Host, startHost } from './host.ts'
import type { Driven } from './ledger.ts'
import type { Loop } from './loops.ts'
import { countAccounts, countSync, countUpdates } from './metrics.ts'

const tickMs = 1_000
const renewMs = 5_000

export type Platforms = ReadonlyMap<string, Platform>

export interface Hosts {
  readonly loops: readonly Loop[]
  /** The accounts that have a session here. */
  driven(): ReadonlyMap<string, Driven>
  /** Closes every session and gives the leases back. */
  stop(): Promise<void>
}

export function makeHosts(app: App, { owner, platforms }: { owner: string; platforms: Platforms }): Hosts {
  const hosts = new Map<string, Host>()
  const leaving = new Set<Promise<void>>()
  const names = [...platforms.keys()]
  let renewedAt = performance.now()
  countAccounts(app, () => hosts.values())
  countSync(app)
  const ingested = countUpdates(app)

  function take(lease: Lease): void {
    const platform = platforms.get(lease.platform)
    if (!platform) return
    const over = () => drop(host)
    const host = startHost(app, { owner, lease, platform, over, ingested })
    hosts.set(lease.account_id, host)
  }

  /** Nobody waits for it: a session that is slow to close must not keep the others from being renewed. */
  function drop(host: Host): void {
    const { lease } = host
    if (hosts.get(lease.account_id) === host) hosts.delete(lease.account_id)
    const left = leave(host).catch((err) => {
      app.log.warn({ err, account_id: lease.account_id }, 'a lease could not be given back')
    })
    leaving.add(left)
    void left.finally(() => leaving.delete(left))
  }

  async function leave(host: Host): Promise<void> {
    await host.stop()
    await releaseLease(app.db, owner, host.lease)
    app.wake.signal('accounts')
  }

  /** A lease that could not be renewed in time may be somebody else's: its session ends here. */
  async function renew(): Promise<void> {
    const renewals = [...hosts.values()].map((host) => ({
      account_id: host.lease.account_id,
      epoch: host.lease.epoch,
      silent_ms: host.silentMs(),
    }))
    try {
      const askedAt = performance.now()
      await renewLeases(app.db, owner, renewals)
      renewedAt = askedAt
    } catch (error) {
      if (performance.now() - renewedAt > leaseSeconds * 1000) for (const host of hosts.values()) drop(host)
      throw error
    }
  }

  /** What was disabled, or is driven by somebody else, is let go within a tick. */
  async function letGo(): Promise<void> {
    const held = await listLeases(app.db, owner)
    for (const host of hosts.values()) {
      if (held.get(host.lease.account_id) !== host.lease.epoch) drop(host)
    }
  }

  async function balance(): Promise<void> {
    const { accounts, workers } = await readShare(app.db, names)
    const share = Math.ceil(accounts / Math.max(1, workers))
    for (const host of [...hosts.values()].slice(share)) drop(host)
    for (const lease of await claimAccounts(app.db, { owner, platforms: names, limit: share - hosts.size }))
      take(lease)
  }

  const lead: Loop = {
    name: 'hosts',
    restMs: tickMs,
    wakeOn: 'accounts',
    async step() {
      if (hosts.size === 0) renewedAt = performance.now()
      else if (performance.now() - renewedAt > renewMs) await renew()
      if (hosts.size > 0) await letGo()
      await balance()
      return false
    },
  }

  /** Older history that somebody waits for. One account's slowness is not waited for. */
  const fetching = new Set<string>()
  const history: Loop = {
    name: 'history',
    restMs: tickMs,
    wakeOn: 'history',
    async step() {
      for (const wanted of hosts.size > 0 ? await listWanted(app.db, [...hosts.keys()]) : []) {
        const place = `${wanted.account_id}:${wanted.chat_id}`
        const host = hosts.get(wanted.account_id)
        if (!host || fetching.has(place)) continue
        fetching.add(place)
        void host
          .fetch(wanted)
          .catch((err) =>
            app.log.warn({ err, account_id: wanted.account_id }, 'older history was not stored'),
          )
          .finally(() => fetching.delete(place))
      }
      return false
    },
  }

  return {
    loops: [lead, history],
    driven() {
      const driven = new Map<string, Driven>()
      for (const [account_id, host] of hosts) {
        const session = host.driven()
        if (session) driven.set(account_id, session)
      }
      return driven
    },
    async stop() {
      for (const host of hosts.values()) drop(host)
      await Promise.all(leaving)
    },
  }
}
