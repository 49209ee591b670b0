/**
 * Alerts for PARLEY_ALERT_URL: a post when a problem begins and one when it is over, at most one of each an hour about one
 * subject. The state is in the database, so that a restart neither repeats nor loses one.
 */
import type { Config } from '../../config.ts'
import { readTarget } from '../webhooks/webhooks.ts'

export { loops as makeAlertLoops } from './loops.ts'
export { problemOf, readFailedPosts, sendAlert } from './posts.ts'

/** What is wrong with PARLEY_ALERT_URL, as a continuation of its name. It never repeats the address, which may hold a token. */
export function findAlertUrlProblem({
  alert_url,
  webhook_allow,
}: Pick<Config, 'alert_url' | 'webhook_allow'>): string | undefined {
  if (alert_url === undefined) return undefined
  const target = readTarget(alert_url, webhook_allow)
  return typeof target === 'string' ? target : undefined
}
