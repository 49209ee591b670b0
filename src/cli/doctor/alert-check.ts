/** Whether alerts arrive. Only `parley doctor --alert` sends one. */
import {
  findAlertUrlProblem,
  problemOf,
  readFailedPosts,
  sendAlert,
} from '../../capabilities/alerts/alerts.ts'
import type { Config } from '../../config.ts'
import type { Db } from '../../db/sql.ts'
import { counted, type Finding, fault, ok, warning } from './finding.ts'

const test = 'This is a test: Parley reaches this address with its alerts.'
const repair = 'Correct PARLEY_ALERT_URL, or PARLEY_WEBHOOK_ALLOW for a private host.'

/** `db` is undefined if the database cannot be read. */
export async function lookAtAlerts(
  config: Config,
  { db, send }: { readonly db: Db | undefined; readonly send: boolean },
): Promise<Finding> {
  const { alert_url: url } = config
  if (url === undefined) {
    return send
      ? fault('PARLEY_ALERT_URL is not set, so no test was sent.', 'Set it for every process.')
      : ok('PARLEY_ALERT_URL is not set: Parley posts no alerts.')
  }
  const problem = findAlertUrlProblem(config)
  if (problem) return fault(problem, repair)
  if (send) {
    const outcome = await sendAlert({ config }, url, { text: test, kind: 'test', at: new Date() })
    const refused = outcome ? problemOf(outcome) : 'cut off'
    if (refused !== null) return fault(`The test was not accepted: ${refused}.`, repair)
  }
  const { posts, last_error } = db ? await readFailedPosts(db) : { posts: 0, last_error: null }
  if (posts > 0)
    return warning(`The address has not accepted ${counted(posts, 'alert')} yet: ${last_error}.`, repair)
  return ok(send ? 'The test was accepted.' : 'No alert waits. `parley doctor --alert` sends a test.')
}
