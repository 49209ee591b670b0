/** Callers that wait for events: one query serves them all when events arrive. None holds a connection meanwhile. */
import { readRefusals } from '../../access/still-admitted.ts'
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { sql } from '../../db/sql.ts'
import { sequenced } from '../../events/sequencer.ts'
import type { ApiError } from '../../lib/errors.ts'

/** A lost wake-up delays an event by at most this, and a wait outlives its key by about this. */
const pollMs = 1_000
/** Many waiters poll often, and their keys need not be read each time. */
const admittedMs = pollMs / 2

interface Waiter {
  readonly caller: Caller
  readonly after: bigint
  end(refusal?: ApiError): void
}

interface AskedWait {
  readonly after: string
  readonly ms: number
  /** Aborted when the caller disconnects. */
  readonly left: AbortSignal | undefined
}

class EventWatch {
  readonly #app: App
  readonly #waiting = new Set<Waiter>()
  #looking = false
  #again = false
  #admittedAt = Number.NEGATIVE_INFINITY

  constructor(app: App) {
    this.#app = app
    app.wake.on(sequenced, () => void this.#look())
    app.stopping.addEventListener('abort', () => this.#endAll())
  }

  /**
   * Resolves when the workspace has an event past `after`, the time is up, the caller disconnects, or the service stops. Rejects
   * when the caller's key or session ends.
   */
  wait(caller: Caller, { after, ms, left }: AskedWait): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => waiter.end()
      const waiter: Waiter = {
        caller,
        after: BigInt(after),
        end: (refusal) => {
          clearTimeout(timer)
          clearInterval(poll)
          this.#waiting.delete(waiter)
          left?.removeEventListener('abort', leave)
          if (refusal) reject(refusal)
          else resolve()
        },
      }
      const timer = setTimeout(leave, ms)
      const poll = setInterval(() => void this.#look(), pollMs) // guard: poll of waiting readers
      this.#waiting.add(waiter)
      left?.addEventListener('abort', leave) // guard: a caller who leaves waits no longer for events
      if (this.#app.stopping.aborted || left?.aborted) leave()
      // An event may have arrived since the caller found none.
      else void this.#look()
    })
  }

  async #look(): Promise<void> {
    this.#again = true
    if (this.#looking) return
    this.#looking = true
    while (this.#again && this.#waiting.size > 0) {
      this.#again = false
      const workspaces = [...new Set([...this.#waiting].map(({ caller }) => caller.workspace_id))]
      // If the database is unavailable, the poll asks again.
      const ends = await this.#readEnds(workspaces).catch(() => new Map<string, bigint>())
      await this.#endRefused().catch(() => {}) // guard: a wait ends with its key
      for (const waiter of this.#waiting) {
        if ((ends.get(waiter.caller.workspace_id) ?? 0n) > waiter.after) waiter.end()
      }
    }
    this.#looking = false
  }

  /** Before those who have an event get it. */
  async #endRefused(): Promise<void> {
    if (performance.now() - this.#admittedAt < admittedMs) return
    this.#admittedAt = performance.now()
    const asked = [...this.#waiting]
    const refusalOf = await readRefusals(
      this.#app,
      asked.map(({ caller }) => caller),
    )
    for (const waiter of asked) {
      const refusal = this.#waiting.has(waiter) ? refusalOf(waiter.caller) : undefined
      if (refusal) waiter.end(refusal)
    }
  }

  async #readEnds(workspaces: readonly string[]): Promise<Map<string, bigint>> {
    const rows = await this.#app.db.rows<{ workspace_id: string; sequence: string }>(sql`
      select workspace_id, sequence::text as sequence from event_sequences
      where workspace_id = any(${workspaces}::uuid[])`)
    return new Map(rows.map(({ workspace_id, sequence }) => [workspace_id, BigInt(sequence)]))
  }

  #endAll(): void {
    for (const waiter of this.#waiting) waiter.end()
  }
}

const watches = new WeakMap<App, EventWatch>()

export function watchOf(app: App): EventWatch {
  const watch = watches.get(app) ?? new EventWatch(app)
  watches.set(app, watch)
  return watch
}
