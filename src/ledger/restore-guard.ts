/**
 * Notices a database that was restored from an older copy, or lost its last commits. This disk remembers which database it
 * is, how far its restore counter had come and its generation. Where the database is behind that, it may have forgotten
 * what was sent: nothing crosses the boundary until the journals of this disk have put back what they know.
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
  type InstanceState,
  listUnsafeSettings,
  raiseRestoreCounter,
  readInstance,
  renewGeneration,
} from './restore-counter.ts'
import { beginRun } from './runs.ts'
import { forgiveWorker, listEnded, noteOwing } from './workers.ts'

/** What the disk remembers between processes. */
interface Seen extends InstanceState {
  /** In files of earlier versions: a worker of this disk that has not put everything back. Now each has a file (`debts.ts`). */
  readonly owes?: string | null
}

const fileName = 'instance.json'

const sentences = {
  older:
    'the database is an older copy of itself: sending is switched off until `parley dispatch on`, and nothing is sent before the journals are put back',
  generation: 'the database was restored: nothing is sent before the journals of this disk are put back',
  stranger: 'this disk has journals and does not know the database: nothing is sent before they are put back',
  unknown:
    'this disk does not know the database and nobody works on it: sending is switched off until `parley dispatch on`',
  behind: 'the database has lost commits: nothing is sent before the journals of this disk are put back',
  run: 'the database server was started again: nothing is sent before the journals of this disk are put back',
  inherited:
    'a worker of this disk ended before it had put the journals back: nothing is sent before that is done',
} as const

export interface RestoreGuardOptions {
  readonly worker_id: string
  /** Where the journals lie. */
  readonly directory: string
  /** Every journal tells once more how its attempts ended. */
  readonly replay: () => Promise<void>
  /** Whether the database has forgotten commits that this process saw; its sessions then begin again. */
  readonly compare: () => Promise<boolean>
  /** Switches sending off for the whole instance until an operator switches it on. */
  readonly stopSending: (app: App) => Promise<void>
}

