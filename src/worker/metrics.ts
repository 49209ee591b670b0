/** Metrics of the background work. Several workers of one process share them. */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { App } from '../app.ts'
import { readSyncProgress } from '../capabilities/history/history.ts'
import type { Journal } from '../ledger/journal.ts'
import { sharedMetric } from '../lib/metrics.ts'
import type { AccountSession } from './account-session.ts'

type ListSessions = () => Iterable<AccountSession>
const sessionsOf = new WeakMap<Registry, ListSessions[]>()
const journalsOf = new WeakMap<Registry, Journal[]>()

/** Adds `part` to the list of its process, and returns the list. */
function joinList<T>(lists: WeakMap<Registry, T[]>, registry: Registry, part: T): T[] {
  const list = lists.get(registry) ?? []
  lists.set(registry, list)
  list.push(part)
  return list
}

export function countAccounts({ metrics }: App, sessions: ListSessions): void {
  const all = joinList(sessionsOf, metrics, sessions)
  const name = 'parley_accounts'
  sharedMetric(metrics, name, () => {
    return new Gauge({
      name,
      help: 'Accounts this process drives, by the state of their session.',
      labelNames: ['state'],
      registers: [metrics],
      collect() {
        this.reset()
        for (const list of all) for (const { state } of list()) this.inc({ state })
      },
    })
  })
}

/** Progress of the first sync of all accounts on the whole instance. */
export function countSync({ db, metrics }: App): void {
  const name = 'parley_sync_chats'
  sharedMetric(metrics, name, () => {
    return new Gauge({
      name,
      help: 'Chats that accounts have, and those whose recent history is stored.',
      labelNames: ['state'],
      registers: [metrics],
      async collect() {
        const progress = await readSyncProgress(db).catch(() => undefined)
        this.reset()
        if (!progress) return
        this.set({ state: 'listed' }, progress.total)
        this.set({ state: 'synced' }, progress.synced)
      },
    })
  })
}

/** A process that cannot write its journal releases its accounts. */
export function showJournal({ metrics }: App, journal: Journal): void {
  const all = joinList(journalsOf, metrics, journal)
  const name = 'parley_journal_writable'
  sharedMetric(metrics, name, () => {
    return new Gauge({
      name,
      help: 'Whether this process can write its journal, without which it submits nothing: 1 or 0.',
      registers: [metrics],
      collect() {
        this.set(all.some((one) => one.isFailing()) ? 0 : 1)
      },
    })
  })
}

export function countUpdates({ metrics }: App): (updates: number) => void {
  const name = 'parley_updates_total'
  const help = 'Updates of platforms that were stored.'
  const counter = sharedMetric(metrics, name, () => new Counter({ name, help, registers: [metrics] }))
  return (updates) => counter.inc(updates)
}

export function countOperations({ metrics }: App): (kind: string, outcome: string) => void {
  const name = 'parley_operations_total'
  const counter = sharedMetric(metrics, name, () => {
    return new Counter({
      name,
      help: 'Operations that were submitted to a platform, by what came of it.',
      labelNames: ['kind', 'outcome'],
      registers: [metrics],
    })
  })
  return (kind, outcome) => counter.inc({ kind, outcome })
}
