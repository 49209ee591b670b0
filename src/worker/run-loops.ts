/** Background loops: each takes one step at a time, rests when there is nothing to do, and survives its errors. */
import type { App } from '../app.ts'
import type { Loop } from '../loop.ts'

export interface Running {
  /** Undefined while no loop's steps fail. */
  problem(): string | undefined
  /** Resolves once the current steps have ended; the signal lets long steps end unfinished. */
  stop(): Promise<void>
}

/** Shorter than a lease: a loop that rested longer after an outage would lose its leases. */
const backoffMs = { first: 500, most: 4_000 }

/** The loops of each App whose last step failed, and how often in a row. */
const failures = new WeakMap<App, ReadonlyMap<string, number>>()

export function failingLoops(app: App): string[] {
  return [...(failures.get(app)?.keys() ?? [])]
}

export function runLoops(app: App, loops: readonly Loop[]): Running {
  const failing = new Map<string, number>()
  failures.set(app, failing)
  const stopping = new AbortController()

  async function run({ name, restMs, wakeOn, step }: Loop): Promise<void> {
    // A wake-up during a step is kept: the next rest ends immediately.
    let woken = false
    let end: (() => void) | undefined
    const off =
      wakeOn &&
      app.wake.on(wakeOn, () => {
        woken = true
        end?.()
      })
    while (!stopping.signal.aborted) {
      try {
        woken = false
        const more = await step(app, stopping.signal)
        failing.delete(name)
        if (!more && !woken)
          await rest(restMs, (done) => {
            end = done
          })
      } catch (err) {
        if (err === stopping.signal.reason) break
        const count = (failing.get(name) ?? 0) + 1
        failing.set(name, count)
        app.log.error({ err, loop: name, failures: count }, 'a background step failed')
        await rest(Math.min(backoffMs.most, backoffMs.first * 2 ** (count - 1)))
      }
    }
    off?.()
  }

  function rest(ms: number, begun?: (done: () => void) => void): Promise<void> {
    return new Promise((resolve) => {
      if (stopping.signal.aborted) return resolve()
      const done = () => {
        clearTimeout(timer)
        stopping.signal.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      stopping.signal.addEventListener('abort', done)
      begun?.(done)
    })
  }

  const running = Promise.all(loops.map(run))
  return {
    problem() {
      const [name] = failing.keys()
      return name === undefined ? undefined : `${name} is failing`
    },
    async stop() {
      stopping.abort()
      await running
    },
  }
}
