/** Callers that wait for events: one query serves them all when events arrive. None holds a connection meanwhile. */
import type { App } from '../../app.ts'
import { sql } from '../../db/sql.ts'
import { sequenced } from '../../events/sequencer.ts'

/** A lost wake-up delays an event by at most this. */
const pollMs = 1_000

interface Waiter {
  readonly workspace_id: string
  readonly after: bigint
  end(): void
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

  constructor(app: App) {
    this.#app = app
    app.wake.on(sequenced, () => void this.#look())
    app.stopping.addEventListener('abort', () => this.#endAll())
  }

  /** Resolves when the workspace has an event past `after`, the time is up, the caller disconnects, or the service stops. */
  wait(workspace_id: string, { after, ms, left }: AskedWait): Promise<void> {
    return new Promise((resolve) => {
      const waiter: Waiter = {
        workspace_id,
        after: BigInt(after),
        end: () => {
          clearTimeout(timer)
          clearInterval(poll)
          this.#waiting.delete(waiter)
          left?.removeEventListener('abort', waiter.end)
          resolve()
        },
      }
      const timer = setTimeout(waiter.end, ms)
      const poll = setInterval(() => void this.#look(), pollMs) // guard: poll of waiting readers
      this.#waiting.add(waiter)
      left?.addEventListener('abort', waiter.end) // guard: a caller who leaves waits no longer for events
      if (this.#app.stopping.aborted || left?.aborted) waiter.end()
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
      const workspaces = [...new Set([...this.#waiting].map(({ workspace_id }) => workspace_id))]
      // If the database is unavailable, the poll asks again.
      const ends = await this.#readEnds(workspaces).catch(() => new Map<string, bigint>())
      for (const waiter of this.#waiting) {
        if ((ends.get(waiter.workspace_id) ?? 0n) > waiter.after) waiter.end()
      }
    }
    this.#looking = false
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
