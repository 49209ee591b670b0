/** The simulation itself: a seed repeats exactly, and so does its failure. */
import { expect, inject, test } from 'vitest'
import { tellStory } from './story.ts'

test.each([3, 5])('seed %i breaks no promise, and is the same run step by step', async (seed) => {
  const cluster = inject('cluster')
  const first = await tellStory(cluster, seed)
  const again = await tellStory(cluster, seed)
  expect(first.broken).toBeUndefined()
  expect(again.trace.join('\n')).toBe(first.trace.join('\n'))
  expect(first.steps).toBeGreaterThan(250)
})
