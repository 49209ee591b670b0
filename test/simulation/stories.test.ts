/** The simulation itself: a seed repeats exactly, and so does its failure. */
import { expect, inject, test } from 'vitest'
import { runStory } from './story.ts'

// The second erases people.
test.each([3, 8])('seed %i breaks no promise, and is the same run step by step', async (seed) => {
  const cluster = inject('cluster')
  const first = await runStory(cluster, seed)
  const again = await runStory(cluster, seed)
  expect(first.broken).toBeUndefined()
  expect(again.trace.join('\n')).toBe(first.trace.join('\n'))
  expect(first.steps).toBeGreaterThan(250)
})
