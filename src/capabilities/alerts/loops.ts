/** The loops of alerts: one looks for problems, one posts; and the heartbeat's. Each runs only if its address is set. */
import type { App } from '../../app.ts'
import type { Loop } from '../../loop.ts'
import { beatOutside } from './heartbeat.ts'
import { deliverPosts } from './posts.ts'
import { alertsQueued, noteProblems } from './state.ts'

const lookMs = 10_000
const postMs = 5_000

const beatMs = 60_000

export const loops = (app: App): readonly Loop[] => [...alertLoops(app), ...heartbeatLoops(app)]

function heartbeatLoops({ config: { heartbeat_url: url } }: App): readonly Loop[] {
  if (url === undefined) return []
  return [
    {
      name: 'heartbeat',
      restMs: beatMs,
      async step(app, stopping) {
        await beatOutside(app, url, stopping)
        return false
      },
    },
  ]
}

function alertLoops({ config: { alert_url: url } }: App): readonly Loop[] {
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
