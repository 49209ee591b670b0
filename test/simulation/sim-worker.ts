/** A worker as an object: its loops are steps that the story chooses, and a crash drops it between any two of them. */
import { rm } from 'node:fs/promises'
import { Registry } from 'prom-client'
import { memoryLimits } from '../../src/access/limits.ts'
import type { App } from '../../src/app.ts'
import { loops as campaignLoops } from '../../src/capabilities/campaigns/running/loops.ts'
import { type Journal, openJournal } from '../../src/ledger/journal.ts'
import type { Loop } from '../../src/loop.ts'
import { sandboxPlatform } from '../../src/platform/sandbox/adapter.ts'
import type { World } from '../../src/platform/sandbox/world.ts'
import { assembleWorker, type Worker } from '../../src/worker/worker.ts'
import type { Hands } from './hands.ts'
import { type LostAnswers, ParkedLink, parkDatabase, type Witness } from './parked.ts'
import type { Schedule, Waiting } from './schedule.ts'

export interface WorkerPlace {
  readonly base: App
  readonly schedule: Schedule
  readonly world: World
  readonly hands: Hands
  readonly gaps: Set<string>
  readonly witness: Witness & {
    /** A worker's journal contains the end of this attempt. */
    concluded(worker: SimWorker, token: string): void
  }
  readonly lost: LostAnswers
  newId(): string
}

export interface Disk {
  readonly name: string
  readonly directory: string
}

export class SimWorker {
  readonly name: string
  readonly disk: Disk
  readonly #place: WorkerPlace
  readonly #app: App
  readonly #link: ParkedLink
  readonly #busy = new Set<string>()
  #worker: Worker | undefined
  #journal: Journal | undefined
  /** Its journal cannot be written. */
  fullDisk = false

  private constructor(place: WorkerPlace, name: string, disk: Disk) {
    const { base, schedule, world, witness, lost, hands, gaps } = place
    this.name = name
    this.disk = disk
    this.#place = place
    this.#link = new ParkedLink(world, { schedule, owner: name, witness, hands, gaps })
    const settings = () => schedule.call(name, 'settings', () => base.settings.refresh())
    this.#app = {
      ...base,
      db: parkDatabase(base.db, schedule, name, lost),
      sources: schedule.sourcesOf(name, { newId: place.newId, newToken: place.newId }),
      settings: { current: settings, refresh: settings },
      wake: { signal() {}, on: () => () => {}, mark() {}, onMarks: () => () => {}, close: async () => {} },
      limits: memoryLimits(() => schedule.now),
      metrics: new Registry(),
    }
  }

  /** Assembles it in one step; undefined if the database was down. */
  static async start(place: WorkerPlace, name: string, disk: Disk): Promise<SimWorker | undefined> {
    const made = new SimWorker(place, name, disk)
    await place.schedule.begin(() => made.#assemble(), true)
    return made.#worker ? made : undefined
  }

  async #assemble(): Promise<void> {
    const platforms = new Map([['sandbox', sandboxPlatform(this.#link)]])
    const parts = { platforms, directory: this.disk.directory, loops: [campaignLoops] }
    const journal: typeof openJournal = (...given) => this.#openJournal(...given)
    this.#worker = await assembleWorker(this.#app, { ...parts, journal }).catch((err) => {
      this.#place.base.log.error({ err }, 'a worker of the simulation did not start')
      return undefined
    })
  }

  async #openJournal(...given: Parameters<typeof openJournal>): Promise<Journal> {
    const journal = await openJournal(...given)
    const { schedule, witness } = this.#place
    this.#journal = journal
    return {
      ...journal,
      intend: async (entry) => {
        await schedule.park(this.name, 'journal', 'intent')
        if (this.fullDisk) throw new Error('There is no room on the disk.')
        await journal.intend(entry)
      },
      conclude: async (entry) => {
        await schedule.park(this.name, 'journal', `outcome ${entry.outcome.kind}`)
        await journal.conclude(entry)
        witness.concluded(this, entry.token)
      },
      isWritable: async () => !this.fullDisk,
      isFailing: () => this.fullDisk,
    }
  }

  /** The loops that can take a step now. */
  get loops(): readonly Loop[] {
    return (this.#worker?.loops ?? []).filter(({ name }) => !this.#busy.has(name))
  }

  /** Runs one step of a loop: as one step of the story, or each of its statements as its own. */
  async step(loop: Loop, together: boolean): Promise<void> {
    this.#busy.add(loop.name)
    const work = async () => {
      try {
        await loop.step(this.#app, new AbortController().signal)
      } catch (err) {
        this.#place.base.log.error({ err, loop: loop.name }, 'a step of the simulation failed')
      } finally {
        this.#busy.delete(loop.name)
      }
    }
    await this.#place.schedule.begin(work, together)
  }

  /** Ends it between two steps. Its requests may already have reached the platform: `written` decides. */
  async crash(written: (one: Waiting) => boolean): Promise<void> {
    const { schedule } = this.#place
    for (const one of schedule.waiting.filter(
      ({ owner, kind }) => owner === this.name && kind === 'request',
    )) {
      if (written(one)) await schedule.choose(one)
    }
    schedule.drop(this.name)
    this.#link.cut()
    await this.#journal?.close()
    await schedule.quiet()
  }

  /** Deletes its disk. */
  async loseDisk(): Promise<void> {
    await rm(this.disk.directory, { recursive: true, force: true })
  }
}
