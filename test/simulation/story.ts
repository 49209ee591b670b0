/**
 * A story that a seed decides, one step at a time: workers pick, cross, submit and record; people, platform and operators
 * do what they do; clocks move; workers crash. After every step one statement looks at everything, and all promises are
 * held against the whole at every crash and at the end, when everybody must be final.
 */
import { loops as campaignLoops } from '../../src/capabilities/campaigns/loops.ts'
import type { Loop } from '../../src/loop.ts'
import { makeRandom, type Random } from '../faults/random.ts'
import type { Cluster } from '../harness/cluster.ts'
import { Acts } from './acts.ts'
import { type Flying, look, wrongCrossings, wrongIn, wrongSubmission } from './checks.ts'
import { judgeAll, listEndings, listOpen, readReached } from './judge.ts'
import type { LostAnswers } from './parked.ts'
import { openPlace, type Place } from './place.ts'
import type { Waiting } from './schedule.ts'
import { type Disk, SimWorker, type WorkerPlace } from './sim-worker.ts'

export interface Told {
  readonly seed: number
  readonly steps: number
  readonly sent: number
  /** Every step with what was there after it: byte for byte the same for the same seed. */
  readonly trace: readonly string[]
  /** The first promise that was broken, and in which step. */
  readonly broken: string | undefined
  /** How often each state was reached. */
  readonly reached: Readonly<Record<string, number>>
  readonly log: readonly string[]
}

class Broken extends Error {}

const disturbedSteps = 220
const roundsMax = 400

export async function tellStory(cluster: Cluster, seed: number): Promise<Told> {
  const random = makeRandom(seed)
  const place = await openPlace(cluster, seed, random)
  const story = new Story(place, random)
  try {
    return { seed, ...(await story.tell()), log: place.log }
  } finally {
    await place.close()
  }
}

class Story {
  readonly #place: Place
  readonly #random: Random
  readonly #acts: Acts
  readonly #workerPlace: WorkerPlace
  readonly #trace: string[] = []
  readonly #reached: Record<string, number> = {}
  readonly #lost: LostAnswers = new Map()
  /** Disks without a worker. */
  readonly #disks: Disk[] = []
  #workers: SimWorker[] = []
  #wanted = 2
  #started = 0
  #steps = 0
  #flying = new Map<string, Flying>()
  /** Sends that workers have begun in this step. */
  #called: string[] = []
  /** Who has heard how a send went. */
  readonly #answered = new Map<string, string>()
  /** The attempts whose end is in a journal, by disk. */
  readonly #concluded = new Map<string, Set<string>>()
  #together = false

