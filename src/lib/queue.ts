/** Work that is costly to do at once: a few run, some wait in turn, and whoever comes then is told so. */

interface Bounds {
  readonly atOnceMax: number
  readonly waitingMax: number
  /** What the one who comes too late is refused with. */
  readonly refuse: () => Error
}

export function boundedQueue({ atOnceMax, waitingMax, refuse }: Bounds) {
  const waiting: (() => void)[] = []
  let running = 0
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= atOnceMax) {
      if (waiting.length >= waitingMax) throw refuse()
      // Whoever ends hands its place over, so that nobody who comes in between can take it.
      await new Promise<void>((resolve) => waiting.push(resolve))
    } else {
      running++
    }
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  }
}
