/** A queue for costly work under many keys: a few jobs run, one at a time for each key, and the keys take turns. */

interface Bounds {
  readonly atOnceMax: number
  /** Per key. */
  readonly waitingMax: number
  readonly waitMsMax: number
  /** The error for a caller that waited too long or found too many waiting. */
  readonly refuse: () => Error
}

interface Turn {
  /** Whose turn it is: one key never has two at once. */
  readonly key: string
  readonly timer: (ms: number, done: () => void) => () => void
  /** Aborted once the caller has left. */
  readonly left: AbortSignal | undefined
}

export type FairQueue = ReturnType<typeof fairQueue>

/** However many callers wait for one key, callers of other keys wait no longer for it. */
export function fairQueue({ atOnceMax, waitingMax, waitMsMax, refuse }: Bounds) {
  const running = new Set<string>()
  /** The key that has waited longest for a turn comes first. */
  const waiting = new Map<string, Set<() => void>>()

  function startNext(): void {
    for (const [key, starts] of waiting) {
      if (running.size >= atOnceMax) return // guard: places of all keys
      if (running.has(key)) continue // guard: one at a time for a key
      const [start] = starts
      running.add(key)
      start?.()
      // The key's other callers come after the other keys.
      if (waiting.delete(key)) waiting.set(key, starts) // guard: keys take turns
    }
  }

  function leave(key: string, start: () => void): void {
    const starts = waiting.get(key)
    starts?.delete(start)
    if (starts?.size === 0) waiting.delete(key)
  }

  function enter({ key, timer, left }: Turn): Promise<void> {
    const starts = waiting.get(key) ?? new Set()
    if (starts.size >= waitingMax) throw refuse()
    waiting.set(key, starts)
    return new Promise((resolve, reject) => {
      const settle = (settled: () => void) => {
        left?.removeEventListener('abort', abort)
        stopTimer()
        leave(key, start)
        settled()
      }
      const start = () => settle(resolve)
      const abort = () => settle(() => reject(left?.reason))
      const stopTimer = timer(waitMsMax, () => settle(() => reject(refuse())))
      left?.addEventListener('abort', abort) // guard: a caller who leaves waits no longer
      starts.add(start)
      startNext()
    })
  }

  return async <T>(turn: Turn, work: () => Promise<T>): Promise<T> => {
    turn.left?.throwIfAborted()
    await enter(turn)
    try {
      return await work()
    } finally {
      running.delete(turn.key)
      startNext()
    }
  }
}
