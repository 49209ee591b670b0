/**
 * Campaigns under a seed: the service on a manual clock in one process, with people, faults, pauses, cancels, gates and
 * clock jumps that the seed decides (`story.ts`).
 *
 *   npm run test:simulation -- --seeds 200         that many stories
 *   npm run test:simulation -- --seed 17           that one, with everything that was done
 *
 * The acts of a seed are the same each time; what they meet in time is another matter, because sessions and gatherers run
 * by themselves. Exit 1: a promise was broken, or states that must be reached were not.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: { seeds: { type: 'string', default: '20' }, seed: { type: 'string' } },
})
const root = join(import.meta.dirname, '..', '..')
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
const { status } = spawnSync(
  process.execPath,
  [vitest, 'run', 'test/simulation/stories.test.ts', '--maxWorkers=1'],
  {
    cwd: root,
    stdio: 'inherit',
    env: {
      ...process.env,
      SIMULATION_SEEDS: values.seeds,
      ...(values.seed !== undefined && { SIMULATION_SEED: values.seed }),
    },
  },
)
process.exit(status ?? 1)
