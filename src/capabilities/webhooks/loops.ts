/** The loops of webhooks: one plans deliveries, one delivers, one forgets, one seals old addresses. */
import { Counter, Gauge, Histogram } from 'prom-client'
import type { App } from '../../app.ts'
import { sql } from '../../db/sql.ts'
import { sequenced } from '../../events/sequencer.ts'
import { sharedMetric } from '../../lib/metrics.ts'
import type { Loop } from '../../loop.ts'
import { sealWebhookAddresses } from './address-loop.ts'
import { HttpCaller } from './call.ts'
import { Deliverer, type Ending } from './deliverer.ts'
import { countDue, findNextDue } from './endpoints.ts'
import { forgetDeliveries } from './forgetting.ts'
import { plan, planned } from './planning.ts'

const restMs = 250
const forgetMs = 60_000

const planLoop: Loop = {
  name: 'plan-webhooks',
  restMs,
  wakeOn: sequenced,
  async step({ db, wake }) {
    const moved = await plan(db)
    if (moved > 0) wake.signal(planned)
    return moved > 0
  },
}

function deliverLoop(app: App): Loop {
  const caller = new HttpCaller({ allow: app.config.webhook_allow })
  const deliverer = new Deliverer(app, { caller, count: countAttempts(app), lag: measureLag(app) })
  app.wake.on(planned, () => deliverer.lookForMore())
  return {
    name: 'deliver-webhooks',
    restMs,
    wakeOn: planned,
    step: (_, stopping) => deliverer.step(stopping),
    nextDueAt: ({ db }) => findNextDue(db),
    // Attempts in flight may no longer be due: the breaker may have opened while they ran.
    countDue: async ({ db }) => (await countDue(db)) + deliverer.underWay,
  }
}

const forgetLoop: Loop = {
  name: 'forget-deliveries',
  restMs: forgetMs,
  step: async ({ db }) => (await forgetDeliveries(db)).more,
}

export const loops = (app: App): readonly Loop[] => {
  countInactive(app)
  return [planLoop, deliverLoop(app), forgetLoop, sealWebhookAddresses]
}

function countAttempts(app: App): (ending: Ending) => void {
  const name = 'parley_webhook_attempts_total'
  const counter = sharedMetric(app.metrics, name, () => {
    return new Counter({
      name,
      help: 'Attempts to deliver an event, by result.',
      labelNames: ['outcome'],
      registers: [app.metrics],
    })
  })
  return (outcome) => counter.inc({ outcome })
}

function measureLag({ metrics }: App): (seconds: number) => void {
  const name = 'parley_webhook_lag_seconds'
  const histogram = sharedMetric(metrics, name, () => {
    const help = 'From an event until its endpoint accepted it, retries included.'
    return new Histogram({ name, help, buckets: lagBuckets, registers: [metrics] })
  })
  return (seconds) => histogram.observe(Math.max(0, seconds))
}

/** In seconds. Retries go on for hours. */
const lagBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 43_200]

function countInactive(app: App): void {
  const name = 'parley_webhooks_inactive'
  sharedMetric(app.metrics, name, () => {
    return new Gauge({
      name,
      help: 'Endpoints deactivated after too many failures, on the whole instance.',
      registers: [app.metrics],
      async collect() {
        const { count } = await app.db.one<{ count: number }>(sql`
          select count(*)::int as count from webhooks
          where disabled_at is not null and not active and deleted_at is null`)
        this.set(count)
      },
    })
  })
}
