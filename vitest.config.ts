import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import type { Patch } from './test/faults/patch.ts'
import {
  briefCalls,
  briefDownloads,
  briefSessions,
  briefTelegram,
  briefTurns,
  fewConnections,
  fewFiles,
  fewStreams,
  longPlays,
  patientStore,
  smallStore,
  withPatches,
} from './test/limits/patched.ts'

/** One deliberate edit of the shipped source (`test/mutants`): the tests are expected to fail. */
const mutant: readonly Patch[] = JSON.parse(process.env.TEST_MUTANT ?? '[]')

/** The whole contract, the structure, and what needs no service: `npm run test:quick`. */
const quick = [
  'src/{lib,rules}/**/*.test.ts',
  'src/*.test.ts',
  'src/platform/**/{world,faults}.test.ts',
  'test/architecture.test.ts',
  'test/contract.test.ts',
]
/** How the store gives up on its database, and how much memory a process uses: run alone, as shipped. */
const shipped = ['src/db/**/*.test.ts', 'src/http/multipart.test.ts', 'test/idempotency.test.ts']
/** Sessions with small limits: `npm run test:slow`. */
const limits = ['test/limits/**/*.test.ts']
/** A hostile network with short deadlines: `npm run test:slow`. */
const network = ['test/limits/telegram-hostile.test.ts']
/** A workspace with little storage: `npm run test:slow`. */
const stored = ['test/stored-files.test.ts']
/** Files that take more than ten seconds, mostly for large data, real processes and time limits: `npm run test:slow`. */
const slow = [
  'src/capabilities/accounts/login-routes.test.ts',
  'src/capabilities/approvals/bindings.test.ts',
  'src/capabilities/campaigns/verify-platform.test.ts',
  'src/capabilities/campaigns/running/{hand-messages,identities}.test.ts',
  'src/capabilities/erasing/erasing.test.ts',
  'src/capabilities/events/events.test.ts',
  'src/capabilities/media/{media,slow-readers}.test.ts',
  'src/capabilities/people/{restored,scenes}.test.ts',
  'src/capabilities/search/index/{reindex,search-index}.test.ts',
  'src/capabilities/search/{search-fuzz,search-large}.test.ts',
  'src/capabilities/sessions/devices.test.ts',
  'src/capabilities/suppressions/{import-table,list-file}.test.ts',
  'src/capabilities/webhooks/delivery.test.ts',
  'src/db/{backup,backup-encryption,embedded-cluster}.test.ts',
  'src/ledger/{enqueue,files,hand-over}.test.ts',
  'src/lib/zip.test.ts',
  'src/platform/sandbox/process.test.ts',
  'test/platform/mtproto/{login,process,sending}.test.ts',
  'src/platform/telegram/{first-day,media,rehearse}.test.ts',
  'test/{account-sessions,admin,clock,clock-changes,codes,flood,parsers,secrets-journey,telegram}.test.ts',
  'test/back-in-time.test.ts',
  'test/encrypted-backup.test.ts',
  'test/erasure-scan.test.ts',
  'test/rotation.test.ts',
  'test/import-stop.test.ts',
  'test/backup{,-large}.test.ts',
  'test/contract.reread.test.ts',
  'test/{cli,cli-webhooks,command-line,demo,deploy-installed,deploy-programs,doctor,first-start,readme}.test.ts',
  'test/{inbox-plans,mcp-stdio,proxies,sending-state}.test.ts',
  'test/toy/toy.test.ts',
  'test/{clone-drill,deploy-through,own-postgresql}.test.ts',
  'test/{processes,several-processes}.test.ts',
  'test/lockout.test.ts',
  'test/people.test.ts',
  'test/pools.test.ts',
  'test/races.test.ts',
  'test/simulation/**/*.test.ts',
  'test/full-disk.test.ts',
  'test/log-disk.test.ts',
  'test/slow-start.test.ts',
  'test/streams.test.ts',
  'test/takeover.test.ts',
  'test/telegram-{campaigns,files,large,phone,rehearse,strangers,people}.test.ts',
  'test/upgrade/**/*.test.ts',
]
/** Real processes under faults: `npm run test:faults`. */
const faults = ['test/faults/**/*.test.ts']

/** Thousands of requests made from the document: `npm run test:fuzz`. */
const fuzz = ['test/fuzz/**/*.test.ts']

/** Every test file is in exactly one project, so that `npx vitest run FILE` runs it once. */
export default defineConfig({
  test: {
    globalSetup: ['test/harness/cluster.ts'],
    setupFiles: ['test/harness/loopback-setup.ts'],
    pool: 'forks',
    // Files wait for PostgreSQL and for processes much of the time.
    maxWorkers: 3,
    projects: [
      project('quick', quick, { exclude: slow, isolate: false, patches: patientStore }),
      project('main', ['src/**/*.test.ts', 'web/src/**/*.test.ts', 'test/**/*.test.ts'], {
        exclude: [...quick, ...shipped, ...limits, ...stored, ...slow, ...faults, ...fuzz],
        isolate: false,
        patches: patientStore,
      }),
      project('shipped', shipped, { exclude: slow }),
      project('limits', limits, {
        exclude: network,
        patches: [
          ...patientStore,
          ...briefDownloads,
          ...briefSessions,
          ...briefCalls,
          ...fewConnections,
          ...fewFiles,
          ...fewStreams,
          ...longPlays,
          ...briefTurns,
        ],
      }),
      project('stored', stored, { patches: [...patientStore, ...smallStore] }),
      project('slow', slow, { patches: patientStore }),
      project('network', network, { patches: [...patientStore, ...briefTelegram] }),
      project('faults', faults),
      project('fuzz', fuzz, { patches: patientStore }),
    ],
  },
})

function project(
  name: string,
  include: string[],
  {
    patches = [],
    exclude = [],
    ...more
  }: TestProjectInlineConfiguration['test'] & { patches?: typeof patientStore } = {},
): TestProjectInlineConfiguration {
  return {
    extends: true,
    plugins: [withPatches([...patches, ...mutant])],
    // A limit for hangs, not for slow machines.
    test: {
      name,
      include,
      exclude: ['**/node_modules/**', ...exclude],
      testTimeout: 180_000,
      hookTimeout: 240_000,
      ...more,
    },
  }
}
