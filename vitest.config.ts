import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { smallLimits } from './test/limits/small.ts'

/** Takes seconds each: the whole contract, the structure, and what needs no service. `npm run test:quick` runs these. */
const quick = [
  'src/lib/**/*.test.ts',
  'src/*.test.ts',
  'src/platform/**/{world,faults}.test.ts',
  'test/architecture.test.ts',
  'test/contract.test.ts',
]
/** Much data, or a minute of real processes: `npm run test:slow`. */
const slow = ['src/capabilities/search/search-large.test.ts', 'test/streams.test.ts', 'test/takeover.test.ts']
/** Real processes that are hurt: `npm run test:faults`. */
const faults = ['test/faults/**/*.test.ts']
/** Loaded with small limits. */
const limits = ['test/limits/**/*.test.ts']

/** Every test file is in exactly one project, so that `npx vitest run FILE` runs it once. */
export default defineConfig({
  test: {
    globalSetup: ['test/harness/cluster.ts'],
    pool: 'forks',
    // One more than most machines have cores to spare: files wait for PostgreSQL and for processes much of the time.
    maxWorkers: 3,
    projects: [
      project('quick', quick),
      project('main', ['src/**/*.test.ts', 'test/**/*.test.ts'], {
        exclude: [...quick, ...slow, ...faults, ...limits],
      }),
      { ...project('limits', limits), plugins: [smallLimits()] },
      project('slow', slow),
      project('faults', faults),
    ],
  },
})

function project(
  name: string,
  include: string[],
  more: TestProjectInlineConfiguration['test'] = {},
): TestProjectInlineConfiguration {
  // How long a hang may take, not how fast a machine must be.
  return { extends: true, test: { name, include, testTimeout: 60_000, hookTimeout: 120_000, ...more } }
}
