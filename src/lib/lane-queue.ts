/**
 * A queue for costly work: a few jobs run, some wait, and callers beyond that are refused. Fair in two ways. Each lane
 * has its own places and its turn, so a full lane delays another by at most one job. Within a lane, one source takes all
 * places only while no other source wants one.
 */

interface Bounds<Lane extends string> {
  readonly lanes: readonly Lane[]
  readonly atOnceMax: number
  /** Per lane. */
  readonly waitingMax: number
  /** The error for a caller that gets no place. */
  readonly refuse: () => Error
}

/** For whom work is done. */
export interface Turn<Lane extends string> {
  readonly lane: Lane
  readonly source: string
}

interface Waiter<Lane extends string> extends Turn<Lane> {
  start(): void
  giveUp(): void
}

export class LaneQueue<Lane extends string> {
  readonly #bounds: Bounds<Lane>
  readonly #waiting: Waiter<Lane>[] = []
  readonly #running: Turn<Lane>[] = []
  /** The lane that is served last when the next job starts. */
  #served: Lane | undefined

  constructor(bounds: Bounds<Lane>) {
    this.#bounds = bounds
  }

  async run<T>(turn: Turn<Lane>, work: () => Promise<T>): Promise<T> {
    if (this.#running.length < this.#bounds.atOnceMax) this.#running.push(turn)
    else await this.#wait(turn)
    try {
      return await work()
    } finally {
      this.#running.splice(this.#running.indexOf(turn), 1)
      this.#startNext()
    }
  }

  /** Throws where `run` would refuse. */
  requirePlace(turn: Turn<Lane>): void {
    if (this.#running.length < this.#bounds.atOnceMax || !this.#isFull(turn)) return
    if (!this.#findDisplaced(turn)) throw this.#bounds.refuse()
  }

  #wait(turn: Turn<Lane>): Promise<void> {
    const displaced = this.#isFull(turn) ? this.#findDisplaced(turn) : undefined
    if (this.#isFull(turn) && !displaced) throw this.#bounds.refuse()
    if (displaced) {
      this.#waiting.splice(this.#waiting.indexOf(displaced), 1)
      displaced.giveUp()
    }
    return new Promise((resolve, reject) => {
      const start = () => {
        // Takes the place at once, so that no caller in between gets it.
        this.#running.push(turn)
        resolve()
      }
      this.#waiting.push({ ...turn, start, giveUp: () => reject(this.#bounds.refuse()) })
    })
  }

  #isFull({ lane }: Turn<Lane>): boolean {
    return this.#waiting.filter((waiter) => waiter.lane === lane).length >= this.#bounds.waitingMax
  }

  /** The newest waiter of the source that has most, if that is more than this source would have. */
  #findDisplaced(turn: Turn<Lane>): Waiter<Lane> | undefined {
    const counts = new Map<string, number>()
    for (const { lane, source } of [...this.#running, ...this.#waiting]) {
      if (lane === turn.lane) counts.set(source, (counts.get(source) ?? 0) + 1)
    }
    const own = (counts.get(turn.source) ?? 0) + 1
    let found: { readonly waiter: Waiter<Lane>; readonly count: number } | undefined
    for (const waiter of this.#waiting) {
      const count = counts.get(waiter.source) ?? 0
      if (waiter.lane === turn.lane && count > own && count >= (found?.count ?? 0)) found = { waiter, count }
    }
    return found?.waiter // guard: no source takes all places
  }

  /** The lanes take turns; within a lane, sources without a running job come first. */
  #startNext(): void {
    const { lanes } = this.#bounds
    const after = this.#served === undefined ? 0 : lanes.indexOf(this.#served) + 1
    const inOrder = [...lanes.slice(after), ...lanes.slice(0, after)]
    for (const lane of inOrder) {
      const inLane = this.#waiting.filter((waiter) => waiter.lane === lane)
      const busy = new Set(this.#running.map(({ source }) => source))
      const next = inLane.find(({ source }) => !busy.has(source)) ?? inLane[0]
      if (!next) continue
      this.#waiting.splice(this.#waiting.indexOf(next), 1)
      this.#served = lane
      next.start()
      return
    }
  }
}
