/** Metrics of the background work. Several workers of one process share them. */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { App } from '../app.ts'
import { readSyncProgress } from '../capabilities/history/history.ts'
import type { Journal } from '../ledger/journal.ts'
import { sharedMetric } from '../lib/metrics.ts'
import type { Platform } from '../platform/port.ts'

type ListSessions = () => Iterable<{ readonly state: string }>
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

/** How sessions begin and end, counted in this process. */
export interface SessionCounters {
  /** `connected`, or why it did not connect. */
  connect(outcome: string): void
  /** Why a session that was connected has ended. */
  end(reason: string): void
  gap(): void
}

export function countSessions({ metrics }: App): SessionCounters {
  const counter = (name: string, help: string, labelNames: string[]) =>
    sharedMetric(metrics, name, () => new Counter({ name, help, labelNames, registers: [metrics] }))
  const connects = counter(
    'parley_connects_total',
    'Attempts of this process to connect an account, by outcome.',
    ['outcome'],
  )
  const ends = counter(
    'parley_sessions_ended_total',
    'Sessions of this process that have ended, by reason.',
    ['reason'],
  )
  const gaps = counter(
    'parley_gaps_total',
    'Gaps in the updates of an account that this process has stored.',
    [],
  )
  return {
    connect: (outcome) => connects.inc({ outcome }),
    end: (reason) => ends.inc({ reason }),
    gap: () => gaps.inc(),
  }
}

const platformsOf = new WeakMap<Registry, Platform[]>()

/** What platforms themselves count; only some do. */
export function showPlatforms({ metrics }: App, platforms: Iterable<Platform>): void {
  const all = platformsOf.get(metrics) ?? []
  platformsOf.set(metrics, all)
  for (const platform of platforms) if (!all.includes(platform)) all.push(platform)
  for (const { figure, name, help, kind: Metric } of platformFigures) {
    const configuration = { name, help, labelNames: ['platform'], registers: [metrics] }
    sharedMetric(metrics, name, () => {
      return new Metric({
        ...configuration,
        collect() {
          this.reset()
          for (const each of all) if (each.figures) this.inc({ platform: each.name }, each.figures()[figure])
        },
      })
    })
  }
}

const platformFigures = [
  {
    figure: 'differences',
    name: 'parley_differences_total',
    help: 'How often sessions of this process have asked the platform for updates that they missed.',
    kind: Counter,
  },
  {
    figure: 'batches_waiting',
    name: 'parley_batches_waiting',
    help: 'Batches of updates that wait in this process for the one before them to be stored.',
    kind: Gauge,
  },
  {
    figure: 'uploads',
    name: 'parley_uploads',
    help: 'Files that this process uploads to a platform right now.',
    kind: Gauge,
  },
  {
    figure: 'clock_offset_seconds', // guard: the clock of a platform is a metric
    name: 'parley_platform_clock_offset_seconds',
    help: "Seconds that the platform's clock is ahead of this machine's; negative: behind.",
    kind: Gauge,
  },
] as const

const downloadsOf = new WeakMap<Registry, (() => number)[]>()

export function countDownloads({ metrics }: App, running: () => number): void {
  const all = joinList(downloadsOf, metrics, running)
  const name = 'parley_downloads'
  sharedMetric(metrics, name, () => {
    return new Gauge({
      name,
      help: 'Files that this process downloads from the platform right now.',
      registers: [metrics],
      collect() {
        this.set(all.reduce((sum, each) => sum + each(), 0))
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
      help: 'Operations that were submitted to a platform, by outcome.',
      labelNames: ['kind', 'outcome'],
      registers: [metrics],
    })
  })
  return (kind, outcome) => counter.inc({ kind, outcome })
}
