/**
 * Detects a database that was restored from an older copy or lost its last commits. This disk remembers the database's id,
 * restore counter and generation. A database that is behind them may have forgotten what was sent: nothing crosses the
 * boundary until the journals on this disk have put back what they know.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { App } from '../app.ts'
import { Refusal } from '../lib/errors.ts'
import type { Instance as CrossingInstance } from './crossing.ts'
import { type Debt, dropDebt, keepDebt, listDebts } from './debts.ts'
import { type Entry, type Intent, listJournals, readJournal } from './journal.ts'
import { listUnknown, putBack } from './put-back.ts'
import {
  confirmInstance,
  doubtInstance,
  type Instance,
  type InstanceState,
  listUnsafeSettings,
  raiseRestoreCounter,
  readInstance,
  renewGeneration,
} from './restore-counter.ts'
import { beginRun } from './runs.ts'
import { forgiveWorker, listEnded, noteOwing } from './workers.ts'

/** What the disk remembers between processes. */
interface SeenInstance extends InstanceState {
  /** Files of earlier versions only: a worker of this disk that has not put everything back. Now each has a file (`debts.ts`). */
  readonly owes?: string | null
}

const fileName = 'instance.json'
/** A worker raises the counter several times in this time. */
const beatMsMax = 10_000
const beatPollMs = 250

const sentences = {
  older:
    'the database is an older copy of itself: sending is switched off until `parley dispatch on`, and nothing is sent before the journals are replayed',
  generation: 'the database was restored: nothing is sent before the journals of this disk are replayed',
  stranger: 'this disk has journals and does not know the database: nothing is sent before they are replayed',
  unknown:
    'this disk does not know the database and no worker uses it: sending is switched off, and no account of a real platform connects, until `parley dispatch on`',
  behind: 'the database has lost commits: nothing is sent before the journals of this disk are replayed',
  run: 'the database server was restarted: nothing is sent before the journals of this disk are replayed',
  inherited:
    'a worker of this disk stopped before it had replayed the journals: nothing is sent before that is done',
} as const

interface RestoreGuardOptions {
  readonly worker_id: string
  /** Where the journals are. */
  readonly directory: string
  /** Replays the outcomes in every journal. */
  readonly replay: () => Promise<void>
  /** Repeats the erasures that this disk knows and the database has forgotten. */
  readonly erase: () => Promise<void>
  /** Whether the database has forgotten commits that this process saw; if so, restarts its sessions. */
  readonly compare: () => Promise<boolean>
  /** Switches sending off for the whole instance until an operator switches it on. */
  readonly stopSending: (app: App) => Promise<void>
  /** Whether it drives accounts that two addresses must not use at once. */
  readonly exclusive: boolean
}

export class RestoreGuard {
  readonly #app: App
  readonly #options: RestoreGuardOptions
  #seen: InstanceState
  #owing = false
  /** What other workers must learn before anything is put back; null: they know. */
  #unreported: keyof typeof sentences | null = null
  /** Tokens of debts that were on the disk when the last complete put-back began. */
  #covered: ReadonlySet<string> = new Set()
  /** Whether it noticed anything but a start of the server since the last complete put-back. */
  #suspicious = false
  #working: Promise<void> | undefined

  private constructor(app: App, options: RestoreGuardOptions, seen: InstanceState) {
    this.#app = app
    this.#options = options
    this.#seen = seen
  }

