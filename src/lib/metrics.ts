/** Metrics that are registered once, however many workers of one process count on them. */
import type { Metric, Registry } from 'prom-client'

/** The metric of this name; made by the first who asks for it. */
export function sharedMetric<T extends Metric>(registry: Registry, name: string, make: () => T): T {
  const known = registry.getSingleMetric(name)
  return known === undefined ? make() : (known as T)
}
