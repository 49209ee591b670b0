/** A call to PARLEY_HEARTBEAT_URL while the instance works, so that a monitor alarms when nothing can alarm here any more. */
import type { App } from '../../app.ts'
import { problemOf, sendAlert } from './posts.ts'
import { instanceKinds, listProblems } from './problems.ts'

/** Returns whether it called: not while the database is away, or a problem of the whole instance lasts. */
export async function beatOutside(app: App, url: string, stopping?: AbortSignal): Promise<boolean> {
  const problems = await listProblems(app.db)
  if (problems.some(({ kind }) => instanceKinds.includes(kind))) return false // guard: a heartbeat only while all is well
  const outcome = await sendAlert(
    app,
    url,
    { kind: 'heartbeat', text: 'All is well.', at: new Date() },
    stopping,
  )
  const problem = outcome && problemOf(outcome)
  if (problem) app.log.warn({ problem }, 'the heartbeat was not accepted')
  return true
}
