/** A queue for costly work under many keys: a few jobs run at a time, fewer for each key, and the keys take turns. */

interface Bounds {
  readonly atOnceMax: number
  /** How many of them one key may have; one unless given. */
  readonly eachMax?: number
  /** Per key. */
  readonly waitingMax: number
  readonly waitMsMax: number
  /** The error for a caller that waited too long or found too many waiting. */
  readonly refuse: () => Error
}

interface Turn {
  readonly key: string
  readonly timer: (ms: number, done: () => void) => () => void
  /** Aborted once the caller has left. */
  readonly left: AbortSignal | undefined
}

export interface FairQueue {
  <T>(turn: Turn, work: () => Promise<T>): Promise<T>
  /** How many callers wait, of all keys. */
  countWaiting(): number
}

/** However many callers wait for one key, callers of other keys wait no longer for it. */
export function fairQueue({ atOnceMax, eachMax = 1, waitingMax, waitMsMax, refuse }: Bounds): FairQueue {
  let running = 0
  const runningOf = new Map<string, number>()
  /** The key that has waited longest for a turn comes first. A key waits only while it cannot run. */
  const waiting = new Map<string, Set<() => void>>()

  function tryStart(key: string): boolean {
    const own = runningOf.get(key) ?? 0
    if (running >= atOnceMax) return false // guard: places of all keys
    if (own >= eachMax) return false // guard: places of one key
    running++
    runningOf.set(key, own + 1)
    return true
  }

  function end(key: string): void {
    running--
    const own = (runningOf.get(key) ?? 1) - 1
    if (own > 0) runningOf.set(key, own)
    else runningOf.delete(key)
    startNext()
  }

  function startNext(): void {
    for (const [key, starts] of waiting) {
      if (!tryStart(key)) continue
      const [start] = starts
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

  function wait({ key, timer, left }: Turn): Promise<void> {
    const starts = waiting.get(key) ?? new Set()
    if (starts.size >= waitingMax) throw refuse() // guard: callers that may wait
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
    })
  }

  async function run<T>(turn: Turn, work: () => Promise<T>): Promise<T> {
    turn.left?.throwIfAborted()
    if (!tryStart(turn.key)) await wait(turn)
    try {
      return await work()
    } finally {
      end(turn.key)
    }
  }

  return Object.assign(run, {
    countWaiting: () => [...waiting.values()].reduce((sum, { size }) => sum + size, 0),
  })
}
