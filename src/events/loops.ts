/** The loops of the outbox: one gives events their places as they come, one forgets what is past its retention. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Loop } from '../loop.ts'
import { emitted } from './emit.ts'
import { countUnsequenced, forgetOldEvents, sequence } from './sequencer.ts'

/** What is emitted meanwhile goes together. Under load it rests in proportion: those who emit need the server, too. */
const rest = { leastMs: 10, timesItsWork: 4 }
const forgetMs = 60_000

const sequencer: Loop = {
  name: 'sequencer',
  restMs: 250,
  wakeOn: emitted,
  async step({ db }) {
    const startedAt = performance.now()
    const moved = await sequence(db)
    if (moved > 0) await sleep(Math.max(rest.leastMs, rest.timesItsWork * (performance.now() - startedAt)))
    return moved > 0
  },
  countDue: ({ db }) => countUnsequenced(db),
}

const forgetEvents: Loop = {
  name: 'forget-events',
  restMs: forgetMs,
  async step({ db }) {
    await forgetOldEvents(db)
    return false
  },
}

export const loops = (): readonly Loop[] => [sequencer, forgetEvents]
