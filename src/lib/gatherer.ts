/**
 * Batches work: while one batch runs, the next one gathers. A lone item is a batch of one and does not wait for others.
 */

interface GathererOptions<T, R> {
  /** Returns one result for each item, in their order. */
  readonly work: (items: readonly T[]) => Promise<readonly R[]>
  readonly most: number
}

interface WaitingItem<T, R> {
  readonly item: T
  resolve(result: R): void
  reject(error: unknown): void
}

export class Gatherer<T, R> {
  readonly #options: GathererOptions<T, R>
  #waiting: WaitingItem<T, R>[] = []
  #flushing: Promise<void> | undefined

  constructor(options: GathererOptions<T, R>) {
    this.#options = options
  }

  add(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      this.#flushing ??= this.#flushAll()
    })
  }

  async #flushAll(): Promise<void> {
    // Items added in the same turn go together.
    await null
    while (this.#waiting.length > 0) await this.#flush()
    // No await since the last check of the queue, so an item that is added later starts a new round.
    this.#flushing = undefined
  }

  async #flush(): Promise<void> {
    const batch = this.#waiting.splice(0, this.#options.most)
    try {
      const results = await this.#options.work(batch.map(({ item }) => item))
      for (const [at, { resolve, reject }] of batch.entries()) {
        const result = results[at]
        if (result === undefined) reject(new Error('A batch gave no answer for one of its items.'))
        else resolve(result)
      }
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
}
