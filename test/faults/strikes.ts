/**
 * What hits a plant: processes are killed, paused and restarted as by a supervisor, PostgreSQL crashes, and other things go
 * wrong meanwhile (`disturbances.ts`). Every storm uses this.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Disturbance, disturb, disturbances } from './disturbances.ts'
import type { Member } from './member.ts'
import type { Patch } from './patch.ts'
import type { Plant } from './plant.ts'
import type { Random } from './random.ts'
import { countErrors, say } from './report.ts'

const pauseSeconds = { least: 16, most: 20 }
/** Of every twenty hits, one is on PostgreSQL and one is a pause longer than a lease. */
const crashShare = 0.05
const pauseShare = 0.03
/** The share of hits on a process that is still starting: it may be reading its predecessor's journal. */
const startingShare = 0.15
/** The share of hits that may hit the last process of its role. */
const lastShare = 0.1
/** The share of kills after which the dead process's leases expire at once. After the others they run out in time. */
const hastenShare = 0.8
/** The share of kills that come with another disturbance (`disturbances.ts`), each kind in turn. */
const disturbedShare = 0.35
const startAttemptsMax = 200

/**
 * Accounts change workers every few seconds here, and a session that closes waits eight seconds for its answers. The worker must
 * give up on a silent platform before that, or sessions would always end first and no timeout would ever occur.
 */
export const briefAnswer: Patch = {
  marker: 'limit: answer of the platform',
  replace: 'const answerMsMax = { text: 4_000, file: 20_000 }',
}

export class Strikes {
  /** How often each kind of hit happened. */
  readonly hits = { serve: 0, work: 0, sandbox: 0, starting: 0, postgres: 0, pause: 0, died: 0 }
  readonly disturbed: Record<Disturbance, number> = {
    freeze_postgres: 0,
    freeze_backend: 0,
    exhaust_connections: 0,
    terminate_backends: 0,
    flip_account: 0,
    flip_dispatch: 0,
  }
  /** The errors that ended processes have logged. */
  readonly errors: Record<string, number> = {}
  readonly #plant: Plant
  readonly #random: Random
  /** Restarts and pauses in the background. */
  readonly #pending = new Set<Promise<void>>()
  readonly #raising = new Set<Member>()
  #disturbing = false
  #disturbances = 0

  constructor(plant: Plant, random: Random) {
    this.#plant = plant
    this.#random = random
    for (const member of plant.members) this.#watch(member)
  }

  /** Makes this many hits, of every kind. Calls `struck` after each. */
  async rage(hits: number, struck: (hit: number) => void): Promise<void> {
    for (let n = 1; n <= hits; n++) {
      if (!this.#disturbing && this.#random.chance(disturbedShare)) this.#do(this.#disturb())
      await this.#strike()
      struck(n)
    }
  }

  /** Kills one worker, lets others take over at once, and restarts it. Kills none while half or fewer are running. */
  killWorker(): void {
    const { works } = this.#plant
    const up = works.filter((member) => member.url)
    if (up.length <= works.length / 2) return
    this.hits.work++
    this.#do(this.#kill(this.#random.pick(up), { leases: true, attempts: true }))
  }

  async #strike(): Promise<void> {
    const random = this.#random
    const what = random.weigh([
      ['crash', crashShare],
      ['pause', pauseShare],
      ['kill', 1 - crashShare - pauseShare],
    ])
    if (what === 'crash') {
      this.hits.postgres++
      await this.#plant.postgres.crash(random.pick(['SIGKILL', 'SIGQUIT']))
      await this.#plant.postgres.untilUp('plant')
      return
    }
    const early = what === 'kill' && random.chance(startingShare) ? this.#findStarting() : undefined
    const member = early ?? (await this.#findTarget())
    if (early) await sleep(random.between(0, 1_000))
    if (what === 'pause') {
      this.hits.pause++
      this.#do(this.#pause(member))
    } else {
      this.hits[early ? 'starting' : member.verb]++
      this.#do(this.#kill(member, { leases: random.chance(hastenShare), attempts: random.chance(0.2) }))
    }
    await sleep(random.between(0, 500))
  }

  /** One at a time, so that each shows its effect. */
  async #disturb(): Promise<void> {
    const what = disturbances[this.#disturbances++ % disturbances.length] ?? 'flip_account'
    this.#disturbing = true
    try {
      await disturb(this.#plant, this.#random.fork(this.#disturbances), what)
      this.disturbed[what]++
    } finally {
      this.#disturbing = false
    }
  }

  /** Picks a running process; mostly not the last of its role, so that the load continues. */
  async #findTarget(): Promise<Member> {
    const roles = [this.#plant.serves, this.#plant.works]
    const least = this.#random.chance(lastShare) ? 1 : 2
    if (this.#random.chance(0.5)) roles.reverse()
    // Three minutes: a limit for a hang. A busy machine takes half a minute to start a process.
    for (let waited = 0; waited < 3_600; waited++) {
      for (const members of roles) {
        const up = members.filter((member) => member.url && !member.paused)
        if (up.length >= Math.min(least, members.length)) return this.#random.pick(up)
      }
      await sleep(50)
    }
    throw new Error('No process has come up for three minutes.')
  }

  #findStarting(): Member | undefined {
    const starting = [...this.#raising].filter(({ alive }) => alive)
    return starting.length > 0 ? this.#random.pick(starting) : undefined
  }

  /** `leases`, `attempts`: whether those of the dead process expire at once. */
  async #kill(member: Member, { leases, attempts }: { leases: boolean; attempts: boolean }): Promise<void> {
    if (member.alive) await member.kill()
    // Otherwise most accounts would be idle until a lease runs out, and there would be nothing in progress to hit.
    if (leases) await this.#plant.expireLeases({ attempts }).catch(() => {})
    await this.raise(member)
  }

  async #pause(member: Member): Promise<void> {
    member.pause()
    await sleep(this.#random.between(pauseSeconds.least, pauseSeconds.most) * 1000)
    if (member.alive) member.resume()
  }

  /** Like a supervisor: tries until it runs. It may find no database, or be killed again. */
  async raise(member: Member): Promise<void> {
    if (this.#raising.has(member) || member.url) return
    this.#raising.add(member)
    try {
      for (let attempt = 1; !member.url; attempt++) {
        if (attempt > startAttemptsMax) throw new Error(`${member.name} does not start: ${member.output()}`)
        await (member.alive ? member.ready() : member.start()).catch(() => sleep(100))
      }
      this.#watch(member)
    } finally {
      this.#raising.delete(member)
    }
  }

  /** A process that ends by itself is a finding, and is still restarted. */
  #watch(member: Member): void {
    const { name } = member
    void member.ended().then(({ code, stdout, stderr }) => {
      countErrors(this.errors, stdout + stderr)
      if (code === null) return
      this.hits.died++
      say(`${name} ended by itself with ${code}: ${(stdout + stderr).slice(-2_000)}`)
      this.#do(this.raise(member))
    })
  }

  #do(work: Promise<void>): void {
    const done = work.finally(() => this.#pending.delete(done))
    this.#pending.add(done)
    done.catch(() => {})
  }

  /** Stops hitting, and waits until every process runs. */
  async calm(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending)
    await this.#plant.postgres.untilUp('plant')
    await Promise.all(this.#plant.members.map((member) => this.raise(member)))
  }

  /** The errors of all processes, including those still running. */
  listErrors(): Record<string, number> {
    const all = { ...this.errors }
    for (const member of this.#plant.members) countErrors(all, member.output())
    return all
  }
}
