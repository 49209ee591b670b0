/**
 * Metrics of the whole instance, the same in every process: the ones worth waking an operator for. Each scrape reads them from
 * the database, and leaves them out while it does not answer.
 */
import { Gauge } from 'prom-client'
import type { App } from '../app.ts'
import { type AccountCounts, countAccounts, statuses } from '../capabilities/accounts/accounts.ts'
import {
  ages,
  type FileFigures,
  type LedgerFigures,
  readFileFigures,
  readLedgerFigures,
} from '../ledger/figures.ts'
import { readStopFigures, type StopFigures } from '../ledger/floods.ts'
import { countWorkers, type WorkerCounts } from '../ledger/workers.ts'
import { together } from '../lib/together.ts'
import { floodScopes } from '../platform/port.ts'

interface Figures {
  readonly dispatch: boolean
  readonly ledger: LedgerFigures
  readonly files: FileFigures
  readonly accounts: readonly AccountCounts[]
  readonly workers: WorkerCounts
  readonly stops: StopFigures
}

type Samples = readonly (readonly [labels: Readonly<Record<string, string>>, value: number])[]

interface InstanceGauge {
  readonly name: string
  readonly help: string
  readonly labelNames?: readonly string[]
  readonly samples: (figures: Figures) => Samples
}

const shown: readonly InstanceGauge[] = [
  {
    name: 'parley_dispatch_enabled',
    help: 'Whether sending is on: 1, or 0 after `parley dispatch off`. Of the whole instance.',
    samples: ({ dispatch }) => [[{}, dispatch ? 1 : 0]],
  },
  {
    name: 'parley_operations_ambiguous',
    help: 'Operations with an unknown outcome that no person has closed, by age: below an hour, a day, a week, older. Counts at most 10,000. Of the whole instance.',
    labelNames: ['age'],
    samples: ({ ledger }) => ages.map((age) => [{ age }, ledger.ambiguous[age]]),
  },
  {
    name: 'parley_operations_queued',
    help: 'Operations that wait for a worker. Of the whole instance.',
    samples: ({ ledger }) => [[{}, ledger.queued]],
  },
  {
    name: 'parley_operations_queued_oldest_seconds',
    help: 'How long the oldest operation has waited for a worker; 0 when none waits. Of the whole instance.',
    samples: ({ ledger }) => [[{}, ledger.queued_seconds ?? 0]],
  },
  {
    name: 'parley_files_waiting',
    help: 'Attachments whose bytes are still stored. Counts at most 10,000. Of the whole instance.',
    samples: ({ files }) => [[{}, files.files]],
  },
  {
    name: 'parley_files_waiting_oldest_seconds',
    help: 'Age of the oldest of these attachments; 0 when there is none. Of the whole instance.',
    samples: ({ files }) => [[{}, files.seconds ?? 0]],
  },
  {
    name: 'parley_account_status',
    help: 'Accounts by their status. Of the whole instance.',
    labelNames: ['status'],
    samples: ({ accounts }) =>
      statuses.map((status) => [{ status }, accounts.find((row) => row.status === status)?.accounts ?? 0]),
  },
  {
    name: 'parley_accounts_without_worker',
    help: 'Accounts that no worker can drive: none reaches their platform, or none of those can write its journal. Of the whole instance.',
    samples: ({ accounts }) => [[{}, accounts.reduce((sum, { undriven }) => sum + undriven, 0)]],
  },
  {
    name: 'parley_flood_waits',
    help: 'Accounts that the platform makes wait, by what the wait stops. Of the whole instance.',
    labelNames: ['stops'],
    samples: ({ stops }) => floodScopes.map((scope) => [{ stops: scope }, stops.waits[scope].accounts]),
  },
  {
    name: 'parley_flood_wait_seconds',
    help: 'How long the longest of these waits still lasts. Of the whole instance.',
    labelNames: ['stops'],
    samples: ({ stops }) => floodScopes.map((scope) => [{ stops: scope }, stops.waits[scope].seconds]),
  },
  {
    name: 'parley_accounts_cold_stopped',
    help: 'Accounts whose first messages the platform has stopped. Of the whole instance.',
    samples: ({ stops }) => [[{}, stops.cold_stopped]],
  },
  {
    name: 'parley_accounts_campaigns_held',
    help: 'Accounts whose campaign messages hold until a person enables them, because sends kept ending with one unknown error. Of the whole instance.',
    samples: ({ stops }) => [[{}, stops.campaigns_held]],
  },
  {
    name: 'parley_workers',
    help: 'Workers: driving, alive but unable to write a journal, or still replaying journals into a restored database (nothing is sent meanwhile). Of the whole instance.',
    labelNames: ['state'],
    samples: ({ workers }) => Object.entries(workers).map(([state, count]) => [{ state }, count]),
  },
]

export function showInstance(app: App): void {
  const read = together(() => readFigures(app).catch(() => undefined))
  for (const { name, help, labelNames = [], samples } of shown) {
    new Gauge({
      name,
      help,
      labelNames: [...labelNames],
      registers: [app.metrics],
      async collect() {
        const figures = await read()
        this.reset()
        // Without labels `reset` leaves a zero, which would look like a measurement.
        if (!figures && labelNames.length === 0) this.remove()
        for (const [labels, value] of figures ? samples(figures) : []) this.set(labels, value)
      },
    })
  }
}

async function readFigures({ db, settings }: App): Promise<Figures> {
  const [{ dispatch }, ledger, files, accounts, workers, stops] = await Promise.all([
    settings.current(),
    readLedgerFigures(db),
    readFileFigures(db),
    countAccounts(db),
    countWorkers(db),
    readStopFigures(db),
  ])
  return { dispatch, ledger, files, accounts, workers, stops }
}
