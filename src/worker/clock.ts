/** Moves a manual clock: from one due time to the next, each done before the time goes on. */
import { setTimeout as sleep } from 'node:timers/promises'
import { listPositions } from '../access/ledger/hosts.ts'
import type { App } from '../app.ts'
import { moveClock } from '../db/domain-clock.ts'
import { sql } from '../db/sql.ts'
import { isSequenced } from '../events/sequencer.ts'
import { ApiError } from '../lib/errors.ts'
import type { PlatformClock, Standing } from '../platform/port.ts'

/** An account that cannot be heard (frozen, refused) does not stop the clock for ever. */
const settleMsMax = 10_000

/** Answers when everything that is due by then has been done. */
export async function advanceClock(app: App, platform: PlatformClock, seconds: number): Promise<Date> {
  const { now } = await app.db.one<{ now: Date }>(sql`select domain_now() as now`)
  const end = new Date(now.getTime() + seconds * 1000)
  let standing = await platform.run(now)
  for (;;) {
    await settle(app, standing)
    const due = standing.next_due_at === null ? undefined : new Date(standing.next_due_at)
    if (!due || due > end) break
    standing = await moveTo(app, platform, due)
  }
  await settle(app, await moveTo(app, platform, end))
  return end
}

async function moveTo(app: App, platform: PlatformClock, to: Date): Promise<Standing> {
  const at = await moveClock(app.db, to)
  await app.settings.refresh()
  return platform.run(at)
}

/** Until every connected account has stored its updates, and every event has its place. */
async function settle(app: App, { positions }: Standing): Promise<void> {
  const deadline = performance.now() + settleMsMax
  while (performance.now() < deadline) {
    const stored = await listPositions(app.db)
    const behind = stored.some(({ account_id, position }) => isBehind(position, positions[account_id]))
    if (!behind && (await isSequenced(app.db))) return
    await sleep(5)
  }
  throw new ApiError('provider_unavailable', {
    detail: 'An account did not take its updates within ten seconds.',
  })
}

function isBehind(position: string | null, end: string | undefined): boolean {
  return end !== undefined && Number(position ?? 0) < Number(end)
}
