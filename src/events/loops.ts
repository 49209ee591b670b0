/** The loops of the outbox: one gives events their sequence numbers, one deletes events past their retention. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Loop } from '../loop.ts'
import { emitted } from './emit.ts'
import { countUnsequenced, forgetOldEvents, sequence, sequenced } from './sequencer.ts'

/** A rest between two steps lets events gather into one statement. It grows under load, to leave the database to others. */
const rest = { leastMs: 10, timesItsWork: 4 }
const forgetMs = 60_000

const sequencer: Loop = {
  name: 'sequencer',
  restMs: 250,
  wakeOn: emitted,
  async step({ db, wake }) {
    const startedAt = performance.now()
    const moved = await sequence(db)
    if (moved > 0) wake.signal(sequenced)
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
