/** Metrics that are registered once, however many workers of one process use them. */
import type { Metric, Registry } from 'prom-client'

/** The metric of this name; the first caller creates it. */
export function sharedMetric<T extends Metric>(registry: Registry, name: string, make: () => T): T {
  const known = registry.getSingleMetric(name)
  return known === undefined ? make() : (known as T)
}
