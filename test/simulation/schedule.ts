/**
 * One thing at a time: whatever a worker awaits from the database, the platform and the clock is parked here until the story
 * chooses it. Nothing else happens before the consequences of that are parked here too. So the same choices give the same run.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Sources } from '../../src/app.ts'
import type { Random } from '../faults/random.ts'

/**
 * `execute`: a statement or a transaction has not reached the database. `deliver`: it is done there, and the worker has not
 * received the result. `request`, `answer`: the same for a call to the platform. `updates`: a batch in transit. `timer`: due.
 */
type Kind = 'execute' | 'deliver' | 'request' | 'answer' | 'updates' | 'lost' | 'timer' | 'journal'

export interface Waiting {
  readonly owner: string
  readonly kind: Kind
  readonly what: string
  go(): void
}

interface Timer {
  readonly owner: string
  readonly at: number
  /** The worker does nothing else until then. */
  readonly sleeps: boolean
  readonly done: () => void
}

interface Context {
  /** Everything in it is one step: its statements are not parked. */
  together: boolean
  /** Inside a transaction, which has its own connection. */
  readonly inside?: true
}

export class Schedule {
  /** Real time of the simulation, in milliseconds. */
  now = 0
  readonly #random: Random
  readonly #contexts = new AsyncLocalStorage<Context>()
  #waiting: Waiting[] = []
  #timers: Timer[] = []
  #statements: Promise<unknown> = Promise.resolve()
  #running = 0
  readonly #dead = new Set<string>()

  constructor(random: Random) {
    this.#random = random
  }

  /** What can be chosen next, in the order it was parked. */
  get waiting(): readonly Waiting[] {
    return this.#waiting
  }

  /** When the next timer is due. */
  get nextTimerAt(): number | undefined {
    return this.#timers.reduce<number | undefined>((least, { at }) => Math.min(least ?? at, at), undefined)
  }

  sourcesOf(owner: string, ids: Pick<Sources, 'newId' | 'newToken'>): Sources {
    const add = (ms: number, sleeps: boolean, done: () => void) =>
      this.#addTimer({ owner, at: this.now + ms, sleeps, done })
    return {
      ...ids,
      now: () => this.now,
      date: () => new Date(Date.UTC(2026, 10, 2) + this.now),
      random: () => this.#random(),
      sleep: (ms) => new Promise((resolve) => void add(ms, true, resolve)),
      timer: (ms, done) => add(ms, false, done),
    }
  }

  #addTimer(timer: Timer): () => void {
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((one) => one !== timer)
      this.#waiting = this.#waiting.filter((one) => (one as Waiting & { timer?: Timer }).timer !== timer)
    }
  }

  isSleeping(owner: string): boolean {
    return this.#timers.some((timer) => timer.owner === owner && timer.sleeps)
  }

  /** Moves time on; the timers due by then can be chosen. */
  pass(ms: number): void {
    this.now += ms
    const up = this.#timers.filter(({ at }) => at <= this.now).sort((one, other) => one.at - other.at)
    this.#timers = this.#timers.filter(({ at }) => at > this.now)
    for (const timer of up) {
      const { owner, done } = timer
      this.#waiting.push(Object.assign({ owner, kind: 'timer' as const, what: 'timer', go: done }, { timer }))
    }
  }

  /** Resolves when the story chooses it; never, if its owner is dead. */
  park(owner: string, kind: Kind, what: string): Promise<void> {
    if (this.#contexts.getStore()?.together) return Promise.resolve()
    return new Promise((go) => {
      if (!this.#dead.has(owner)) this.#waiting.push({ owner, kind, what, go })
    })
  }

  /** Database work: choosing it once executes it, choosing it again delivers the result. */
  async call<T>(owner: string, what: string, work: () => Promise<T>): Promise<T> {
    if (this.#contexts.getStore()?.inside) return work()
    await this.park(owner, 'execute', what)
    const result = await this.#oneByOne(work)
    await this.park(owner, 'deliver', what)
    if ('error' in result) throw result.error
    return result.value
  }

  async #oneByOne<T>(work: () => Promise<T>): Promise<{ value: T } | { error: unknown }> {
    this.#running++
    const done = this.#statements
      .then(() => this.#contexts.run({ together: true, inside: true }, work))
      .then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      )
    this.#statements = done
    try {
      return await done
    } finally {
      this.#running--
    }
  }

  /** Releases one parked call, and waits until everything that follows from it is parked again. */
  async choose(one: Waiting): Promise<void> {
    this.#waiting = this.#waiting.filter((other) => other !== one)
    one.go()
    await this.quiet()
  }

  /** Starts work as one step, or step by step. */
  async begin(work: () => Promise<unknown>, together: boolean): Promise<void> {
    const context = { together }
    this.#contexts.run(context, () => void work())
    await this.quiet()
    // What it started and what continues later is parked like everything else.
    context.together = false
  }

  /** A worker is gone: it gets none of its answers. */
  drop(owner: string): Waiting[] {
    this.#dead.add(owner)
    const dropped = this.#waiting.filter((one) => one.owner === owner)
    this.#waiting = this.#waiting.filter((one) => one.owner !== owner)
    this.#timers = this.#timers.filter((one) => one.owner !== owner)
    return dropped
  }

  /** Resolves when nothing moves by itself: no statement, no file, no scheduled turn of the event loop. */
  async quiet(): Promise<void> {
    for (let still = 0; still < 2; ) {
      if (this.#running > 0) await this.#statements
      await new Promise<void>((turn) => setImmediate(turn))
      still = this.#running > 0 || isBusy() ? 0 : still + 1
    }
  }
}

function isBusy(): boolean {
  return process
    .getActiveResourcesInfo()
    .some((name) => name.startsWith('FSReq') || name === 'CloseReq' || name === 'Immediate')
}
