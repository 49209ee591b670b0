/** What runs in the background of one process: put together by one function, run by another. */
import { join } from 'node:path'
import { accountsChanged } from '../access/ledger/leases.ts'
import type { App } from '../app.ts'
import { sql } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import type { Loop, MakeLoops } from '../loop.ts'
import { byKind, type OperationKind, type OperationKinds } from '../operation.ts'
import { AccountPool, type Platforms } from './account-pool.ts'
import { openJournal } from './journal.ts'
import { makeLedger } from './ledger.ts'
import { countOperations } from './metrics.ts'
import { observeLoop, replayAll, replayLoop, sweepLoop } from './recovery.ts'
import { openRestoreGuard } from './restore-guard.ts'
import { type Running, runLoops } from './run-loops.ts'

const heartbeatMs = 2_000
const forgetMs = 60_000

export interface WorkerParts {
  readonly platforms: Platforms
  /** Where this process keeps what must survive it. */
  readonly directory: string
  readonly operations: readonly OperationKind[]
  readonly loops: readonly MakeLoops[]
}

/** A worker whose loops are not running: whoever has it takes their steps. */
export interface Worker {
  readonly loops: readonly Loop[]
  /** Lets what was submitted be answered, closes sessions, gives accounts back. After the last step. */
  end(): Promise<void>
}

export async function assembleWorker(app: App, parts: WorkerParts): Promise<Worker> {
  const { platforms, directory } = parts
  const id = newId()
  const kinds = byKind(parts.operations)
  const pool = new AccountPool(app, { worker_id: id, platforms })
  const always = [...parts.loops.flatMap((make) => make(app)), sweepLoop(kinds), forgetWorkers]
  // A process without a platform drives no account, so nobody may count on it for a share of them.
  const acting = platforms.size > 0 ? await act(app, { id, directory, kinds, pool }) : undefined
  return {
    loops: [...always, ...(acting ? [...acting.loops, ...pool.loops] : [])],
    async end() {
      await acting?.stop()
      await pool.stop()
      await acting?.journal.close()
      // Marked, so that nobody waits for what this process held. If the database is gone, time will tell.
      await app.db
        .run(sql`update workers set stopped_at = clock_timestamp() where id = ${id}`)
        .catch((err) => app.log.warn({ err }, 'the worker could not sign off'))
      // Only now do the others count without this process and take its share as well.
      app.wake.signal(accountsChanged)
    },
  }
}

export function runWorker(app: App, worker: Worker): Running {
  const running = runLoops(app, worker.loops)
  return {
    problem: running.problem,
    async stop() {
      await running.stop()
      await worker.end()
    },
  }
}

interface Acting {
  readonly id: string
  readonly directory: string
  readonly kinds: OperationKinds
  readonly pool: AccountPool
}

/** Everything that may reach a platform needs what this disk remembers of the database first. */
async function act(app: App, { id, directory, kinds, pool }: Acting) {
  const journals = join(directory, 'ledger')
  const restoreGuard = await openRestoreGuard(app, { directory: journals, kinds })
  const journal = await openJournal(journals, id)
  await app.db.run(sql`insert into workers (id) values (${id})`)
  const ledger = makeLedger(app, {
    kinds,
    driven: () => pool.driven(),
    journal,
    restoreCounter: restoreGuard.counter,
    settled: countOperations(app),
  })
  if (restoreGuard.went_back) await replayAll(app, journals, ledger)
  const loops = [
    heartbeat(id, async () => {
      if (await restoreGuard.raise()) await replayAll(app, journals, ledger)
    }),
    ledger.loop,
    observeLoop(kinds, () => pool.driven()),
    replayLoop(journals, id, ledger),
  ]
  return { loops, journal, stop: ledger.stop }
}

/** Says that this process lives. A process that was declared dead by mistake comes back with it. */
function heartbeat(id: string, raise: () => Promise<void>): Loop {
  return {
    name: 'heartbeat',
    restMs: heartbeatMs,
    async step({ db }) {
      await raise()
      await db.run(sql`
        insert into workers (id) values (${id})
        on conflict (id) do update set beat_at = clock_timestamp(), stopped_at = null`)
      return false
    },
  }
}

const forgetWorkers: Loop = {
  name: 'forget-workers',
  restMs: forgetMs,
  async step({ db }) {
    await db.run(sql`delete from workers where beat_at < clock_timestamp() - interval '7 days'`)
    return false
  },
}
