/** The loops of alerts: one looks for problems, one posts. There are none without PARLEY_ALERT_URL. */
import type { App } from '../../app.ts'
import type { Loop } from '../../loop.ts'
import { deliverPosts } from './posts.ts'
import { alertsQueued, noteProblems } from './state.ts'

const lookMs = 10_000
const postMs = 5_000

export const loops = ({ config: { alert_url: url } }: App): readonly Loop[] => {
  if (url === undefined) return []
  return [
    {
      name: 'note-problems',
      restMs: lookMs,
      async step(app) {
        await noteProblems(app)
        return false
      },
    },
    {
      name: 'post-alerts',
      restMs: postMs,
      wakeOn: alertsQueued,
      step: (app, stopping) => deliverPosts(app, url, stopping),
    },
  ]
}
