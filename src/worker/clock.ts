/** Moves a manual clock from one due time to the next, and finishes the work of each before it moves on. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '../app.ts'
import { moveClock } from '../db/domain-clock.ts'
import { sql } from '../db/sql.ts'
import { listPositions } from '../ledger/positions.ts'
import { ApiError } from '../lib/errors.ts'
import type { Loop } from '../loop.ts'
import type { PlatformClock, Standing } from '../platform/port.ts'

/** After this long without progress the caller gets an error; while there is progress it waits. */
const stuckMsMax = 10_000
const lookMs = 5

/** What acts at due times: the platforms whose time can be moved, and this process's loops. */
interface TimedParts {
  readonly platforms: readonly PlatformClock[]
  readonly loops: readonly Loop[]
}

/** Resolves once everything due by then is done. */
export async function advanceClock(app: App, timed: TimedParts, seconds: number): Promise<Date> {
  const { now } = await app.db.one<{ now: Date }>(sql`select domain_now() as now`)
  const end = new Date(now.getTime() + seconds * 1000)
  for (let at = now; at < end; ) {
    const standings = await settle(app, timed, at)
    at = nextStop(await listDueTimes(app, timed, standings), { at, end })
    await moveClock(app.db, at)
    await app.settings.refresh()
  }
  await settle(app, timed, end)
  return end
}

function runPlatforms({ platforms }: TimedParts, to: Date): Promise<Standing[]> {
  return Promise.all(platforms.map((platform) => platform.run(to)))
}

async function listDueTimes(
  app: App,
  { loops }: TimedParts,
  standings: readonly Standing[],
): Promise<Date[]> {
  const own = await Promise.all(loops.map((loop) => loop.nextDueAt?.(app) ?? null))
  const theirs = standings.map(({ next_due_at }) => (next_due_at === null ? null : new Date(next_due_at)))
  return [...own, ...theirs].filter((due) => due !== null)
}

/** A due time may lie within the millisecond just reached: one more millisecond gets past it. */
function nextStop(dues: readonly Date[], { at, end }: { at: Date; end: Date }): Date {
  const reached = at.getTime()
  const times = dues.map((due) => (due.getTime() === reached ? reached + 1 : due.getTime()))
  return new Date(Math.min(end.getTime(), ...times.filter((time) => time > reached)))
}

/**
 * Waits until every connected account has stored its updates and no loop has anything due. Work at one moment may cause
 * updates at the same moment, so it runs the platforms again until nothing changes.
 */
async function settle(app: App, timed: TimedParts, at: Date): Promise<Standing[]> {
  let last = ''
  let progressAt = performance.now()
  let standings = await runPlatforms(timed, at)
  for (;;) {
    const left = await listLeft(app, timed, standings)
    const seen = left.join(', ')
    if (left.length === 0) {
      const known = JSON.stringify(standings)
      standings = await runPlatforms(timed, at)
      if (JSON.stringify(standings) === known) return standings
    } else {
      if (seen !== last) progressAt = performance.now()
      else if (performance.now() - progressAt > stuckMsMax) {
        throw new ApiError('provider_unavailable', {
          detail: `The clock waits for what does not get done: ${seen}.`,
        })
      }
      await sleep(lookMs)
    }
    last = seen
  }
}

/** What is due and not done, each with a count that changes as work gets done. */
async function listLeft(app: App, { loops }: TimedParts, standings: readonly Standing[]): Promise<string[]> {
  const ends = new Map(standings.flatMap(({ positions }) => Object.entries(positions)))
  const stored = await listPositions(app.db)
  const behind = stored.flatMap(({ account_id, position }) => {
    const updates = Number(ends.get(account_id) ?? 0) - Number(position ?? 0)
    return updates > 0 ? [`${updates} updates of ${account_id}`] : []
  })
  const due = await Promise.all(
    loops.map(async (loop) => ({ name: loop.name, count: (await loop.countDue?.(app)) ?? 0 })),
  )
  return [...behind, ...due.filter(({ count }) => count > 0).map(({ name, count }) => `${count} of ${name}`)]
}
