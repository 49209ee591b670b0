/**
 * Notices a database that was restored from an older copy, or lost its last commits. This disk remembers which database it
 * is, how far its restore counter had come and its generation. Where the database is behind that, it may have forgotten
 * what was sent: nothing crosses the boundary until the journals of this disk have put back what they know.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Instance as CrossingInstance } from '../access/ledger/crossing.ts'
import { putBack } from '../access/ledger/put-back.ts'
import {
  type InstanceState,
  listUnsafeSettings,
  raiseRestoreCounter,
  readInstance,
  renewGeneration,
} from '../access/ledger/restore-counter.ts'
import { forgiveWorker, noteOwing } from '../access/ledger/workers.ts'
import type { App } from '../app.ts'
import { setDispatch } from '../capabilities/gates/gates.ts'
import { Refusal } from '../lib/errors.ts'
import { type Entry, type Intent, listJournals, readJournal } from './journal.ts'

/** What the disk remembers between processes. */
interface Seen extends InstanceState {
  /** A worker of this disk that found the database restored and has not put everything back. */
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
} as const

export interface RestoreGuardOptions {
  readonly worker_id: string
  /** Where the journals lie. */
  readonly directory: string
  /** Every journal tells once more how its attempts ended. */
  readonly replay: () => Promise<void>
}

export class RestoreGuard {
  readonly #app: App
  readonly #options: RestoreGuardOptions
  #seen: InstanceState
  #owing = false
  /** What the others have to be told before anything is put back; null: they were told. */
  #untold: keyof typeof sentences | null = null
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
    const known = await readSeen(join(options.directory, fileName))
    const instance = await readInstance(app.db)
    const why = whyAtStart(app, known, instance)
    // What the disk knows stays there until the others are told: a crash in between must find it again.
    const guard = new RestoreGuard(app, options, known && why === 'older' ? known : instance)
    // guard: a disk that forgot the database puts its journals back
    const stranger = known?.id !== instance.id && (await listJournals(options.directory)).length > 0
    if (why === 'unknown') {
      if (stranger) await noteOwing(app.db, options.worker_id, true)
      await guard.#switchOff(why)
      guard.#seen = await renewGeneration(app.db)
    }
    if (why === 'older' || why === 'generation') await guard.#owe(why)
    else if (known?.owes || stranger) await guard.#owe(stranger ? 'stranger' : 'generation')
    else await noteOwing(app.db, options.worker_id, false)
    // Throws where the database is away: a process that cannot say what it owes does not start.
    await guard.#tellOthers()
    // The debt of a process of this disk that ended is this one's now.
    if (known?.owes) await forgiveWorker(app.db, known.owes)
    if (!guard.#owing) await guard.#keep()
    return guard
  }

  /** What every crossing requires; undefined while nothing may cross. */
  instance(): CrossingInstance | undefined {
    if (this.#owing) return undefined // guard: owing worker crosses nothing
    const { restore_counter, generation } = this.#seen
    return { worker_id: this.#options.worker_id, restore_counter, generation }
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
    else if (this.#owing) await this.#putBack()
    else await this.#keep()
  }

  /** A count of writes was lower than what was seen committed. */
  async goneBack(): Promise<void> {
    if (!this.#owing) await this.#owe('behind')
    // What is being put back now may not be all.
    else this.#untold ??= 'behind' // guard: noticed during a put back
  }

  /** Remembered here and on the disk first: neither a database that is away nor a crash makes it forgotten. */
  async #owe(why: keyof typeof sentences): Promise<void> {
    const { log } = this.#app
    log.error({ why, instance_id: this.#seen.id }, sentences[why])
    this.#owing = true // guard: owing before the database is asked
    if (this.#untold !== 'older') this.#untold = why // guard: an older copy stays one
    await this.#keep()
    await this.#putBack().catch((err) => {
      log.error({ err }, 'the journals could not be put back; it is tried again with the next heartbeat')
    })
  }

  /** Until this has committed, others may still cross. */
  async #tellOthers(): Promise<void> {
    const { db } = this.#app
    const why = this.#untold
    if (why === null) return
    await noteOwing(db, this.#options.worker_id, true)
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
    const { directory, worker_id, replay } = this.#options
    await this.#tellOthers()
    const { intents, damaged } = await readIntents(directory)
    let forgotten = 0
    for (const intent of intents) {
      if (!(await db.transaction((tx) => putBack(tx, operations, intent)))) continue
      // At once: should this try fail, the next one finds nothing forgotten.
      if (forgotten++ === 0) await this.#switchOff('older') // guard: forgotten switches off at once
    }
    await replay()
    const level = forgotten + damaged > 0 ? 'error' : 'info'
    log[level]({ forgotten, damaged }, 'the journals of this disk were put back')
    // What the damaged lines would have told is not known, so a person has to say that sending may go on.
    if (damaged > 0) await this.#switchOff('older') // guard: damaged lines keep sending off
    // Something else was noticed meanwhile: the next heartbeat begins again.
    if (this.#untold !== null) return // guard: a put back that noticed more is not done
    await noteOwing(db, worker_id, false)
    this.#owing = false
    await this.#keep()
  }

  async #switchOff(why: keyof typeof sentences): Promise<void> {
    if ((await this.#app.settings.current()).dispatch) {
      this.#app.log.error({ why }, 'sending is switched off until `parley dispatch on`')
    }
    await setDispatch(this.#app, 'system', false)
  }

  async #keep(): Promise<void> {
    const { id, restore_counter, generation } = this.#seen
    const { worker_id, directory } = this.#options
    const owes = this.#owing ? worker_id : null // guard: a debt is kept on the disk
    const path = join(directory, fileName)
    // Other processes of this disk keep theirs at the same moment.
    const fresh = `${path}.${worker_id}.new`
    const text = JSON.stringify({ id, restore_counter, generation, owes })
    await writeFile(fresh, text, { mode: 0o600, flush: owes !== null })
    await rename(fresh, path)
  }
}

/** Undefined: the database is the one this disk knows, or somebody works on it right now. */
function whyAtStart(
  { config }: App,
  known: Seen | undefined,
  instance: InstanceState & { readonly fresh: boolean },
): 'older' | 'generation' | 'unknown' | undefined {
  if (known?.id === instance.id) {
    if (BigInt(instance.restore_counter) < BigInt(known.restore_counter)) return 'older' // guard: an older copy is noticed
    // guard: another generation is noticed
    return known.generation !== instance.generation ? 'generation' : undefined
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
