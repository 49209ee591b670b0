/** Long lists of small work on the event loop, in slices: other requests run in between. */
import { setImmediate as otherWork } from 'node:timers/promises'

const sliceMsMax = 5

/** `act` on each value in turn. It gives way to other work every few milliseconds. */
export async function mapInSlices<T, R>(values: readonly T[], act: (value: T) => R): Promise<R[]> {
  const results: R[] = []
  let begunAt = performance.now()
  for (const value of values) {
    if (performance.now() - begunAt >= sliceMsMax) {
      await otherWork() // guard: slices give way
      begunAt = performance.now()
    }
    results.push(act(value))
  }
  return results
}
