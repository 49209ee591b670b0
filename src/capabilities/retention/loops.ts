/** The loop that clears what is older than a workspace keeps it. */
import type { Loop } from '../../loop.ts'
import { retentionChanged } from './retention.ts'
import { clearOld, nextKeeping, type Reached } from './sweep.ts'

const restMs = 600_000
/** The loop rests nine times as long as it worked, so that it takes a tenth of one connection. */
const rest = { leastMs: 20, timesItsWork: 9 }

export const loops = (): readonly Loop[] => [makeSweep()]

export function makeSweep(): Loop {
  let after: string | null = null
  let cleared = 0
  const reached: Reached = new Map()
  return {
    name: 'retention',
    restMs,
    wakeOn: retentionChanged,
    async step(app) {
      const startedAt = app.sources.now()
      const keeping = await nextKeeping(app.db, after)
      after = keeping?.workspace_id ?? null
      if (!keeping) {
        // The end of a round. What became old behind the walk is found in the next, which begins at the oldest again.
        const more = cleared > 0
        if (!more) reached.clear()
        cleared = 0
        return more
      }
      const now = await clearOld(app, keeping, reached)
      cleared += now
      if (now > 0)
        await app.sources.sleep(Math.max(rest.leastMs, rest.timesItsWork * (app.sources.now() - startedAt)))
      return true
    },
  }
}
