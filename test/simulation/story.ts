/**
 * A story that a seed decides, one step at a time: workers pick, cross, submit and record; people, the platform and operators
 * act; clocks move; workers crash. After every step one statement checks everything. At every crash and at the end, when every
 * recipient must be final, all promises are checked against the whole story.
 */
import { loops as campaignLoops } from '../../src/capabilities/campaigns/running/loops.ts'
import type { Loop } from '../../src/loop.ts'
import { makeRandom, type Random } from '../faults/random.ts'
import type { Cluster } from '../harness/cluster.ts'
import { Acts } from './acts.ts'
import { listUndecided } from './hands.ts'
import { listOpen } from './judge.ts'
import type { LostAnswers } from './parked.ts'
import { openPlace, type Place } from './place.ts'
import type { Waiting } from './schedule.ts'
import { type Disk, SimWorker, type WorkerPlace } from './sim-worker.ts'
import { Broken, Watch } from './watch.ts'

export interface StoryReport {
  readonly seed: number
  readonly steps: number
  readonly sent: number
  /** Every step and the state after it: byte for byte the same for the same seed. */
  readonly trace: readonly string[]
  /** The first broken promise, and its step. */
  readonly broken: string | undefined
  /** How often the story reached each state. */
  readonly reached: Readonly<Record<string, number>>
  readonly log: readonly string[]
}

const disturbedSteps = 200
const roundsMax = 400

export async function runStory(cluster: Cluster, seed: number): Promise<StoryReport> {
  const random = makeRandom(seed)
  const place = await openPlace(cluster, seed, random)
  const story = new Story(place, random)
  try {
    return { seed, ...(await story.run()), log: place.log }
  } finally {
    await place.close()
  }
}

class Story {
  readonly #place: Place
  readonly #random: Random
  readonly #acts: Acts
  readonly #workerPlace: WorkerPlace
  readonly #watch: Watch
  readonly #lost: LostAnswers = new Map()
  /** Disks without a worker. */
  readonly #disks: Disk[] = []
  #workers: SimWorker[] = []
  #wanted = 2
  /** Acts by hand that are still to come when everything else is let go. */
  #byHand = 0
  #started = 0
  /** The step after which an older copy is made, to which the database goes back later; undefined: never. */
  readonly #copyAfter: number | undefined