  /** Registers the worker, and puts the journals back first where that is needed. */
  static async open(app: App, options: RestoreGuardOptions): Promise<RestoreGuard> {
    const unsafe = await listUnsafeSettings(app.db)
    if (unsafe.length > 0) {
      throw new Refusal(`The database may lose committed data: switch ${unsafe.join(', ')} on.`)
    }
    await mkdir(options.directory, { recursive: true, mode: 0o700 })
    // Registers as alive before it can owe anything: other workers take over the debts of a worker that is not alive.
    await noteOwing(app.db, options.worker_id, false)
    const known = await readSeen(options.directory)
    const instance = await joinInstance(app, known)
    const why = whyAtStart(app, known, instance)
    // The disk keeps the old state until the other workers know: after a crash in between, the next start must find it.
    // guard: the disk keeps what it knew of an older copy
    const guard = new RestoreGuard(app, options, known && why === 'older' ? known : instance)
    // guard: a disk that forgot the database puts its journals back
    const stranger = known?.id !== instance.id && (await listJournals(options.directory)).length > 0
    if (await mayBeCopy(app, options, { known, instance })) await doubtInstance(app.db)
    if (app.config.instance_id === instance.id) await confirmInstance(app.db)
    const debts = await guard.#debtsOfOthers()
    const debtors = [...debts.map((debt) => debt.worker_id), ...(known?.owes ? [known.owes] : [])]
    if (why === 'unknown') {
      if (stranger) await guard.#noteDebt()
      await guard.#switchOff(why)
      guard.#seen = await renewGeneration(app.db)
    }
    if (why === 'older' || why === 'generation' || why === 'run') await guard.#owe(why)
    else if (stranger) await guard.#owe('stranger')
    else if (debtors.length > 0) await guard.#owe('inherited')
    await beginRun(app.db)
    // Throws where the database is away: a process that cannot register its debt does not start.
    await guard.#warnOthers()
    // This process takes over the debts of earlier processes of this disk. Their files stay until those have ended.
    for (const id of debtors) await forgiveWorker(app.db, id)
    if (!guard.#owing) {
      // An older copy need not look like one to this disk.
      await options.erase() // guard: erasures are repeated at every start
      await guard.#keep()
    }
    return guard
  }

