/**
 * Alerts for PARLEY_ALERT_URL: a post when a problem begins and one when it is over, at most one of each an hour about one
 * subject, three about the whole instance. A heartbeat for PARLEY_HEARTBEAT_URL while the instance works. The state is in the database, so that a restart neither repeats nor loses one.
 */
import type { Config } from '../../config.ts'
import { readTarget } from '../webhooks/webhooks.ts'

export { loops as makeAlertLoops } from './loops.ts'
export { problemOf, readFailedPosts, sendAlert } from './posts.ts'

type Addresses = Pick<Config, 'alert_url' | 'heartbeat_url' | 'webhook_allow'>

/** What is wrong with PARLEY_ALERT_URL or PARLEY_HEARTBEAT_URL, as a sentence. It never repeats the address, which may hold a token. */
export function findAlertUrlProblem(config: Addresses): string | undefined {
  const given = { PARLEY_ALERT_URL: config.alert_url, PARLEY_HEARTBEAT_URL: config.heartbeat_url }
  for (const [name, url] of Object.entries(given)) {
    const target = url === undefined ? undefined : readTarget(url, config.webhook_allow)
    if (typeof target === 'string') return `${name} ${target}.`
  }
  return undefined
}
