/** One `parley` process of the plant, by role and number: it can be killed, paused and restarted under the same name. */
import { join } from 'node:path'
import { type Entry, listJournals, readJournal } from '../../src/ledger/journal.ts'
import { type Exit, type Parley, spawnParley } from '../harness/process.ts'
import { dataCentreMain } from '../platform/data-centre-process.ts'
import { type Patch, patchEnv, patchedLine } from './patch.ts'

const readTriesMax = 100

interface MemberOptions {
  readonly verb: 'serve' | 'work' | 'sandbox'
  /** A sandbox with Telegram's data centres in front of it. */
  readonly isDataCentre?: boolean
  readonly number: number
  /** Its own directory, kept over restarts: a process finds what its predecessor left there. */
  readonly data_dir: string
  /** More arguments of its verb. */
  readonly args?: readonly string[] | undefined
  /** Called at each start; `name` distinguishes the processes of one member. */
  readonly env: (name: string) => Readonly<Record<string, string>>
  /** Applied at every start, before those of a single start. */
  readonly patches?: readonly Patch[] | undefined
  /** The checkout whose code it runs first; this one by default. */
  readonly checkout?: string | undefined
}

export class Member {
  readonly verb: MemberOptions['verb']
  readonly number: number
  readonly data_dir: string
  readonly #options: MemberOptions
  /** The checkout whose code its next start runs; undefined: this one. */
  checkout: string | undefined
  #process: Parley | undefined
  #starts = 0
  #url: string | undefined
  #paused = false

  constructor(options: MemberOptions) {
    this.verb = options.verb
    this.number = options.number
    this.data_dir = options.data_dir
    this.#options = options
    this.checkout = options.checkout
  }

  /** Such as `work-0.3`: the third process of the first worker. The database knows it by this name. */
  get name(): string {
    return `${this.verb}-${this.number}.${this.#starts}`
  }

  /** Undefined until it is ready, and after it has ended. */
  get url(): string | undefined {
    return this.#url
  }

  get alive(): boolean {
    return this.#process !== undefined
  }

  get paused(): boolean {
    return this.#paused
  }

  get pid(): number {
    return this.#running.pid
  }

  /** What it has printed so far. */
  output(): string {
    return `${this.#process?.stdout() ?? ''}${this.#process?.stderr() ?? ''}`
  }

  /** Starts the process without waiting: for one that dies before it is ready. */
  launch(patches: readonly Patch[] = []): void {
    if (this.#process) throw new Error(`${this.name} runs already.`)
    this.#starts++
    const { verb, data_dir, env, args: more = [], patches: always = [] } = this.#options
    const { isDataCentre = false } = this.#options
    const args = [isDataCentre ? 'data-centre' : verb, '--port', '0', '--data-dir', data_dir, ...more]
    const main = isDataCentre ? dataCentreMain : this.checkout && join(this.checkout, 'bin', 'main.js')
    const process = spawnParley(args, { ...env(this.name), ...patchEnv([...always, ...patches]) }, main)
    this.#process = process
    this.#paused = false
    void process.ended().then(() => {
      if (this.#process !== process) return
      this.#process = undefined
      this.#url = undefined
    })
  }

  async ready(): Promise<string> {
    const process = this.#running
    const url = await process.ready()
    if (this.#process === process) this.#url = url
    return url
  }

  /** Resolves when it is ready. Fails if a patch was not applied by then. */
  async start(patches: readonly Patch[] = []): Promise<void> {
    this.launch(patches)
    const process = this.#running
    await this.ready()
    for (const { marker } of [...(this.#options.patches ?? []), ...patches]) {
      if (!process.stderr().includes(patchedLine(marker))) {
        throw new Error(`The file with ${marker} is not loaded by ${this.name}: its patch does nothing.`)
      }
    }
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<Exit> {
    const process = this.#running
    if (this.#paused && signal !== 'SIGKILL') this.resume()
    process.signal(signal)
    return this.ended()
  }

  /** Resolves when the process has ended, for whatever reason. */
  async ended(): Promise<Exit> {
    const process = this.#running
    const exit = await process.ended()
    if (this.#process === process) {
      this.#process = undefined
      this.#url = undefined
    }
    return exit
  }

  async restart(patches: readonly Patch[] = []): Promise<void> {
    if (this.#process) await this.kill()
    await this.start(patches)
  }

  /** Stops the process until `resume`; all its clients wait. */
  pause(): void {
    this.#running.signal('SIGSTOP')
    this.#paused = true
  }

  resume(): void {
    this.#running.signal('SIGCONT')
    this.#paused = false
  }

  get #running(): Parley {
    if (!this.#process) throw new Error(`${this.name} does not run.`)
    return this.#process
  }
}

/** All journals of a disk. Its process may rename one between listing and reading: then this reads everything again. */
export async function readJournals(
  directory: string,
  list: typeof listJournals = listJournals,
): Promise<Entry[]> {
  for (let tries = 1; ; tries++) {
    try {
      const files = await list(directory)
      const texts = await Promise.all(files.map((file) => readJournal(directory, file)))
      return texts.flatMap(({ entries }) => entries)
    } catch (error) {
      if ((error as { code?: string }).code !== 'ENOENT' || tries === readTriesMax) throw error
    }
  }
}
