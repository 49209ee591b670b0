import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Heap } from './heap.ts'

test('returns the first by its order, whatever is added and taken in between', () => {
  const steps = fc.array(fc.oneof(fc.integer({ min: 0, max: 20 }), fc.constant('take')), { maxLength: 200 })
  fc.assert(
    fc.property(steps, (all) => {
      const heap = new Heap<number>((one, other) => one - other)
      const sorted: number[] = []
      for (const step of all) {
        if (typeof step === 'number') {
          heap.add(step)
          sorted.push(step)
          sorted.sort((one, other) => one - other)
        } else {
          expect(heap.takeFirst()).toBe(sorted.shift())
        }
        expect(heap.first()).toBe(sorted[0])
      }
    }),
  )
})