export class RestoreGuard {
  readonly #app: App
  readonly #options: RestoreGuardOptions
  #seen: InstanceState
  #owing = false
  /** What the others have to be told before anything is put back; null: they were told. */
  #untold: keyof typeof sentences | null = null
  /** Tokens of debts that were on the disk when the last complete put-back began. */
  #covered: ReadonlySet<string> = new Set()
  /** Something else than a start of the server was noticed since the last complete put-back. */
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
      throw new Refusal(`The database does not keep what it has committed: ${unsafe.join(', ')} must be on.`)
    }
    await mkdir(options.directory, { recursive: true, mode: 0o700 })
    // Known to live before it can owe anything: what a worker owes is taken over once it is not.
    await noteOwing(app.db, options.worker_id, false)
    const known = await readSeen(join(options.directory, fileName))
    const instance = await readInstance(app.db)
    const why = whyAtStart(app, known, instance)
    // What the disk knows stays there until the others are told: a crash in between must find it again.
    const guard = new RestoreGuard(app, options, known && why === 'older' ? known : instance)
    // guard: a disk that forgot the database puts its journals back
    const stranger = known?.id !== instance.id && (await listJournals(options.directory)).length > 0
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
    // Throws where the database is away: a process that cannot say what it owes does not start.
    await guard.#tellOthers()
    // What a process of this disk owed, this one owes now. Their files stay until they are known to have ended.
    for (const id of debtors) await forgiveWorker(app.db, id)
    if (!guard.#owing) await guard.#keep()
    return guard
  }

  /** What every crossing requires; undefined while nothing may cross. */
  instance(): CrossingInstance | undefined {
    if (this.#owing) return undefined // guard: owing worker crosses nothing
    const { restore_counter, generation, server_run } = this.#seen
    return { worker_id: this.#options.worker_id, restore_counter, generation, server_run }
  }

  /** With every heartbeat: raises the database's restore counter, and goes on with what is owed. */
  async raise(): Promise<void> {
    const seen = this.#seen
    const now = await raiseRestoreCounter(this.#app.db)
    // Another generation was begun here meanwhile.
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

  /** A count of writes was lower than what was seen committed. */
  async goneBack(): Promise<void> {
    if (!this.#owing) await this.#owe('behind')
    // What is being put back now may not be all.
    else this.#notice('behind') // guard: noticed during a put back
  }

  /** Remembered here and on the disk first: neither a database that is away nor a crash makes it forgotten. */
  async #owe(why: keyof typeof sentences): Promise<void> {
    const { log } = this.#app
    const level = why === 'run' ? 'info' : 'error'
    log[level]({ why, instance_id: this.#seen.id }, sentences[why])
    this.#owing = true // guard: owing before the database is asked
    this.#notice(why)
    await this.#keepDebt()
    await this.#keep()
    await this.#putBack().catch((err) => {
      log.error({ err }, 'the journals could not be put back; it is tried again with the next heartbeat')
    })
  }

  #notice(why: keyof typeof sentences): void {
    if (this.#untold !== 'older') this.#untold = why // guard: an older copy stays one
    this.#suspicious ||= why !== 'run'
  }

  /** Until this has committed, others may still cross. */
  async #tellOthers(): Promise<void> {
    const { db } = this.#app
    const why = this.#untold
    if (why === null) return
    // After an ordinary start of the server the others go on: what this worker's accounts may have written, their pools wait for.
    if (why === 'run') await this.#keepDebt()
    else await this.#noteDebt()
    if (why === 'older') await this.#switchOff(why)
    // Told to those who were away, by whoever has seen it with their own eyes.
    if (why === 'older' || why === 'behind') this.#seen = await renewGeneration(db)
    this.#untold = null
  }

  /** One at a time, whoever asks. */
  async #putBack(): Promise<void> {
    this.#working ??= this.#putAllBack().finally(() => {
      this.#working = undefined
    })
    await this.#working
  }

  async #putAllBack(): Promise<void> {
    const { db, log, operations } = this.#app
    const { directory, worker_id, replay, compare } = this.#options
    if (await compare()) this.#notice('behind') // guard: marks are compared
    await this.#tellOthers()
    await beginRun(db)
    const debts = await listDebts(directory)
    const { intents, damaged } = await readIntents(directory)
    let forgotten = 0
    for (const intent of await listUnknown(this.#app, intents)) {
      if (!(await db.transaction((tx) => putBack(tx, operations, intent)))) continue
      // At once: should this try fail, the next one finds nothing forgotten.
      if (forgotten++ === 0) await this.#switchOff('older') // guard: forgotten switches off at once
    }
    await replay()
    const level = forgotten + damaged > 0 ? 'error' : 'info'
    log[level]({ forgotten, damaged }, 'the journals of this disk were put back')
    // What the damaged lines would have told is not known, so a person has to say that sending may go on. After an ordinary
    // restart of the server nothing is missing that they could tell.
    if (damaged > 0 && this.#suspicious) await this.#switchOff('older') // guard: damaged lines keep sending off
    // Something else was noticed meanwhile: the next heartbeat begins again.
    if (this.#untold !== null) return // guard: a put back that noticed more is not done
    await noteOwing(db, worker_id, false)
    await dropDebt(directory, worker_id)
    if (this.#untold !== null) return // guard: noticed while a debt ended
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

  /** Remembers the database. Other processes of this disk do so at the same moment, in the same file. */
  async #keep(): Promise<void> {
    const { id, restore_counter, generation, server_run } = this.#seen
    const { worker_id, directory } = this.#options
    const path = join(directory, fileName)
    const kept = await readSeen(path)
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

  /** The disk first: a row whose worker dies is forgiven only by who finds its file. */
  async #noteDebt(): Promise<void> {
    await this.#keepDebt()
    await noteOwing(this.#app.db, this.#options.worker_id, true)
  }

  async #debtsOfOthers(): Promise<Debt[]> {
    const { directory, worker_id } = this.#options
    return (await listDebts(directory)).filter((debt) => debt.worker_id !== worker_id)
  }

  /** Takes over what other workers of this disk owed when they ended: no other process will put it back. */
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

/** Undefined: the database is the one this disk knows, or somebody works on it right now. */
function whyAtStart(
  { config }: App,
  known: Seen | undefined,
  instance: InstanceState & { readonly fresh: boolean },
): 'older' | 'generation' | 'run' | 'unknown' | undefined {
  if (known?.id === instance.id) {
    if (BigInt(instance.restore_counter) < BigInt(known.restore_counter)) return 'older' // guard: an older copy is noticed
    if (known.generation !== instance.generation) return 'generation' // guard: another generation is noticed
    return known.server_run !== instance.server_run ? 'run' : undefined // guard: a new run is noticed at the start
  }
  return instance.fresh || config.instance_id === instance.id ? undefined : 'unknown'
}

async function readSeen(path: string): Promise<Seen | undefined> {
  try {
    const { beat, ...seen } = JSON.parse(await readFile(path, 'utf8'))
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

/** What may have happened. An attempt that provably came to nothing leaves nothing to put back. */
function listPossible(entries: readonly Entry[]): Intent[] {
  const nothing = new Set<string>()
  for (const entry of entries) {
    if (entry.entry !== 'outcome') continue
    const { kind } = entry.outcome
    // guard: what came to nothing is not put back
    if (kind === 'refused' || kind === 'flood_wait' || kind === 'not_written') nothing.add(entry.token)
    else if (kind === 'accepted') nothing.delete(entry.token)
  }
  return entries.filter((entry) => entry.entry === 'intent').filter(({ token }) => !nothing.has(token))
}
