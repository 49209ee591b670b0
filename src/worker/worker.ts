/** What runs in the background of one process, from registration to a clean end. */
import { setTimeout as sleep } from 'node:timers/promises'
import { forgetQuietCallers } from '../access/limits.ts'
import type { App } from '../app.ts'
import { renewTokens, settleTokens } from '../capabilities/messages/messages.ts'
import { type Db, sql } from '../db/sql.ts'
import { forgetOldEvents, sequence } from '../events/sequencer.ts'
import { newId } from '../lib/ids.ts'
import { makeHosts, type Platforms } from './hosts.ts'
import { type Loop, type Running, runLoops } from './loops.ts'

const beatMs = 2_000
const tidyMs = 60_000
const sequencerMs = 10
const settleMs = 1_000
const renewMs = 60_000

export async function startWorker(app: App, platforms: Platforms): Promise<Running> {
  const id = newId()
  const hosts = makeHosts(app, { owner: id, platforms })
  // A process without a platform drives no account, so nobody may count on it for a share of them.
  const driving = platforms.size > 0 ? [beat(id), ...hosts.loops] : []
  if (driving.length > 0) await app.db.run(sql`insert into workers (id) values (${id})`)
  const loops = runLoops(app, [tidy, settle, renew, sequencer, ...driving])
  return {
    problem: loops.problem,
    async stop() {
      await loops.stop()
      await hosts.stop()
      // Marked, so that nobody waits for what this process held. If the database is gone, time will tell.
      await app.db
        .run(sql`update workers set stopped_at = clock_timestamp() where id = ${id}`)
        .catch((err) => app.log.warn({ err }, 'the worker could not sign off'))
      // Only now do the others count without this process and take its share as well.
      app.wake.signal('accounts')
    },
  }
}

/** Says that this process lives. A process that was declared dead by mistake comes back with it. */
function beat(id: string): Loop {
  return {
    name: 'beat',
    restMs: beatMs,
    async step({ db }) {
      await db.run(sql`
        insert into workers (id) values (${id})
        on conflict (id) do update set beat_at = clock_timestamp(), stopped_at = null`)
      return false
    },
  }
}

/** Gives events their places as they come; what arrives within a few milliseconds goes together. */
const sequencer: Loop = {
  name: 'sequencer',
  restMs: 250,
  wakeOn: 'outbox',
  async step({ db }) {
    const moved = await sequence(db)
    if (moved > 0) await sleep(sequencerMs)
    return moved > 0
  },
}

/** Keeps searches quick while messages come in. */
const settle: Loop = {
  name: 'settle',
  restMs: settleMs,
  async step({ db }) {
    await settleTokens(db)
    return false
  },
}

/** After an upgrade that changed what messages are found by. */
const renew: Loop = {
  name: 'renew',
  restMs: renewMs,
  async step({ db }) {
    return (await renewTokens(db)) > 0
  },
}

/** Removes what has served its time. */
const tidy: Loop = {
  name: 'tidy',
  restMs: tidyMs,
  async step({ db }) {
    await forgetWorkers(db)
    await forgetQuietCallers(db)
    await forgetOldEvents(db)
    return false
  },
}

function forgetWorkers(db: Db): Promise<number> {
  return db.run(sql`delete from workers where beat_at < clock_timestamp() - interval '7 days'`)
}
