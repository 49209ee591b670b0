/** Tells what was dropped: counted each time, written down at most once in ten seconds for each reason. */
import type { Logger } from 'pino'
import type { Drop, DropReason } from './sockets.ts'

const restMs = 10_000

export function tellDrops(log: Logger, count: Drop = () => {}): Drop {
  /** What has not been written down, for each reason that was written down a moment ago. */
  const untold = new Map<DropReason, number>()
  function tell(reason: DropReason, dropped: number): void {
    log.warn({ reason, dropped }, 'requests or connections were dropped')
    untold.set(reason, 0)
    setTimeout(() => {
      const more = untold.get(reason) ?? 0
      untold.delete(reason)
      if (more > 0) tell(reason, more)
    }, restMs).unref()
  }
  return (reason) => {
    count(reason)
    const more = untold.get(reason)
    if (more === undefined) tell(reason, 1)
    else untold.set(reason, more + 1)
  }
}
