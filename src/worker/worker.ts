/** The background work of one process: `assembleWorker` builds it, `runWorker` runs it. */
import { join } from 'node:path'
import type { App } from '../app.ts'
import { noteTrouble } from '../capabilities/accounts/accounts.ts'
import { Dispatch, messageBoundary } from '../capabilities/campaigns/running/running.ts'
import { setDispatch } from '../capabilities/gates/gates.ts'
import { operationBoundary } from '../ledger/boundary.ts'
import { Echoes } from '../ledger/echoes.ts'
import { type Journal, listJournals, openJournal } from '../ledger/journal.ts'
import { Lanes } from '../ledger/lanes.ts'
import { accountsChanged } from '../ledger/leases.ts'
import { Ledger } from '../ledger/ledger.ts'
import { Recorder } from '../ledger/recording.ts'
import { observeLoop, replayAll, replayLoop, sweepLoop } from '../ledger/recovery.ts'
import { RestoreGuard } from '../ledger/restore-guard.ts'
import { listBehind } from '../ledger/runs.ts'
import { forgetWorkers, noteDrives, noteHeartbeat, noteStopped } from '../ledger/workers.ts'
import type { Loop, MakeLoops } from '../loop.ts'
import { AccountPool, type Platforms } from './account-pool.ts'
import { Downloads } from './downloads.ts'
import { erasureLoop, repeatErasures } from './erasures.ts'
import { LoginRunner } from './login-runner.ts'
import { countOperations, showJournal } from './metrics.ts'
import { failingLoops, type Running, runLoops } from './run-loops.ts'
import { undrivenLoop } from './undriven.ts'

const heartbeatMs = 2_000
const forgetMs = 60_000

interface WorkerParts {
  readonly platforms: Platforms
  /** Where this process keeps what must survive it. */
  readonly directory: string
  readonly loops: readonly MakeLoops[]
  /** Opens this process's journal; by default the one on its disk. */
  readonly journal?: typeof openJournal
  /** Free bytes on the disk of its directory, for operators; by default unknown. */
  readonly diskFree?: () => number | null
}

/** A worker whose loops are not running: its owner takes their steps. */
export interface Worker {
  readonly loops: readonly Loop[]
  /** The state of this process's journal: `ok`, `unwritable`, or `none` without a platform to submit to. */
  journal(): string
  /** Waits for answers to submissions, closes sessions, releases accounts. Call it after the last step. */
  end(): Promise<void>
}

