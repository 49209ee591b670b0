/** Moves the manual clock of a campaign from one moment at which something is due to the next, until it is completed. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '../../src/app.ts'
import { loops, messagesDue } from '../../src/capabilities/campaigns/running/loops.ts'
import { sql } from '../../src/db/sql.ts'
import type { Loop } from '../../src/loop.ts'
import type { Plant } from './plant.ts'
import { say } from './report.ts'

/** The clock moves on by at least this much. Accounts write without a gap, so that its stops do not decide how fast they are. */
const stepSeconds = 600
/** What is due is waited for so long. A worker that has just died must not stop the time. */
const dueMsMax = 1_000

export interface Timeline {
  readonly app: App
  readonly campaign_id: string
  /** Of the monotonic clock. */
  readonly deadline: number
  /** Domain time, which the database may forget. */
  now: Date
  /** While the database goes back to an older picture, nothing that it says is the end. */
  readonly rollbacks: { readonly under_way?: boolean }
}

/** From one moment at which something is due to the next, or on by a step. */
export async function moveTime(plant: Plant, scene: Timeline): Promise<void> {
  const { now } = await plant.db.one<{ now: Date }>(sql`select domain_now() as now`)
  scene.now = now
  for (let told = performance.now(); performance.now() < scene.deadline; ) {
    try {
      const { status, queued, open } = await moveOn(plant, scene)
      if (status === 'completed' && !scene.rollbacks.under_way) return
      if (performance.now() - told < 10_000) continue
      told = performance.now()
      const when = scene.now.toISOString()
      say(`${when}: ${status}, ${open} recipients are not final, ${queued} of them queued`)
    } catch {
      // The database is away.
      await sleep(200)
    }
  }
}

async function moveOn(plant: Plant, scene: Timeline): Promise<Look> {
  const { app, campaign_id, now } = scene
  const [loop] = loops()
  const isDone = await untilDone(app, loop)
  const seen = await look(plant, campaign_id)
  if (seen.status === 'completed') return seen
  // Where somebody is due and held, only the accounts' workers know until when: then all of them have to be there.
  const isWhole = isDone && (await plant.countReady()) === plant.accounts.length
  const due = seen.next && seen.next > now ? seen.next : isWhole ? await loop?.nextDueAt?.(app) : null
  scene.now = new Date(Math.max(now.getTime() + stepSeconds * 1000, due?.getTime() ?? 0))
  await plant.moveClock(scene.now)
  app.wake.signal(messagesDue)
  return seen
}

/** Whether everything that is due has been done. */
async function untilDone(app: App, loop: Loop | undefined): Promise<boolean> {
  const doneBy = performance.now() + dueMsMax
  for (;;) {
    const left = (await loop?.countDue?.(app)) ?? 0
    if (left === 0 || performance.now() > doneBy) return left === 0
    await sleep(100)
  }
}

interface Look {
  readonly status: string
  readonly queued: number
  readonly open: number
  /** When the first of those who are not final is due. */
  readonly next: Date | null
}

function look(plant: Plant, id: string): Promise<Look> {
  return plant.db.one<Look>(sql`
    select k.status, sum(c.queued)::int as queued, sum(c.queued + c.submitting + c.waiting)::int as open,
      (select min(next_action_at) from campaign_recipients where campaign_id = ${id} and ended_at is null) as next
    from campaigns k join campaign_accounts c on c.campaign_id = k.id where k.id = ${id} group by k.id`)
}
