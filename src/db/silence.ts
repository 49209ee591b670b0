/**
 * A server that does not answer cannot enforce its own time limits, so a connection that is silent for too long is cut,
 * and what waits on it fails. One timer checks all connections: a timer for each statement would keep the rows it read in
 * memory long after their use.
 */
import type pg from 'pg'

const silentMsMax = 7_500 // limit: silence of the database
const lookMs = 500

interface Wait {
  pending: number
  /** When the server last answered, or when the first statement was sent. */
  since: number
}

interface Watch {
  /** Call it when a statement is sent on this connection, and the returned function when it is answered. */
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
  /** Kept as long as the connection: an entry per statement would create garbage. */
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
