/** Which accounts this process drives: takes its share, renews, gives back what is more than that. */
import {
  claimAccounts,
  type Lease,
  leaseSeconds,
  readShare,
  releaseLeases,
  renewLeases,
} from '../access/ledger/hosts.ts'
import type { App } from '../app.ts'
import type { Platform, PlatformName } from '../platform/port.ts'
import { type Host, startHost } from './host.ts'
import type { Loop } from './loops.ts'
import { countAccounts, countUpdates } from './metrics.ts'

const tickMs = 1_000
const renewMs = 5_000

export type Platforms = ReadonlyMap<PlatformName, Platform>

export interface Hosts {
  readonly loop: Loop
  /** Closes every session and gives the leases back. */
  stop(): Promise<void>
}

export function makeHosts(app: App, { owner, platforms }: { owner: string; platforms: Platforms }): Hosts {
  const hosts = new Map<string, Host>()
  const names = [...platforms.keys()]
  let renewedAt = performance.now()
  countAccounts(app, () => hosts.values())
  const ingested = countUpdates(app)

  function take(lease: Lease): void {
    const platform = platforms.get(lease.platform as PlatformName)
    if (!platform) return
    const over = () => {
      hosts.delete(lease.account_id)
      void releaseLeases(app.db, owner, [lease.account_id]).catch(() => {})
    }
    hosts.set(lease.account_id, startHost(app, { owner, lease, platform, over, ingested }))
  }

  async function drop(account_ids: readonly string[]): Promise<void> {
    const dropped = account_ids.flatMap((id) => hosts.get(id) ?? [])
    for (const { lease } of dropped) hosts.delete(lease.account_id)
    await Promise.all(dropped.map((host) => host.stop()))
  }

  /** A lease that could not be renewed in time may be somebody else's: its session ends here. */
  async function renew(): Promise<void> {
    const held = [...hosts.values()]
    const renewals = held.map(({ lease, silentMs }) => ({
      account_id: lease.account_id,
      epoch: lease.epoch,
      silent_ms: silentMs(),
    }))
    try {
      const askedAt = performance.now()
      const kept = await renewLeases(app.db, owner, renewals)
      renewedAt = askedAt
      const lost = held.map(({ lease }) => lease.account_id).filter((id) => !kept.has(id) && hosts.has(id))
      await drop(lost)
      await releaseLeases(app.db, owner, lost)
    } catch (error) {
      if (performance.now() - renewedAt > leaseSeconds * 1000) await drop([...hosts.keys()])
      throw error
    }
  }

  async function balance(): Promise<void> {
    const { accounts, workers } = await readShare(app.db, names)
    const share = Math.ceil(accounts / Math.max(1, workers))
    const surplus = [...hosts.keys()].slice(share)
    if (surplus.length > 0) {
      await drop(surplus)
      await releaseLeases(app.db, owner, surplus)
      app.wake.signal('accounts')
    }
    for (const lease of await claimAccounts(app.db, { owner, platforms: names, limit: share - hosts.size }))
      take(lease)
  }

  return {
    loop: {
      name: 'hosts',
      restMs: tickMs,
      wakeOn: 'accounts',
      async step() {
        if (hosts.size === 0) renewedAt = performance.now()
        else if (performance.now() - renewedAt > renewMs) await renew()
        await balance()
        return false
      },
    },
    async stop() {
      const held = [...hosts.keys()]
      await drop(held)
      await releaseLeases(app.db, owner, held).catch((err) =>
        app.log.warn({ err }, 'leases could not be given back'),
      )
      app.wake.signal('accounts')
    },
  }
}
