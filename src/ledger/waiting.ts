/** Callers that wait for their operations: one look for all of them whenever something has settled. */
import type { Queued, Settled, Waiting, Wake } from '../app.ts'
import type { Db } from '../db/sql.ts'
import { readSettled, settled } from './enqueue.ts'

/** A wake-up that was lost is made up for after this. */
const pollMs = 1_000

interface Waiter {
  readonly queued_no: number
  end(row: Settled | undefined): void
}

export function watchOperations(db: Db, wake: Wake): Waiting {
  /** A key that ran again has the same row: its first caller may still be waiting beside the next one. */
  const waiting = new Map<string, Set<Waiter>>()
  let looking = false
  let again = false

  async function look(): Promise<void> {
    if (looking) {
      again = true
      return
    }
    looking = true
    do {
      again = false
      if (waiting.size === 0) break
      // A database that is away is asked again by the poll.
      const rows = await readSettled(db, [...waiting.keys()]).catch(() => [])
      for (const row of rows) {
        for (const waiter of waiting.get(row.id) ?? []) {
          // What an earlier attempt came to is no answer to whoever has queued it again since.
          if (row.queued_no >= waiter.queued_no) waiter.end(row) // guard: waits for its attempt
        }
      }
    } while (again)
    looking = false
  }

  const off = wake.on(settled, () => void look())
  const poll = setInterval(() => void look(), pollMs) // guard: poll of settled rows
  poll.unref()
  return {
    settled({ id, queued_no }: Queued, ms) {
      return new Promise((resolve) => {
        const waiters = waiting.get(id) ?? new Set()
        const waiter: Waiter = {
          queued_no,
          end(row) {
            clearTimeout(timer)
            waiters.delete(waiter)
            if (waiters.size === 0) waiting.delete(id)
            resolve(row)
          },
        }
        const timer = setTimeout(() => waiter.end(undefined), ms)
        waiting.set(id, waiters.add(waiter))
      })
    },
    close() {
      off()
      clearInterval(poll)
      for (const waiters of waiting.values()) for (const waiter of waiters) waiter.end(undefined)
    },
  }
}
