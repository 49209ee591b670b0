/** Metrics for Prometheus. No label ever holds what a caller sent. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, type Registry } from 'prom-client'
import type { App } from '../app.ts'
import { version } from '../lib/version.ts'
import { showInstance } from './instance-metrics.ts'
import { type DropReason, dropReasons } from './sockets.ts'

interface Metrics {
  observe(operation: string, status: number, seconds: number): void
  drop(reason: DropReason): void
}

export function makeMetrics(app: App): Metrics {
  const registry = app.metrics
  showProcess(registry)
  showInstance(app)
  const requests = new Counter({
    name: 'parley_http_requests_total',
    help: 'Requests served, by operation and status.',
    labelNames: ['operation', 'status'],
    registers: [registry],
  })
  const seconds = new Histogram({
    name: 'parley_http_request_seconds',
    help: 'Response time, by operation.',
    labelNames: ['operation'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [registry],
  })
  const dropped = new Counter({
    name: 'parley_http_dropped_total',
    help: 'Connections and requests that were dropped, by reason.',
    labelNames: ['reason'],
    registers: [registry],
  })
  for (const reason of dropReasons) dropped.inc({ reason }, 0)
  new Gauge({
    name: 'parley_db_connections',
    help: 'Connections of the pool, by state.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const { totalCount, idleCount } = app.db.pool
      this.set({ state: 'busy' }, totalCount - idleCount)
      this.set({ state: 'idle' }, idleCount)
      this.set({ state: 'waiting' }, app.db.countWaiting())
    },
  })
  return {
    observe(operation, status, took) {
      requests.inc({ operation, status })
      seconds.observe({ operation }, took)
    },
    drop: (reason) => dropped.inc({ reason }),
  }
}

/** Uses the names that every Node dashboard knows. */
function showProcess(registry: Registry): void {
  collectDefaultMetrics({ register: registry })
  // Gauges named like counters. The same figures exist per type, under names that fit.
  for (const what of ['handles', 'requests', 'resources']) {
    registry.removeSingleMetric(`nodejs_active_${what}_total`)
  }
  new Gauge({
    name: 'parley_build_info',
    help: 'Versions of Parley and Node. Always 1.',
    labelNames: ['version', 'node'],
    registers: [registry],
  }).set({ version, node: process.versions.node }, 1)
}
