/** One `parley` process of the plant by its role and number: killed, paused and started again under the same name. */
import { type Entry, listJournals, readJournal } from '../../src/ledger/journal.ts'
import { type Exit, type Parley, spawnParley } from '../harness/process.ts'
import { type Patch, patchEnv, patchedLine } from './patch.ts'

const readTriesMax = 100

export interface MemberOptions {
  readonly verb: 'serve' | 'work' | 'sandbox'
  readonly number: number
  /** Its own, and kept over restarts: what a process leaves there its successor finds. */
  readonly data_dir: string
  /** Asked at each start; `name` tells the processes of one member apart. */
  readonly env: (name: string) => Readonly<Record<string, string>>
  /** Of every start, before those of one. */
  readonly patches?: readonly Patch[] | undefined
}

export class Member {
  readonly verb: MemberOptions['verb']
  readonly number: number
  readonly data_dir: string
  readonly #options: MemberOptions
  #process: Parley | undefined
  #starts = 0
  #url: string | undefined
  #paused = false

  constructor(options: MemberOptions) {
    this.verb = options.verb
    this.number = options.number
    this.data_dir = options.data_dir
    this.#options = options
  }

  /** As `work-0.3`: the third process of the first worker. The database knows it by this name. */
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

  /** What it has written so far. */
  output(): string {
    return `${this.#process?.stdout() ?? ''}${this.#process?.stderr() ?? ''}`
  }

  /** Starts the process and does not wait: for what dies before it is ready. */
  launch(patches: readonly Patch[] = []): void {
    if (this.#process) throw new Error(`${this.name} runs already.`)
    this.#starts++
    const { verb, data_dir, env, patches: always = [] } = this.#options
    const args = [verb, '--port', '0', '--data-dir', data_dir]
    const process = spawnParley(args, { ...env(this.name), ...patchEnv([...always, ...patches]) })
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

  /** Resolves when it is ready. A patch that was not applied by then is an error. */
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

  /** Resolves when the process has ended, by whatever. */
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

  /** Until `resume` it does nothing, and everybody who waits for it waits. */
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

/** All journals of a disk. Its process may rename one between the list and the read: then everything is read again. */
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
