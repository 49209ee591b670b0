/**
 * When the server itself does not answer, its own limits do not help: a connection that has been silent for too long is
 * cut, and whatever waits on it fails. One look for all of them, because a timer of its own for every statement keeps
 * what the statement has read in memory long after it was used.
 */
import type pg from 'pg'

const silentMsMax = 7_500 // limit: silence of the database
const lookMs = 500

interface Wait {
  pending: number
  /** The last sign of life, or the first question. */
  since: number
}

interface Watch {
  /** Something is asked on this connection, and not waited for for ever. Call what it returns when it is answered. */
  ask(client: pg.ClientBase): () => void
  close(): void
}

export function watchSilence(): Watch {
  const waits = new Map<pg.ClientBase, Wait>()
  const timer = setInterval(() => {
    const now = performance.now()
    for (const [client, { pending, since }] of waits) {
      if (pending > 0 && now - since > silentMsMax) (client as pg.Client).connection.stream.destroy()
    }
  }, lookMs)
  timer.unref()
  /** Kept for as long as the connection lives: a map that changes with every question leaves as many maps behind. */
  function meet(client: pg.ClientBase): Wait {
    const wait = { pending: 0, since: 0 }
    waits.set(client, wait)
    client.once('end', () => waits.delete(client))
    return wait
  }
  return {
    ask(client) {
      const wait = waits.get(client) ?? meet(client)
      if (wait.pending++ === 0) wait.since = performance.now()
      let waiting = true
      return () => {
        if (!waiting) return
        waiting = false
        if (--wait.pending > 0) wait.since = performance.now()
      }
    },
    close: () => clearInterval(timer),
  }
}