  /** What every crossing requires; undefined while nothing may cross. */
  instance(): CrossingInstance | undefined {
    if (this.#owing) return undefined // guard: owing worker crosses nothing
    const { restore_counter, generation, server_run } = this.#seen
    return { worker_id: this.#options.worker_id, restore_counter, generation, server_run }
  }

  /** Runs with every heartbeat: raises the database's restore counter, and continues an unfinished put-back. */
  async raise(): Promise<void> {
    const seen = this.#seen
    const now = await raiseRestoreCounter(this.#app.db)
    // This process began another generation meanwhile.
    if (this.#seen !== seen) return // guard: a generation begun meanwhile
    if (now.id !== seen.id || BigInt(now.restore_counter) <= BigInt(seen.restore_counter)) {
      await this.#owe('older')
      return
    }
    this.#seen = now
    if (now.generation !== seen.generation) await this.#owe('generation')
    // guard: a new run of the server is noticed
    else if (now.server_run !== seen.server_run) await this.#owe('run')
    else if (this.#owing) await this.#putBack()
    else {
      await this.#keep()
      await this.#inherit() // guard: the debt of an ended worker is taken over
    }
  }

  /** The database returned a count of writes below one that this process saw committed. */
  async goneBack(): Promise<void> {
    if (!this.#owing) await this.#owe('behind')
    // The put-back under way may not cover this.
    else this.#notice('behind') // guard: noticed during a put back
  }

  /** Remembers the debt in memory and on disk first, so that it survives an unreachable database and a crash. */
  async #owe(why: keyof typeof sentences): Promise<void> {
    const { log } = this.#app
    const level = why === 'run' ? 'info' : 'error'
    log[level]({ why, instance_id: this.#seen.id }, sentences[why])
    this.#owing = true // guard: owing before the database is asked
    this.#notice(why)
    await this.#keepDebt()
    await this.#keep()
    await this.#putBack().catch((err) => {
      log.error({ err }, 'the worker could not replay the journals; it retries with the next heartbeat')
    })
  }

  #notice(why: keyof typeof sentences): void {
    if (this.#unreported !== 'older') this.#unreported = why // guard: an older copy stays one
    this.#suspicious ||= why !== 'run'
  }

  /** Until this commits, other workers may still cross. */
  async #warnOthers(): Promise<void> {
    const { db } = this.#app
    const why = this.#unreported
    if (why === null) return
    // After an ordinary start of the server other workers continue; the pools wait for what this worker's accounts may have sent.
    if (why === 'run') await this.#keepDebt()
    else await this.#noteDebt()
    if (why === 'older') await this.#switchOff(why)
    // The new generation alerts workers that were away; only a worker that saw the loss itself sets it.
    if (why === 'older' || why === 'behind') this.#seen = await renewGeneration(db)
    this.#unreported = null
  }

  /** Runs once at a time; concurrent callers share the run. */
  async #putBack(): Promise<void> {
    this.#working ??= this.#putAllBack().finally(() => {
      this.#working = undefined
    })
    await this.#working
  }

  async #putAllBack(): Promise<void> {
    const { db, log, operations } = this.#app
    const { directory, worker_id, replay, compare, erase } = this.#options
    if (await compare()) this.#notice('behind') // guard: marks are compared
    await this.#warnOthers()
    await erase() // guard: erasures are repeated before anything is sent
    await beginRun(db)
    const debts = await listDebts(directory)
    const { intents, damaged } = await readIntents(directory)
    let forgotten = 0
    for (const intent of await listUnknown(this.#app, intents)) {
      if (!(await db.transaction((tx) => putBack(tx, operations, intent)))) continue
      // At once: if this try fails, the next one finds nothing forgotten.
      if (forgotten++ === 0) await this.#switchOff('older') // guard: forgotten switches off at once
    }
    await replay()
    const level = forgotten + damaged > 0 ? 'error' : 'info'
    log[level]({ forgotten, damaged }, 'the worker replayed the journals of this disk')
    // The content of damaged lines is lost, so an operator must allow sending again. After an ordinary restart of the server
    // the database is missing nothing that they held.
    if (damaged > 0 && this.#suspicious) await this.#switchOff('older') // guard: damaged lines keep sending off
    // It noticed something else meanwhile: the next heartbeat starts over.
    if (this.#unreported !== null) return // guard: a put back that noticed more is not done
    await noteOwing(db, worker_id, false)
    await dropDebt(directory, worker_id)
    if (this.#unreported !== null) return // guard: noticed while a debt ended
    this.#owing = false
    this.#suspicious = false
    this.#covered = new Set(debts.map(({ token }) => token))
    await this.#keep()
  }

  async #switchOff(why: keyof typeof sentences): Promise<void> {
    if ((await this.#app.settings.current()).dispatch) {
      this.#app.log.error({ why }, 'sending is switched off until `parley dispatch on`')
    }
    await this.#options.stopSending(this.#app)
  }

  /** Remembers the database. Other processes of this disk write the same file at the same time. */
  async #keep(): Promise<void> {
    const { id, restore_counter, generation, server_run } = this.#seen
    const { worker_id, directory } = this.#options
    const path = join(directory, fileName)
    const kept = await readSeen(directory)
    const same = kept?.id === id && kept.generation === generation
    // guard: the slower of two processes does not set the counter back
    if (same && BigInt(kept.restore_counter) > BigInt(restore_counter)) return
    const fresh = `${path}.${worker_id}.new`
    const text = JSON.stringify({ id, restore_counter, generation, server_run })
    await writeFile(fresh, text, { mode: 0o600, flush: this.#owing })
    await rename(fresh, path)
  }

  async #keepDebt(): Promise<void> {
    const { worker_id, directory } = this.#options
    await keepDebt(directory, { worker_id, token: this.#app.sources.newId() }) // guard: a debt is kept on the disk
  }

  /** Writes the disk first: if the worker dies, only a worker that finds its file clears its row. */
  async #noteDebt(): Promise<void> {
    await this.#keepDebt()
    await noteOwing(this.#app.db, this.#options.worker_id, true)
  }

  async #debtsOfOthers(): Promise<Debt[]> {
    const { directory, worker_id } = this.#options
    return (await listDebts(directory)).filter((debt) => debt.worker_id !== worker_id)
  }

  /** Takes over the debts of ended workers of this disk: no other process will put them back. */
  async #inherit(): Promise<void> {
    const { db } = this.#app
    const others = await this.#debtsOfOthers()
    if (others.length === 0) return
    const ended = await listEnded(
      db,
      others.map(({ worker_id }) => worker_id),
    )
    const debts = others.filter(({ worker_id }) => ended.has(worker_id)) // guard: a living worker keeps its debt
    const isCovered = ({ token }: Debt) => this.#covered.has(token)
    // guard: an inherited debt is put back
    if (!debts.every(isCovered) && !this.#owing) await this.#owe('inherited')
    if (this.#owing) return
    for (const { worker_id } of debts.filter(isCovered)) {
      await forgiveWorker(db, worker_id)
      await dropDebt(this.#options.directory, worker_id)
    }
  }
}

/**
 * Raises the counter at once where the disk knows the database: a worker of an unknown disk that starts at the same time must
 * not wait for the first heartbeat to see that the database is in use.
 */
async function joinInstance({ db }: App, known: SeenInstance | undefined): Promise<Instance> {
  const instance = await readInstance(db)
  if (known?.id !== instance.id || isOlder(known, instance)) return instance
  return { ...instance, ...(await raiseRestoreCounter(db)) } // guard: a start counts as a heartbeat
}

/** Undefined: the disk knows this database, or a worker is using it right now. */
function whyAtStart(
  { config }: App,
  known: SeenInstance | undefined,
  instance: Instance,
): 'older' | 'generation' | 'run' | 'unknown' | undefined {
  if (known?.id === instance.id) {
    if (isOlder(known, instance)) return 'older' // guard: an older copy is noticed
    if (known.generation !== instance.generation) return 'generation' // guard: another generation is noticed
    return known.server_run !== instance.server_run ? 'run' : undefined // guard: a new run is noticed at the start
  }
  return instance.fresh || config.instance_id === instance.id ? undefined : 'unknown'
}

function isOlder(known: InstanceState, instance: InstanceState): boolean {
  return BigInt(instance.restore_counter) < BigInt(known.restore_counter)
}

/**
 * Whether this disk does not know the database and no worker lives on it. A copy that was made a moment ago looks as if one
 * did, so this waits for another worker's heartbeat where an account could be lost.
 */
async function mayBeCopy(
  { config, db, sources }: App,
  { exclusive }: RestoreGuardOptions,
  { known, instance }: { readonly known: SeenInstance | undefined; readonly instance: Instance },
): Promise<boolean> {
  if (known?.id === instance.id || config.instance_id === instance.id) return false
  if (BigInt(instance.restore_counter) === 0n) return false
  if (!instance.fresh || !exclusive) return !instance.fresh
  for (let waited = 0; waited < beatMsMax; waited += beatPollMs) {
    await sources.sleep(beatPollMs)
    const { restore_counter } = await readInstance(db)
    if (BigInt(restore_counter) > BigInt(instance.restore_counter)) return false // guard: a copy has no other heartbeat
  }
  return true
}

/** What this disk remembers of its database. */
export async function readSeen(directory: string): Promise<SeenInstance | undefined> {
  try {
    const { beat, ...seen } = JSON.parse(await readFile(join(directory, fileName), 'utf8'))
    // Files of earlier versions call it `beat`.
    return { restore_counter: beat, ...seen }
  } catch {
    return undefined
  }
}

async function readIntents(directory: string): Promise<{ intents: Intent[]; damaged: number }> {
  const intents: Intent[] = []
  let damaged = 0
  const workers = Map.groupBy(await listJournals(directory), ({ worker_id }) => worker_id)
  for (const files of workers.values()) {
    const texts = await Promise.all(files.map((file) => readJournal(directory, file)))
    damaged += texts.reduce((sum, text) => sum + text.damaged, 0)
    // guard: journals are put back
    intents.push(...listPossible(texts.flatMap(({ entries }) => entries)))
  }
  return { intents, damaged }
}

/** Intents that may have been sent. An attempt that provably sent nothing needs no put-back: its token has no other outcome. */
function listPossible(entries: readonly Entry[]): Intent[] {
  const nothing = new Set<string>()
  for (const entry of entries) {
    if (entry.entry !== 'outcome') continue
    const { kind } = entry.outcome
    // guard: what provably sent nothing is not put back
    if (kind === 'refused' || kind === 'flood_wait' || kind === 'not_written') nothing.add(entry.token)
  }
  return entries.filter((entry) => entry.entry === 'intent').filter(({ token }) => !nothing.has(token))
}
