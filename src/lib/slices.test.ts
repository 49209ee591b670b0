import { expect, test } from 'vitest'
import { mapInSlices } from './slices.ts'

/** Takes the processor for a few milliseconds. */
function spin(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

test('a long list gives way to other work, and keeps its order', async () => {
  const order: (number | string)[] = []
  setImmediate(() => order.push('other work'))
  const results = await mapInSlices([1, 2, 3], (value) => {
    spin(6)
    order.push(value)
    return value * 2
  })
  expect(results).toEqual([2, 4, 6])
  expect(order).toEqual([1, 'other work', 2, 3])
})

test('a short list is done at once', async () => {
  let isDone = false
  const done = mapInSlices([1, 2, 3], (value) => value).then((results) => {
    isDone = true
    return results
  })
  const before = await new Promise((resolve) => setImmediate(() => resolve(isDone)))
  expect([before, await done]).toEqual([true, [1, 2, 3]])
})
