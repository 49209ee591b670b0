/** How a process ends that waits for its own work no longer. */
import { setTimeout as sleep } from 'node:timers/promises'
import { leaveServers } from '../db/embedded.ts'

/** After this long we cut off work in flight ourselves, before a supervisor does. */
export const stopMsMax = 30_000 // limit: time to stop
/** The server is signalled at once, and ends by itself if it takes longer. */
const leaveMsMax = 5_000

export async function endByForce(code: number): Promise<never> {
  await Promise.race([leaveServers(), sleep(leaveMsMax)]).catch(() => {}) // guard: no server stays behind a forced end
  process.exit(code)
}

/** npm and the terminal may both deliver the first signal. One that comes a second later means: stop now. */
export function meansNow(firstAt: number): boolean {
  return performance.now() - firstAt > 1_000
}
