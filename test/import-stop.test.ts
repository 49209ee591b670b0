/** A process that is told to stop while it imports a file ends at once, stores nothing of it and leaves no PostgreSQL behind. */
import { readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openDatabase } from '../src/db/pool.ts'
import { type Patch, patchEnv } from './faults/patch.ts'
import { patient, runVerb } from './harness/operator.ts'
import { signIn } from './harness/person.ts'
import { endProcesses, hangMs, type Parley, serversOf, spawnParley, until } from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'

/** A deliberate edit (`test/mutants`) is one of the processes too. */
const mutant: readonly Patch[] = JSON.parse(process.env.TEST_MUTANT ?? '[]')

const marker = 'guard: a stop ends an import'
const say = `process.stderr.write('importing\\n')`
/** An import that goes on as soon as the signal has been handled. */
const held: Patch = {
  marker,
  insert: `${say}; await new Promise((go) => process.once('SIGTERM', () => setImmediate(go)))`,
}
/** One that never ends by itself. */
const stuck: Patch = { marker, insert: `${say}; await new Promise(() => {})` }
const brief: Patch = { marker: 'limit: time to stop', replace: 'export const stopMsMax = 500' }

let data_dir: string
let workspace_id: string
let user_id: string
let file: string

beforeAll(async () => {
  data_dir = await makeScratch('parley-import-stop-')
  file = join(data_dir, 'people.csv')
  await writeFile(file, 'username\nada\nbob\n')
  await run('gate', 'enable', 'all')
  workspace_id = (await run('workspace', 'create', 'Acme')).id as string
  const user = ['user', 'create', 'ana@acme.example', '--workspace', workspace_id, '--role', 'owner']
  user_id = (await run(...user)).id as string
}, patient.timeout)
afterAll(async () => {
  await endProcesses()
  for (const pid of await serversOf(data_dir)) process.kill(pid, 'SIGKILL')
  await rm(data_dir, { recursive: true, force: true })
})

async function run(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await runVerb([...args, '--data-dir', data_dir, '--json'])
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout)
}

async function importFile(...patches: Patch[]): Promise<Parley> {
  const args = ['suppress', 'import', file, '--workspace', workspace_id, '--data-dir', data_dir]
  const importer = spawnParley(args, patchEnv([...patches, ...mutant]))
  await untilImporting(importer)
  expect(await serversOf(data_dir)).toHaveLength(1)
  return importer
}

/** The whole service with its own PostgreSQL, and an import that an owner has begun at the dashboard. */
async function startAndImport(...patches: Patch[]) {
  const args = ['start', '--no-demo', '--port', '0', '--data-dir', data_dir]
  const service = spawnParley(args, patchEnv([...patches, ...mutant]))
  const url = await service.ready()
  const password = readFileSync(join(data_dir, 'postgres.password'), 'utf8').trim()
  const place = { host: join(data_dir, 'socket'), user: 'parley', password, database: 'postgres' }
  const db = openDatabase(place, { pool_size: 2 })
  const cookie = await signIn({ app: { db } }, user_id).finally(() => db.close())
  const path = `/dashboard/api/w/${workspace_id}/suppressions/import?file_name=people.csv`
  const headers = { cookie, origin: url, 'content-type': 'text/csv' }
  const answer = fetch(`${url}${path}`, { method: 'POST', headers, body: 'username\nada\nbob\n' }).then(
    ({ status }) => status,
    () => 'cut off',
  )
  await untilImporting(service)
  return { service, answer }
}

const untilImporting = (process: Parley) =>
  until('it imports', hangMs, () => process.stderr().includes('importing\n'))

const listed = async () => (await run('suppress', 'list', '--workspace', workspace_id)) as unknown

describe('parley suppress import', patient, () => {
  test('a stop ends it: nothing is stored, and no PostgreSQL stays behind', async () => {
    const importer = await importFile(held)
    importer.signal('SIGTERM')
    expect((await importer.exit()).code).toBe(130)
    expect(await serversOf(data_dir)).toEqual([])
    expect(await listed()).toEqual([])
  })

  test('one that does not end is cut off, and no PostgreSQL stays behind', async () => {
    const importer = await importFile(stuck, brief)
    importer.signal('SIGTERM')
    expect((await importer.exit()).code).toBe(130)
    expect(await serversOf(data_dir)).toEqual([])
    expect(await listed()).toEqual([])
  })
})

describe('parley start', patient, () => {
  test('a stop ends an import: nothing is stored, and no PostgreSQL stays behind', async () => {
    const { service, answer } = await startAndImport(held)
    service.signal('SIGTERM')
    expect(await answer).toBe(503)
    expect((await service.exit()).code).toBe(0)
    expect(await serversOf(data_dir)).toEqual([])
    expect(await listed()).toEqual([])
  })

  test('one that does not end is cut off, and no PostgreSQL stays behind', async () => {
    const { service } = await startAndImport(stuck, brief)
    service.signal('SIGTERM')
    expect((await service.exit()).code).toBe(1)
    expect(await serversOf(data_dir)).toEqual([])
    expect(await listed()).toEqual([])
  })
})
