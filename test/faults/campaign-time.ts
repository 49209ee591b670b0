/** Moves a campaign's manual clock from one due time to the next, until the campaign is completed. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '../../src/app.ts'
import { loops, messagesDue } from '../../src/capabilities/campaigns/running/loops.ts'
import { sql } from '../../src/db/sql.ts'
import type { Loop } from '../../src/loop.ts'
import type { Plant } from './plant.ts'
import { say } from './report.ts'

/** The clock's smallest step. Accounts write without a gap, so its stops do not limit their speed. */
const stepSeconds = 600
/** How long to wait for due work. A worker that has just died must not stop the clock. */
const dueMsMax = 1_000

export interface Timeline {
  readonly app: App
  readonly campaign_id: string
  /** On the monotonic clock. */
  readonly deadline: number
  /** Domain time, which the database may lose. */
  now: Date
  /** While a rollback runs, nothing the database says means that the campaign has ended. */
  readonly rollbacks: { readonly under_way?: boolean }
}

/** Moves to the next due time, or by one step. */
export async function moveTime(plant: Plant, scene: Timeline): Promise<void> {
  const { now } = await plant.db.one<{ now: Date }>(sql`select domain_now() as now`)
  scene.now = now
  for (let reportedAt = performance.now(); performance.now() < scene.deadline; ) {
    try {
      const { status, queued, open } = await moveOn(plant, scene)
      if (status === 'completed' && !scene.rollbacks.under_way) return
      if (performance.now() - reportedAt < 10_000) continue
      reportedAt = performance.now()
      const when = scene.now.toISOString()
      say(`${when}: ${status}, ${open} recipients are not final, ${queued} of them queued`)
    } catch {
      // The database is down.
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
  // If a recipient is due and held, only its account's worker knows until when: then all workers have to be there.
  const isWhole = isDone && (await plant.countReady()) === plant.accounts.length
  const due = seen.next && seen.next > now ? seen.next : isWhole ? await loop?.nextDueAt?.(app) : null
  scene.now = new Date(Math.max(now.getTime() + stepSeconds * 1000, due?.getTime() ?? 0))
  await plant.moveClock(scene.now)
  app.wake.signal(messagesDue)
  return seen
}

/** Whether all due work is done. */
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
  /** When the first recipient that is not final is due. */
  readonly next: Date | null
}

function look(plant: Plant, id: string): Promise<Look> {
  return plant.db.one<Look>(sql`
    select k.status, sum(c.queued)::int as queued, sum(c.queued + c.submitting + c.waiting)::int as open,
      (select min(next_action_at) from campaign_recipients where campaign_id = ${id} and ended_at is null) as next
    from campaigns k join campaign_accounts c on c.campaign_id = k.id where k.id = ${id} group by k.id`)
}
