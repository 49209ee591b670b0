/** Where the time of a send goes, as histograms of this process. */
import { Histogram } from 'prom-client'
import type { App } from '../app.ts'
import { sharedMetric } from '../lib/metrics.ts'

/** In seconds. A send with a file may take minutes. */
export const latencyBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]

const stages = {
  wait: [
    'parley_operation_wait_seconds',
    'From the acceptance of an operation until a worker of this process took it. Campaign messages do not wait.',
  ],
  call: [
    'parley_platform_call_seconds',
    "From the call to the platform's answer, or until the time for it was over.",
  ],
  record: [
    'parley_operation_recording_seconds',
    'From the answer of the platform until the outcome was stored.',
  ],
} as const

/** From the start of a worker, so that an alert never asks about a metric that is not there. */
export function openStages(app: App): void {
  for (const stage of Object.keys(stages) as (keyof typeof stages)[]) histogramOf(app, stage)
}

/** Costs no round trip: what it observes is known where it is called. */
export function observeStage(app: App, stage: keyof typeof stages, seconds: number): void {
  histogramOf(app, stage).observe(Math.max(0, seconds))
}

function histogramOf({ metrics }: App, stage: keyof typeof stages): Histogram {
  const [name, help] = stages[stage]
  return sharedMetric(metrics, name, () => {
    return new Histogram({ name, help, buckets: latencyBuckets, registers: [metrics] })
  })
}
