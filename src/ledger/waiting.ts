/** Callers that wait for their operations: one query for all of them whenever an operation has settled. */
import type { LedgerOperation, QueuedAttempt, Waiting, Wake } from '../app.ts'
import type { Db } from '../db/sql.ts'
import { readSettled, settled } from './enqueue.ts'

/** This poll makes up for a lost wake-up. */
const pollMs = 1_000

interface Waiter {
  readonly queued_no: number
  end(row: LedgerOperation | undefined): void
}

export function watchOperations(db: Db, wake: Wake): Waiting {
  /** A key that runs again keeps its row: its first caller may still wait beside the next one. */
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
      // If the database is away, the poll retries.
      const rows = await readSettled(db, [...waiting.keys()]).catch(() => [])
      for (const row of rows) {
        for (const waiter of waiting.get(row.id) ?? []) {
          // Ignore an earlier attempt's result: this caller queued the key again.
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
    settled({ id, queued_no }: QueuedAttempt, ms) {
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
