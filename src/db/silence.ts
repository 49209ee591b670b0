/**
 * When the server itself does not answer, its own limits do not help: a connection that has been silent for too long is
 * cut, and whatever waits on it fails. One look for all of them, because a timer of its own for every statement keeps
 * what the statement has read in memory long after it was used.
 */
import type pg from 'pg'

const silentMsMax = 7_500
const lookMs = 500

interface Wait {
  pending: number
  /** The last sign of life, or the first question. */
  since: number
}

export interface Watch {
  /** Waits for an answer on this connection, and not for ever. */
  answer<T>(client: pg.ClientBase, asked: Promise<T>): Promise<T>
  close(): void
}

export function watchSilence(): Watch {
  const waits = new Map<pg.ClientBase, Wait>()
  const timer = setInterval(() => {
    const now = performance.now()
    for (const [client, { since }] of waits) {
      if (now - since > silentMsMax) (client as pg.Client).connection.stream.destroy()
    }
  }, lookMs)
  timer.unref()
  return {
    async answer(client, asked) {
      const wait = waits.get(client) ?? { pending: 0, since: performance.now() }
      if (wait.pending++ === 0) waits.set(client, wait)
      try {
        return await asked
      } finally {
        if (--wait.pending === 0) waits.delete(client)
        else wait.since = performance.now()
      }
    },
    close: () => clearInterval(timer),
  }
}
