import { expect, test } from 'vitest'
import { boundedQueue } from './queue.ts'

/** Work that lasts until it is told to end. */
function makeWork() {
  let running = 0
  let most = 0
  const ends: (() => void)[] = []
  const work = async () => {
    most = Math.max(most, ++running)
    await new Promise<void>((resolve) => ends.push(resolve))
    running--
  }
  return { work, ends, most: () => most }
}

const refuse = () => new Error('too many')

test('two run, three wait in turn, the sixth is refused', async () => {
  const run = boundedQueue({ atOnceMax: 2, waitingMax: 3, refuse })
  const { work, ends, most } = makeWork()
  const five = Array.from({ length: 5 }, () => run(work))
  await expect(run(work)).rejects.toThrow('too many')
  expect(ends).toHaveLength(2)
  for (let ended = 0; ended < 5; ended++) {
    ends[ended]?.()
    await five[ended]
  }
  expect(most()).toBe(2)
  const again = run(work)
  ends[5]?.()
  await again
})

test('work that fails gives its place back', async () => {
  const run = boundedQueue({ atOnceMax: 1, waitingMax: 0, refuse })
  const failing = () => Promise.reject(new Error('broken'))
  await expect(run(failing)).rejects.toThrow('broken')
  await expect(run(failing)).rejects.toThrow('broken')
})

test('a place that is handed over is not given to whoever comes in between', async () => {
  const run = boundedQueue({ atOnceMax: 1, waitingMax: 1, refuse })
  const { work, ends, most } = makeWork()
  const [first, second] = [run(work), run(work)]
  ends[0]?.()
  // Comes after the first has ended and before the second has begun to run.
  const third = first.then(() => run(work))
  await first
  ends[1]?.()
  await second
  ends[2]?.()
  await third
  expect(most()).toBe(1)
})
