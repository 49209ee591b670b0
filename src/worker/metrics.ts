/** Metrics of the background work. */
import { Counter, Gauge } from 'prom-client'
import type { App } from '../app.ts'
import { readSyncProgress } from '../capabilities/history/history.ts'
import type { AccountSession } from './account-session.ts'
import type { Journal } from './journal.ts'

export function countAccounts(app: App, sessions: () => Iterable<AccountSession>): void {
  new Gauge({
    name: 'parley_accounts',
    help: 'Accounts this process drives, by the state of their session.',
    labelNames: ['state'],
    registers: [app.metrics],
    collect() {
      this.reset()
      for (const { state } of sessions()) this.inc({ state })
    },
  })
}

/** How far the first sync of every account's past has come, on the whole instance. */
export function countSync(app: App): void {
  new Gauge({
    name: 'parley_sync_chats',
    help: 'Chats that accounts have, and those whose recent history is stored.',
    labelNames: ['state'],
    registers: [app.metrics],
    async collect() {
      const progress = await readSyncProgress(app.db).catch(() => undefined)
      this.reset()
      if (!progress) return
      this.set({ state: 'listed' }, progress.total)
      this.set({ state: 'synced' }, progress.synced)
    },
  })
}

/** A process that cannot write its journal gives its accounts up. */
export function showJournal(app: App, journal: Journal): void {
  new Gauge({
    name: 'parley_journal_writable',
    help: 'Whether this process can write its journal, without which it submits nothing: 1 or 0.',
    registers: [app.metrics],
    collect() {
      this.set(journal.isFailing() ? 0 : 1)
    },
  })
}

export function countUpdates(app: App): (updates: number) => void {
  const counter = new Counter({
    name: 'parley_updates_total',
    help: 'Updates of platforms that were stored.',
    registers: [app.metrics],
  })
  return (updates) => counter.inc(updates)
}

export function countOperations(app: App): (kind: string, outcome: string) => void {
  const counter = new Counter({
    name: 'parley_operations_total',
    help: 'Operations that were submitted to a platform, by what came of it.',
    labelNames: ['kind', 'outcome'],
    registers: [app.metrics],
  })
  return (kind, outcome) => counter.inc({ kind, outcome })
}
