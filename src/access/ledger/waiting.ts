/** Callers that wait for their operations: one look for all of them whenever something has settled. */
import type { Settled, Waiting, Wake } from '../../app.ts'
import type { Db } from '../../db/sql.ts'
import { readSettled, settled } from './enqueue.ts'

/** A wake-up that was lost is made up for after this. */
const pollMs = 1_000

export function watchOperations(db: Db, wake: Wake): Waiting {
  /** A key that ran again has the same row: its first caller may still be waiting beside the next one. */
  const waiting = new Map<string, Set<(row: Settled | undefined) => void>>()
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
      for (const row of rows) for (const end of waiting.get(row.id) ?? []) end(row)
    } while (again)
    looking = false
  }

  const off = wake.on(settled, () => void look())
  const poll = setInterval(() => void look(), pollMs)
  poll.unref()
  return {
    settled(id, ms) {
      return new Promise((resolve) => {
        const callers = waiting.get(id) ?? new Set()
        const end = (row: Settled | undefined) => {
          clearTimeout(timer)
          callers.delete(end)
          if (callers.size === 0) waiting.delete(id)
          resolve(row)
        }
        const timer = setTimeout(() => end(undefined), ms)
        waiting.set(id, callers.add(end))
      })
    },
    close() {
      off()
      clearInterval(poll)
      for (const callers of waiting.values()) for (const end of callers) end(undefined)
    },
  }
}
