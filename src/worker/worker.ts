/** What runs in the background of one process, from registration to a clean end. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { forgetQuietCallers } from '../access/limits.ts'
import type { App } from '../app.ts'
import { makeLoops as makeSearchLoops } from '../capabilities/search/search.ts'
import { type Db, sql } from '../db/sql.ts'
import { forgetOldEvents, sequence } from '../events/sequencer.ts'
import { newId } from '../lib/ids.ts'
import { type Hosts, makeHosts, type Platforms } from './hosts.ts'
import { openJournal } from './journal.ts'
import { makeLedger } from './ledger.ts'
import { type Loop, type Running, runLoops } from './loops.ts'
import { openMemory } from './memory.ts'
import { countOperations, countUnlisted } from './metrics.ts'
import { forgetLoop, observeLoop, replayAll, replayLoop, sweepLoop } from './recovery.ts'

const beatMs = 2_000
const tidyMs = 60_000
/** What comes meanwhile goes together. Under load it rests in proportion: those who emit need the server, too. */
const sequencerRest = { leastMs: 10, timesItsWork: 4 }

export interface WorkerOptions {
  readonly platforms: Platforms
  /** Where this process keeps what must survive it. */
  readonly directory: string
}

export async function startWorker(app: App, { platforms, directory }: WorkerOptions): Promise<Running> {
  const id = newId()
  const hosts = makeHosts(app, { owner: id, platforms })
  countUnlisted(app)
  const always = [tidy, ...makeSearchLoops(), sequencer, sweepLoop(), forgetLoop()]
  // A process without a platform drives no account, so nobody may count on it for a share of them.
  const acting = platforms.size > 0 ? await act(app, { id, directory, hosts }) : undefined
  const loops = runLoops(app, [...always, ...(acting ? [...acting.loops, ...hosts.loops] : [])])
  return {
    problem: loops.problem,
    async stop() {
      await loops.stop()
      await acting?.stop()
      await hosts.stop()
      await acting?.journal.close()
      // Marked, so that nobody waits for what this process held. If the database is gone, time will tell.
      await app.db
        .run(sql`update workers set stopped_at = clock_timestamp() where id = ${id}`)
        .catch((err) => app.log.warn({ err }, 'the worker could not sign off'))
      // Only now do the others count without this process and take its share as well.
      app.wake.signal('accounts')
    },
  }
}

/** Everything that may reach a platform needs the memory of this disk first. */
async function act(app: App, { id, directory, hosts }: { id: string; directory: string; hosts: Hosts }) {
  const journals = join(directory, 'ledger')
  const memory = await openMemory(app, journals)
  const journal = await openJournal(journals, id)
  await app.db.run(sql`insert into workers (id) values (${id})`)
  const ledger = makeLedger(app, {
    driven: hosts.driven,
    journal,
    beat: memory.beat,
    settled: countOperations(app),
  })
  if (memory.went_back) await replayAll(app, journals, ledger)
  const loops = [
    beat(id, async () => {
      if (await memory.raise()) await replayAll(app, journals, ledger)
    }),
    ledger.loop,
    observeLoop(hosts.driven),
    replayLoop(journals, id, ledger),
  ]
  return { loops, journal, stop: ledger.stop }
}

/** Says that this process lives. A process that was declared dead by mistake comes back with it. */
function beat(id: string, raise: () => Promise<void>): Loop {
  return {
    name: 'beat',
    restMs: beatMs,
    async step({ db }) {
      await raise()
      await db.run(sql`
        insert into workers (id) values (${id})
        on conflict (id) do update set beat_at = clock_timestamp(), stopped_at = null`)
      return false
    },
  }
}

/** Gives events their places as they come; what arrives within a few milliseconds goes together. */
export const sequencer: Loop = {
  name: 'sequencer',
  restMs: 250,
  wakeOn: 'outbox',
  async step({ db }) {
    const startedAt = performance.now()
    const moved = await sequence(db)
    const { leastMs, timesItsWork } = sequencerRest
    if (moved > 0) await sleep(Math.max(leastMs, timesItsWork * (performance.now() - startedAt)))
    return moved > 0
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