  constructor(place: Place, random: Random) {
    this.#place = place
    this.#random = random
    this.#acts = new Acts(place, random.fork('acts'), (what) => this.#note(what))
    this.#workerPlace = {
      base: place.app,
      schedule: place.schedule,
      world: place.sandbox.world,
      lost: this.#lost,
      newId: place.newId,
      witness: {
        called: (random_id) => void this.#called.push(random_id),
        answered: (owner, random_id) => this.#hear(owner, random_id),
        concluded: (disk, token) =>
          void this.#concluded.set(disk, (this.#concluded.get(disk) ?? new Set()).add(token)),
      },
    }
  }

  #hear(owner: string, random_id: string): void {
    this.#answered.set(random_id, owner)
    const flies = [...this.#flying.values()].some((one) => one.random_id === random_id)
    if (!flies && !this.#together) this.#reach('a late answer')
  }

  async tell(): Promise<Omit<Told, 'seed' | 'log'>> {
    let broken: string | undefined
    try {
      await this.#begin()
      for (let n = 0; n < disturbedSteps; n++) await this.#disturbedStep()
      await this.#end()
    } catch (error) {
      if (!(error instanceof Broken)) throw error
      broken = error.message
    }
    const reached = {
      ...this.#reached,
      ...(await readReached(this.#place.db)),
      ...reachedIn(this.#place.log),
    }
    for (const worker of this.#workers) await worker.crash(() => false)
    const sent = this.#place.sandbox.world.state.journal.length
    return { steps: this.#steps, sent, trace: this.#trace, broken, reached }
  }

  async #begin(): Promise<void> {
    this.#wanted = 2 + this.#random.whole(2)
    await this.#acts.makeAccounts()
    for (let n = 0; n < this.#wanted; n++) await this.#start()
    await this.#calmly('accounts are ready', () => this.#acts.areReady())
    await this.#step('people write', () => this.#acts.makePeople())
    await this.#calmly('they are heard', async () => this.#place.schedule.waiting.length === 0)
    await this.#step('campaigns', () => this.#acts.makeCampaigns())
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
    if (what === 'act') return this.#step('act', () => this.#acts.one())
    if (what === 'crash') return this.#crash(random.pick(this.#workers))
    if (what === 'crash in the middle') return this.#crash(random.pick(middle))
    if (what === 'start') return this.#start()
    return this.#trouble(what)
  }

  /** One worker is as likely as another; of what it waits for, the oldest every second time. */
  #choose(waiting: readonly Waiting[]): Waiting {
    const owner = this.#random.pick([...new Set(waiting.map((one) => one.owner))])
    const own = waiting.filter((one) => one.owner === owner)
    const [oldest] = own
    return oldest && this.#random.chance(0.5) ? oldest : this.#random.pick(own)
  }

  #go(one: Waiting): Promise<void> {
    return this.#step(`${one.owner} ${one.kind} ${one.what}`, () => this.#place.schedule.choose(one))
  }

  #loop(worker: SimWorker): Promise<void> {
    const weights: Record<string, number> = {
      dispatch: 10,
      accounts: 2.5,
      campaigns: 2,
      sweep: 1.5,
      heartbeat: 1.5,
      observe: 1,
      journals: 1,
    }
    const loop = this.#random.weigh(worker.loops.map((one) => [one, weights[one.name] ?? 0.1] as const))
    return this.#takeStep(worker, loop, this.#random.chance(loop.name === 'dispatch' ? 0.2 : 0.75))
  }

  async #takeStep(worker: SimWorker, loop: Loop, together: boolean): Promise<void> {
    const losing = this.#lost.has(worker.name)
    this.#together = together
    await this.#step(`${worker.name} loop ${loop.name}${together ? ' together' : ''}`, () =>
      worker.step(loop, together),
    )
    this.#together = false
    if (loop.name === 'journals' && together && !losing) this.#requireReplayed(worker)
  }

  /** P2: what a journal tells is in the ledger once it was replayed, whoever wrote it. */
  #requireReplayed({ disk }: SimWorker): void {
    const alive = new Set(this.#workers.map(({ name }) => name))
    for (const { token, random_id } of this.#flying.values()) {
      const writer = this.#answered.get(random_id)
      if (writer !== undefined && alive.has(writer)) continue
      if (this.#concluded.get(disk.name)?.has(token)) this.#break('P2: a replayed outcome is not recorded')
    }
  }

  async #pass(ms = this.#random.weigh(passes)): Promise<void> {
    await this.#step(`real time ${ms} ms`, () => this.#place.pass(ms))
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
    await this.#step(`domain time ${to.toISOString()}`, () => this.#place.advance(to))
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
    await this.#step(`${name} starts on ${disk.name}`, async () => {
      const worker = await SimWorker.start(this.#workerPlace, name, disk)
      if (worker) this.#workers.push(worker)
    })
  }

  async #crash(worker: SimWorker): Promise<void> {
    const random = this.#random
    const keeps = random.chance(0.7)
    this.#noteCrash(worker)
    await this.#step(
      `${worker.name} crashes, ${worker.disk.name} ${keeps ? 'stays' : 'is lost'}`,
      async () => {
        await worker.crash(() => random.chance(0.5))
        this.#workers = this.#workers.filter((one) => one !== worker)
        if (keeps) this.#disks.push(worker.disk)
        else await worker.loseDisk()
      },
    )
    await this.#judge()
  }

  /** In the middle of what. */
  #noteCrash({ name }: SimWorker): void {
    const own = this.#place.schedule.waiting.filter(({ owner }) => owner === name)
    const has = (kind: string, what: string) =>
      own.some((one) => one.kind === kind && one.what.startsWith(what))
    if (has('journal', 'intent')) this.#reach('crash between crossing and journal')
    if (has('request', 'send')) this.#reach('crash between journal and call')
    if (has('answer', 'send')) this.#reach('crash with the answer unheard')
    if (has('journal', 'outcome')) this.#reach('crash before the outcome is in the journal')
  }

  #trouble(what: 'lose' | 'disk'): Promise<void> {
    const random = this.#random
    const worker = this.#workers.length > 0 ? random.pick(this.#workers) : undefined
    const how = random.pick(['after', 'before'] as const)
    return this.#step(`${worker?.name} ${what} ${how}`, async () => {
      if (worker && what === 'lose') this.#lost.set(worker.name, how)
      else if (worker) worker.fullDisk = !worker.fullDisk
    })
  }

  /** Nothing holds any more and nothing goes wrong: everybody comes to an end. */
  async #end(): Promise<void> {
    await this.#judge()
    this.#lost.clear()
    for (const worker of this.#workers) worker.fullDisk = false
    await this.#step('everything is let go', () => this.#acts.letGo())
    while (this.#workers.length < 2) await this.#start()
    await this.#calmly('everybody is final', async () => (await listOpen(this.#place.db)) === '')
    await this.#judge(true)
  }

  /** Whatever waits goes on in its order, until it is so. Time moves only when nothing else does. */
  async #calmly(what: string, isSo: () => Promise<boolean>): Promise<void> {
    const { schedule } = this.#place
    let idle = 0
    for (let round = 0; round < roundsMax; round++) {
      const before = this.#state()
      for (let one = schedule.waiting[0]; one; one = schedule.waiting[0]) await this.#go(one)
      const all = idle > 0 || round === 0
      for (const worker of this.#workers) {
        for (const loop of worker.loops) {
          if (loop.name === 'dispatch' || loop.name === 'campaigns' || (all && calmLoops.has(loop.name))) {
            await this.#takeStep(worker, loop, true)
          }
        }
      }
      for (let one = schedule.waiting[0]; one; one = schedule.waiting[0]) await this.#go(one)
      if (await isSo()) return
      idle = this.#state() === before ? idle + 1 : 0
      if (idle % 3 === 1) await this.#advanceCalmly()
      else if (idle > 0) await this.#pass(idle % 3 === 2 ? 6_000 : 1_000)
    }
    this.#break(`P7: not so after ${roundsMax} rounds: ${what}: ${await listOpen(this.#place.db)}`)
  }

  async #advanceCalmly(): Promise<void> {
    const to = await this.#nextDue()
    if (to) await this.#step(`domain time ${to.toISOString()}`, () => this.#place.advance(to))
  }

  #state(): string {
    return `${this.#place.sandbox.world.state.journal.length} ${this.#seen}`
  }

  #seen = ''

  async #step(what: string, work: () => Promise<unknown>): Promise<void> {
    this.#note(`${++this.#steps} ${what}`)
    this.#called = []
    await work()
    const { db } = this.#place
    const seen = await look(db)
    this.#seen = seen.statuses ?? ''
    this.#note(`  ${this.#seen}; ${this.#place.sandbox.world.state.journal.length} accepted`)
    const flying = new Map(seen.flying.map((one) => [one.id, one]))
    const crossed = seen.flying.filter(({ id, no }) => this.#flying.get(id)?.no !== no)
    const left = [...this.#flying.keys()].filter((id) => !flying.has(id))
    if (left.length > 0) for (const { what } of await listEndings(db, left)) this.#reach(what)
    this.#flying = flying
    const wrong = [
      ...wrongIn(seen),
      ...(await wrongCrossings(
        db,
        crossed.map(({ id }) => id),
      )),
      ...this.#unrecorded(),
    ]
    if (!this.#together) for (const one of this.#called) wrong.push(...(await wrongSubmission(db, one)))
    if (wrong[0] !== undefined) this.#break(wrong[0])
  }

  /** P2: once its worker has heard the answer and has nothing left to do, the ledger knows it. */
  *#unrecorded(): Generator<string> {
    const { schedule } = this.#place
    for (const { random_id } of this.#flying.values()) {
      const owner = this.#answered.get(random_id)
      if (owner === undefined || !this.#workers.some(({ name }) => name === owner)) continue
      const busy = schedule.waiting.some((one) => one.owner === owner && one.kind !== 'updates')
      if (!busy && !schedule.isSleeping(owner)) yield 'P2: an answer that was heard is not recorded'
    }
  }

  async #judge(over = false): Promise<void> {
    const { wrong, reasons } = await judgeAll(this.#place, { in_flight: [...this.#flying.keys()], over })
    for (const reason of reasons) this.#reach(`held by ${reason}`)
    if (wrong[0] !== undefined) this.#break(wrong[0])
  }

  #break(what: string): never {
    this.#note(`  BROKEN ${what}`)
    throw new Broken(`in step ${this.#steps}: ${what}`)
  }

  #reach(what: string): void {
    this.#reached[what] = (this.#reached[what] ?? 0) + 1
  }

  #note(line: string): void {
    this.#trace.push(line)
  }
}

/** States that leave no row behind, by what the workers say in their log. */
function reachedIn(log: readonly string[]): Record<string, number> {
  const count = (text: string) => log.filter((line) => line.includes(text)).length
  return {
    'told by a journal': count('a journal told how an operation ended'),
    'a lost COMMIT': count('the boundary gave no answer for a message'),
  }
}

/** An attempt of this worker is under way. */
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

/** Those that matter when nothing else happens. */
const calmLoops = new Set(['heartbeat', 'accounts', 'sweep', 'observe', 'journals'])
