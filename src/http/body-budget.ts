/**
 * Bounds how many bytes of request bodies a process holds, in all and for each source. At a limit the source with the most
 * gives way: the largest of its bodies that are still arriving is refused. A quarter of the process is a reserve for sources
 * that have little: bodies that are whole are not refused, and four sources could fill it with them.
 */

interface Bounds {
  /** Bytes for one source: a workspace, or a user or an address outside one. */
  readonly eachMax: number
  readonly allMax: number
}

/** The bytes of one request. They count from their arrival until its answer is finished. */
export interface HeldBody {
  /** Counts bytes that have arrived. May refuse this body or others. */
  take(bytes: number): void
  /** It is whole: from now on it is not refused. */
  arrived(): void
  release(): void
}

interface Holding {
  readonly source: string
  readonly refuse: () => void
  bytes: number
  arriving: boolean
}

export class BodyBudget {
  readonly #bounds: Bounds
  readonly #held = new Set<Holding>()
  readonly #bytesOf = new Map<string, number>()
  #bytes = 0

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  /** `refuse` is called at most once, while the body is still arriving. */
  open(source: string, refuse: () => void): HeldBody {
    const holding: Holding = { source, refuse, bytes: 0, arriving: true }
    this.#held.add(holding)
    return {
      take: (bytes) => {
        if (!this.#held.has(holding)) return
        this.#add(holding, bytes)
        this.#keepBounds(source)
      },
      arrived: () => {
        holding.arriving = false
      },
      release: () => this.#release(holding),
    }
  }

  #add(holding: Holding, bytes: number): void {
    holding.bytes += bytes
    this.#bytes += bytes
    const own = (this.#bytesOf.get(holding.source) ?? 0) + bytes
    if (own > 0) this.#bytesOf.set(holding.source, own)
    else this.#bytesOf.delete(holding.source)
  }

  #release(holding: Holding): void {
    if (this.#held.delete(holding)) this.#add(holding, -holding.bytes)
  }

  #keepBounds(source: string): void {
    const { eachMax, allMax } = this.#bounds
    const isOwnFull = () => (this.#bytesOf.get(source) ?? 0) > eachMax // guard: bytes of bodies of one source
    while (isOwnFull() && this.#refuseLargest(source));
    const isFull = () => this.#bytes > (allMax * 3) / 4 // guard: bytes of bodies of a process
    while (isFull() && this.#refuseMost());
  }

  #refuseMost(): boolean {
    const { eachMax, allMax } = this.#bounds
    const least = this.#bytes > allMax ? 0 : eachMax / 4 // guard: a reserve for sources with little
    const most = [...this.#bytesOf].filter(([, bytes]) => bytes > least)
    const sources = most.sort(([, one], [, other]) => other - one) // guard: the source with the most bytes gives way
    return sources.some(([source]) => this.#refuseLargest(source))
  }

  /** Returns false if all bodies of the source are whole. */
  #refuseLargest(source: string): boolean {
    let largest: Holding | undefined
    for (const holding of this.#held) {
      const could = holding.source === source && holding.arriving && holding.bytes > 0
      if (could && holding.bytes > (largest?.bytes ?? 0)) largest = holding
    }
    if (!largest) return false
    this.#release(largest)
    largest.refuse()
    return true
  }
}