export async function assembleWorker(
  app: App,
  { platforms, directory, loops, journal = openJournal, diskFree = () => null }: WorkerParts,
): Promise<Worker> {
  const id = app.sources.newId()
  const always = [...loops.flatMap((make) => make(app)), sweepLoop(), forgetLoop, undrivenLoop()]
  // A process without a platform drives no account, so it must not count when accounts are shared out.
  const acting =
    platforms.size > 0
      ? await act(app, { id, directory: join(directory, 'ledger'), platforms, open: journal, diskFree })
      : undefined
  return {
    loops: [...always, ...(acting?.loops ?? [])],
    journal: () => acting?.journal() ?? 'none',
    async end() {
      await acting?.stop()
      // Marked, so that no worker waits for what this one held. If the database is gone, its leases expire.
      await noteStopped(app.db, id).catch((err) => app.log.warn({ err }, 'the worker could not sign off'))
      // Only now do other workers stop counting this process and take its share as well.
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

interface ActingOptions {
  readonly id: string
  /** Where the journals are. */
  readonly directory: string
  readonly platforms: Platforms
  readonly open: typeof openJournal
  readonly diskFree: () => number | null
}

/** Opens the restore guard first: whatever reaches a platform needs what this disk remembers of the database. */
async function act(app: App, { id, directory, platforms, open, diskFree }: ActingOptions) {
  const recorder = new Recorder(app, { count: countOperations(app), noteTrouble })
  const replay = () => replayAll(app, { directory, recorder })
  const echoes = new Echoes(app)
  const behind = () => {
    pool.startOver()
    void guard.goneBack().catch((err) => app.log.error({ err }, 'lost commits could not be put back yet'))
  }
  const pool = new AccountPool(app, {
    worker_id: id,
    platforms,
    echoes,
    instance: () => guard.instance(),
    behind,
    mayDrive: () => mayDrive(app, id, journal),
    neighbours: async () => (await listJournals(directory)).map(({ worker_id }) => worker_id),
  })
  const guard = await RestoreGuard.open(app, {
    worker_id: id,
    directory,
    replay,
    erase: () => repeatErasures(app, directory),
    compare: () => compareMarks(app, pool),
    stopSending,
    exclusive: [...platforms.values()].some(({ takeoverSeconds }) => takeoverSeconds > 0),
  })
  const journal = await open(directory, id, app.sources)
  showJournal(app, journal)
  const boundary = operationBoundary(app, { instance: () => guard.instance(), behind })
  const ways = { boundary, journal, recorder, echoes }
  const driving = { lanes: new Lanes(), driven: () => pool.driven() }
  const ledger = new Ledger(app, ways, driving)
  const logins = new LoginRunner(app, { worker_id: id, platforms })
  const messages = messageBoundary(app, { instance: () => guard.instance(), behind })
  const downloads = new Downloads(app, () => pool.driven())
  const dispatch = new Dispatch(app, { ...ways, messages }, driving)
  return {
    loops: [
      heartbeat({ worker_id: id, platforms: [...platforms.keys()] }, { guard, pool, diskFree }),
      ledger.loop,
      dispatch.loop,
      downloads.loop,
      observeLoop(app, () => pool.driven()),
      replayLoop({ directory, worker_id: id, recorder }),
      erasureLoop(directory),
      ...pool.loops,
      logins.loop,
    ],
    journal: () => (journal.isFailing() ? 'unwritable' : 'ok'),
    async stop() {
      await Promise.all([ledger.stop(), dispatch.stop(), logins.stop(), downloads.stop()])
      await pool.stop()
      await journal.close()
    },
  }
}

const stopReason = 'The database is an older copy of itself, or the disk of a worker does not know it.'

async function stopSending(app: App): Promise<void> {
  await setDispatch(app, 'system', false, stopReason)
}

/** Whether the database has forgotten what this process saw committed. If so, restarts its sessions from where it is now. */
async function compareMarks({ db, log }: App, pool: AccountPool): Promise<boolean> {
  const account_ids = await listBehind(db, pool.marks())
  if (account_ids.length === 0) return false
  log.error({ account_ids }, 'the database has forgotten commits of these accounts')
  pool.startOver()
  return true
}

/** Records that this process is alive. It also revives a process that was declared dead by mistake. */
function heartbeat(
  worker: { readonly worker_id: string; readonly platforms: readonly string[] },
  { guard, pool, diskFree }: { guard: RestoreGuard; pool: AccountPool; diskFree: () => number | null },
): Loop {
  return {
    name: 'heartbeat',
    restMs: heartbeatMs,
    async step(app) {
      await guard.raise()
      await noteHeartbeat(app.db, { ...worker, failing: failingLoops(app), disk_free: diskFree() })
      await pool.confirm()
      return false
    },
  }
}

/** A worker that cannot write its journal does not count when accounts are shared out. */
async function mayDrive({ db, log }: App, id: string, journal: Journal): Promise<boolean> {
  const writable = await journal.isWritable()
  const news = await noteDrives(db, id, writable)
  if (news && !writable) log.error('the journal cannot be written: this process gives its accounts up')
  return writable
}

const forgetLoop: Loop = {
  name: 'forget-workers',
  restMs: forgetMs,
  async step({ db }) {
    await forgetWorkers(db)
    return false
  },
}
