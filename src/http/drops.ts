/** Reports what was dropped: counts every drop, logs each reason at most once in ten seconds. */
import type { Logger } from 'pino'
import type { Drop, DropReason } from './sockets.ts'

const restMs = 10_000

export function reportDrops(log: Logger, count: Drop = () => {}): Drop {
  /** Drops not logged yet, for each reason that was logged within the last ten seconds. */
  const unlogged = new Map<DropReason, number>()
  function tell(reason: DropReason, dropped: number): void {
    log.warn({ reason, dropped }, 'the server dropped requests or connections')
    unlogged.set(reason, 0)
    setTimeout(() => {
      const more = unlogged.get(reason) ?? 0
      unlogged.delete(reason)
      if (more > 0) tell(reason, more)
    }, restMs).unref()
  }
  return (reason) => {
    count(reason)
    const more = unlogged.get(reason)
    if (more === undefined) tell(reason, 1)
    else unlogged.set(reason, more + 1)
  }
}
