/**
 * Limits of the shipped source changed for tests in this process, by their markers (`../faults/patch.ts`). Each
 * project in vitest.config.ts names the patches that its modules are loaded with.
 */
import { relative, sep } from 'node:path'
import type { Plugin } from 'vite'
import { readSources, repository } from '../faults/markers.ts'
import { applyPatches, type Patch, placePatches } from '../faults/patch.ts'

/** A busy machine is slow with the large data of a test. Tests of these limits are loaded without this. */
export const patientStore: readonly Patch[] = [
  { marker: 'limit: connect', replace: 'const connectMsMax = 30_000' },
  { marker: 'limit: lock', replace: 'lock_timeout: 12_000,' },
  { marker: 'limit: statement', replace: 'statement_timeout: 60_000,' },
  { marker: 'limit: idle transaction', replace: 'idle_in_transaction_session_timeout: 90_000,' },
  { marker: 'limit: silence of the database', replace: 'const silentMsMax = 75_000' },
]

/** About a tenth of what is shipped: their proportions stay the same. */
export const briefSessions: readonly Patch[] = [
  { marker: 'limit: live session', replace: 'export const liveSeconds = 9' },
  { marker: 'limit: quiet session', replace: 'const quietMs = 3_000' },
  { marker: 'limit: answer to a ping', replace: 'const pingMsMax = 1_500' },
  {
    marker: 'limit: answer of the platform',
    replace: 'const answerMsMax = { text: 2_000, file: 10_000 }',
  },
]

/** Parts of a file, connections for them, and callers who want one. */
export const briefDownloads: readonly Patch[] = [
  { marker: 'limit: part of a file', replace: 'const partMsMax = 1_500' },
  { marker: 'limit: idle media connection', replace: 'const idleMs = 500' },
  { marker: 'limit: wait for a file', replace: 'const waitMsMax = 2_000' },
]

/** So that silence at every step of a session can be tested. */
export const briefTelegram: readonly Patch[] = [
  { marker: 'limit: connection to a data centre', replace: 'const connectMsMax = 2_000' },
  { marker: 'limit: answer of a data centre', replace: 'const answerMsMax = 2_500' },
]

/** So that a few files exceed it. */
export const smallStore: readonly Patch[] = [
  { marker: 'limit: stored bytes of a workspace', replace: 'const storedBytesMax = sql`1000000`' },
]

/** A call to a hanging receiver ends soon, so that many can be tested. */
export const briefCalls: readonly Patch[] = [
  { marker: 'limit: webhook call', replace: 'const callMsMax = 4_000' },
  { marker: 'limit: attempts at a stop', replace: 'const stopMsMax = 1_500' },
]

/** So that a few connections exceed it. */
export const fewConnections: readonly Patch[] = [
  { marker: 'limit: connections in all', replace: 'const connectionsMax = 60' },
]

/** So that a few pages exceed it. */
export const fewStreams: readonly Patch[] = [
  { marker: 'limit: streams of a process', replace: 'const streamsMax = 30' },
]

/** So that a few files exceed them. */
export const fewFiles: readonly Patch[] = [
  { marker: 'limit: files sent to a workspace', replace: 'const perWorkspace = 4' },
  { marker: 'limit: files sent by a process', replace: 'const perProcess = 6' },
]

/** A play that lasts for seconds, and callers that wait less long for it. */
export const longPlays: readonly Patch[] = [
  { marker: 'limit: processor time of a play', replace: 'const cpuMsMax = 60_000' },
  { marker: 'limit: wait for a play', replace: 'const waitMsMax = 1_000' },
]

/** Callers that wait less long for their turn. */
export const briefTurns: readonly Patch[] = [
  { marker: 'limit: wait for a costly read', replace: 'const waitMsMax = 1_000' },
]

export function withPatches(patches: readonly Patch[]): Plugin {
  const placed = placePatches(readSources(), patches)
  if (typeof placed === 'string') throw new Error(placed)
  return {
    name: 'patches',
    enforce: 'pre',
    // Vitest caches transformed modules for all projects: those with other patches need another id.
    configureVitest({ defineCacheKeyGenerator }) {
      defineCacheKeyGenerator(() => JSON.stringify(patches))
    },
    transform(text, id) {
      const wanted = placed.get(relative(repository, id).split(sep).join('/'))
      return wanted ? { code: applyPatches(text, wanted), map: null } : undefined
    },
  }
}