  constructor(place: Place, random: Random) {
    this.#place = place
    this.#random = random
    // Half of the stories that erase people.
    const goesBack = place.erased && random.fork('older copy').chance(0.5)
    this.#copyAfter = goesBack ? random.fork('when').whole(disturbedSteps - 50) : undefined
    this.#watch = new Watch(place, () => this.#workers)
    this.#acts = new Acts(place, random.fork('acts'), (what) => this.#watch.note(what))
    this.#workerPlace = {
      base: place.app,
      schedule: place.schedule,
      world: place.sandbox.world,
      hands: place.hands,
      gaps: place.gaps,
      lost: this.#lost,
      newId: place.newId,
      witness: this.#watch.witness,
    }
  }

  async run(): Promise<Omit<StoryReport, 'seed' | 'log'>> {
    let broken: string | undefined
    try {
      await this.#begin()
      for (let n = 0; n < disturbedSteps; n++) {
        await this.#disturbedStep()
        if (n === this.#copyAfter) await this.#copy()
      }
      if (this.#copyAfter !== undefined) await this.#goBack()
      await this.#end()
    } catch (error) {
      if (!(error instanceof Broken)) throw error
      broken = error.message
    }
    const reached = await this.#watch.reached()
    for (const worker of this.#workers) await worker.crash(() => false)
    const sent = this.#place.sandbox.world.state.journal.length
    const { steps, trace } = this.#watch
    return { steps, sent, trace, broken, reached }
  }

  async #begin(): Promise<void> {
    this.#wanted = 2 + this.#random.whole(2)
    await this.#acts.makeAccounts()
    for (let n = 0; n < this.#wanted; n++) await this.#start()
    await this.#calmly('accounts are ready', () => this.#acts.areReady())
    await this.#watch.step('people write', () => this.#acts.makePeople())
    await this.#calmly('they are heard', async () => this.#place.schedule.waiting.length === 0)
    await this.#watch.step('campaigns', () => this.#acts.makeCampaigns())
  }

  async #disturbedStep(): Promise<void> {
    const random = this.#random
    const { waiting } = this.#place.schedule
    const middle = this.#workers.filter(({ name }) => waiting.some((one) => isMiddle(one, name)))
    const what = random.weigh([
      ['go', waiting.length > 0 ? 14 : 0],
      ['loop', this.#workers.length > 0 ? 6 : 0],
      ['real', 1.6],
      ['domain', waiting.length > 0 ? 0.8 : 6],
      ['act', 1.6],
      ['crash', this.#workers.length > 0 ? 0.15 : 0],
      ['crash in the middle', middle.length > 0 ? 0.8 : 0],
      ['start', this.#workers.length < this.#wanted ? 1 : 0],
      ['lose', 0.25],
      ['disk', 0.1],
    ] as const)
    if (what === 'go') return this.#go(this.#choose(waiting))
    if (what === 'loop') return this.#loop(random.pick(this.#workers))
    if (what === 'real') return this.#pass()
    if (what === 'domain') return this.#advance()
    if (what === 'act') return this.#watch.step('act', () => this.#acts.one())
    if (what === 'crash') return this.#crash(random.pick(this.#workers))
    if (what === 'crash in the middle') return this.#crash(random.pick(middle))
    if (what === 'start') return this.#start()
    return this.#trouble(what)
  }

  /** Every worker is equally likely; of its parked calls, the oldest is chosen every second time. */
  #choose(waiting: readonly Waiting[]): Waiting {
    const owner = this.#random.pick([...new Set(waiting.map((one) => one.owner))])
    const own = waiting.filter((one) => one.owner === owner)
    const [oldest] = own
    return oldest && this.#random.chance(0.5) ? oldest : this.#random.pick(own)
  }

  #go(one: Waiting): Promise<void> {
    if (one.kind === 'answer' && one.what.startsWith('chats ') && this.#place.erased?.any)
      this.#watch.reach('dialogs after an erasure')
    return this.#watch.step(`${one.owner} ${one.kind} ${one.what}`, () => this.#place.schedule.choose(one))
  }

  #loop(worker: SimWorker): Promise<void> {
    const weights: Record<string, number> = {
      dispatch: 10,
      ledger: 2.5,
      accounts: 2.5,
      campaigns: 2,
      sweep: 1.5,
      heartbeat: 1.5,
      observe: 1,
      journals: 1,
      erasures: this.#place.erased ? 2 : 0.1,
    }
    const loop = this.#random.weigh(worker.loops.map((one) => [one, weights[one.name] ?? 0.1] as const))
    return this.#takeStep(worker, loop, this.#random.chance(loop.name === 'dispatch' ? 0.2 : 0.75))
  }

  async #takeStep(worker: SimWorker, loop: Loop, together: boolean): Promise<void> {
    const losing = this.#lost.has(worker.name)
    this.#watch.together = together
    await this.#watch.step(`${worker.name} loop ${loop.name}${together ? ' together' : ''}`, () =>
      worker.step(loop, together),
    )
    this.#watch.together = false
    if (loop.name === 'journals' && together && !losing) this.#watch.requireReplayed(worker)
  }

  /** Nothing crosses in these loops, so they are one step. */
  async #takeCalmSteps(worker: SimWorker): Promise<void> {
    const erases = this.#place.erased !== undefined
    const loops = worker.loops.filter(({ name }) => calmLoops.has(name) || (erases && name === 'erasures'))
    this.#watch.together = true
    await this.#watch.step(
      `${worker.name} ${loops.map(({ name }) => name).join(', ')} together`,
      async () => {
        for (const loop of loops) await worker.step(loop, true)
      },
    )
    this.#watch.together = false
    if (loops.some(({ name }) => name === 'journals')) this.#watch.requireReplayed(worker)
  }

  async #pass(ms = this.#random.weigh(passes)): Promise<void> {
    await this.#watch.step(`real time ${ms} ms`, () => this.#place.pass(ms))
  }

  async #advance(): Promise<void> {
    const how = this.#random.weigh([
      ['due', 6],
      ['minutes', 2],
      ['days', 0.5],
    ] as const)
    const minutes = how === 'days' ? 60 * 24 * this.#random.between(1, 3) : this.#random.between(0.1, 300)
    const due = how === 'due' ? await this.#nextDue() : undefined
    const to = due ?? new Date(this.#place.now.getTime() + Math.round(minutes * 60_000))
    await this.#watch.step(`domain time ${to.toISOString()}`, () => this.#place.advance(to))
  }

  async #nextDue(): Promise<Date | undefined> {
    const [loop] = campaignLoops()
    const { now, app, sandbox } = this.#place
    const dues = [await loop?.nextDueAt?.(app), sandbox.world.nextDueAt()].filter(
      (due) => due instanceof Date,
    )
    const later = dues.map((due) => due.getTime()).filter((due) => due > now.getTime())
    return later.length === 0 ? undefined : new Date(Math.min(...later))
  }

  async #start(): Promise<void> {
    const disk = this.#disks.shift() ?? this.#place.newDisk()
    const name = `worker ${++this.#started}`
    await this.#watch.step(`${name} starts on ${disk.name}`, async () => {
      const worker = await SimWorker.start(this.#workerPlace, name, disk)
      if (worker) this.#workers.push(worker)
    })
  }

  async #crash(worker: SimWorker): Promise<void> {
    const random = this.#random
    // What only a lost disk knew, nobody can put back into an older copy.
    const keeps = random.chance(0.7) || this.#place.isCopied
    this.#watch.noteCrash(worker)
    await this.#watch.step(
      `${worker.name} crashes, ${worker.disk.name} ${keeps ? 'stays' : 'is lost'}`,
      async () => {
        await worker.crash(() => random.chance(0.5))
        this.#workers = this.#workers.filter((one) => one !== worker)
        if (keeps) this.#disks.push(worker.disk)
        else await worker.loseDisk()
      },
    )
    await this.#watch.judge()
  }

  async #copy(): Promise<void> {
    await this.#watch.step('the database is copied', () => this.#place.copy())
  }

  /** As an operator would: everything is stopped, the copy put back, a worker started on each disk, and then sending allowed. */
  async #goBack(): Promise<void> {
    this.#lost.clear()
    for (const worker of this.#workers) worker.fullDisk = false
    // One disk at least has seen the counter rise since: others learn from its worker that the database is an older copy.
    await this.#start()
    const knowing = this.#workers.at(-1)
    const beat = knowing?.loops.find(({ name }) => name === 'heartbeat')
    if (knowing && beat) await this.#takeStep(knowing, beat, true)
    const idle = this.#disks.splice(0)
    for (const worker of this.#workers.toReversed()) await this.#crash(worker)
    this.#disks.push(...idle)
    await this.#watch.goBack(() => this.#place.goBack())
    const forgotten = (await this.#place.erased?.countForgotten()) ?? 0
    while (this.#disks.length > 0) await this.#start()
    if (forgotten > 0) this.#watch.reach('erased again')
    await this.#calmly('the journals are replayed', () => this.#acts.areReplayed())
    this.#watch.reach('an older copy')
  }

  #trouble(what: 'lose' | 'disk'): Promise<void> {
    const random = this.#random
    const worker = this.#workers.length > 0 ? random.pick(this.#workers) : undefined
    const how = random.pick(['after', 'before'] as const)
    return this.#watch.step(`${worker?.name} ${what} ${how}`, async () => {
      if (worker && what === 'lose') this.#lost.set(worker.name, how)
      else if (worker) worker.fullDisk = !worker.fullDisk
    })
  }

  /** Removes every hold and fault: every recipient must become final. */
  async #end(): Promise<void> {
    await this.#watch.judge()
    this.#lost.clear()
    for (const worker of this.#workers) worker.fullDisk = false
    // A disk that does not know the database, while no worker lives, switches sending off.
    while (this.#workers.length < 2) await this.#start()
    await this.#watch.step('everything is let go', () => this.#acts.letGo())
    this.#byHand = this.#random.whole(4)
    await this.#untilOver()
    const { erased } = this.#place
    if (erased?.any) {
      await this.#calmly('every erasure is done', () => erased.isDone())
      await this.#watch.step('names of erased people are imported', () => this.#acts.importErased(erased))
      await this.#untilOver()
    }
    await this.#watch.judge(true)
  }

  /** While nobody can know who wrote a message to a person, the follow-ups to them wait until an operator closes the operation. */
  async #untilOver(): Promise<void> {
    await this.#calmly('every recipient is final, or waits for an operator', () => this.#isOver())
    while ((await listOpen(this.#place.db)) !== '') {
      await this.#watch.step('an operator closes what is unknown', () => this.#acts.closeUndecided())
      await this.#calmly('every recipient is final, or waits for an operator', () => this.#isOver())
    }
  }

  async #isOver(): Promise<boolean> {
    const { db, hands } = this.#place
    const undecided = await listUndecided(db, hands)
    return (await listOpen(db, new Set(undecided.map((one) => one.recipient_id)))) === ''
  }

  /** Runs parked calls in order until the condition holds. Time moves only when nothing else does. */
  async #calmly(what: string, isSo: () => Promise<boolean>): Promise<void> {
    const { schedule } = this.#place
    let idle = 0
    for (let round = 0; round < roundsMax; round++) {
      const before = this.#state()
      for (let one = schedule.waiting[0]; one; one = schedule.waiting[0]) await this.#go(one)
      const all = round === 0 || idle % 3 > 0
      for (const worker of this.#workers) {
        for (const loop of worker.loops) if (steady.has(loop.name)) await this.#takeStep(worker, loop, true)
        if (all) await this.#takeCalmSteps(worker)
      }
      for (let one = schedule.waiting[0]; one; one = schedule.waiting[0]) await this.#go(one)
      if (await isSo()) return
      idle = this.#state() === before ? idle + 1 : 0
      if (idle === 1 && this.#byHand > 0 && (await this.#acts.isAwaited()) && this.#random.chance(0.8)) {
        this.#byHand--
        await this.#watch.step('by hand', () => this.#acts.oneByHand())
      }
      if (idle % 3 === 1) await this.#advanceCalmly()
      else if (idle > 0) await this.#pass(idle % 3 === 2 ? 6_000 : 1_000)
    }
    this.#watch.break(`P7: not so after ${roundsMax} rounds: ${what}: ${await listOpen(this.#place.db)}`)
  }

  async #advanceCalmly(): Promise<void> {
    const to = await this.#nextDue()
    if (to) await this.#watch.step(`domain time ${to.toISOString()}`, () => this.#place.advance(to))
  }

  #state(): string {
    return `${this.#place.sandbox.world.state.journal.length} ${this.#watch.seen}`
  }
}

/** Whether the worker is in the middle of an attempt. */
function isMiddle({ owner, kind, what }: Waiting, worker: string): boolean {
  return owner === worker && (kind === 'journal' || what.startsWith('send'))
}

const passes = [
  [60, 4],
  [300, 3],
  [1_000, 2],
  [6_000, 1.5],
  [16_000, 0.4],
  [25_000, 0.4],
  [61_000, 0.3],
] as const

/** The loops that send. */
const steady = new Set(['dispatch', 'campaigns', 'ledger'])
/** The loops that matter when nothing else happens. */
const calmLoops = new Set(['heartbeat', 'accounts', 'sweep', 'observe', 'journals'])
