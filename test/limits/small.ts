/**
 * Limits of the shipped source made small, for tests that would wait for minutes otherwise. The tests of this folder
 * are a project of their own in vitest.config.ts, whose modules are loaded with these patches (`../faults/patch.ts`).
 */
import { relative, sep } from 'node:path'
import type { Plugin } from 'vite'
import { readSources, repository } from '../faults/markers.ts'
import { applyPatches, type Patch, placePatches } from '../faults/patch.ts'

/** A tenth of what is shipped: what depends on their proportions holds as it does there. */
const patches: readonly Patch[] = [
  { marker: 'limit: live session', replace: 'export const liveSeconds = 9' },
  { marker: 'limit: quiet session', replace: 'const quietMs = 3_000' },
  { marker: 'limit: answer to a ping', replace: 'const pingMsMax = 1_500' },
]

export function smallLimits(): Plugin {
  const placed = placePatches(readSources(), patches)
  if (typeof placed === 'string') throw new Error(placed)
  return {
    name: 'small-limits',
    enforce: 'pre',
    transform(text, id) {
      const wanted = placed.get(relative(repository, id).split(sep).join('/'))
      return wanted ? { code: applyPatches(text, wanted), map: null } : undefined
    },
  }
}
