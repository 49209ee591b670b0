/**
 * Every release from 0.2.0 on has a backup file here, with rows in every table. Each is restored and migrated by this code, which
 * then reads it. A release adds its file with `npm run upgrade:backup`.
 */
import { globSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Embedded, openEmbedded } from '../../src/db/embedded.ts'
import { openDatabase } from '../../src/db/pool.ts'
import { version } from '../../src/lib/version.ts'
import { runVerb } from '../harness/operator.ts'
import { endProcesses, freePort, spawnParley } from '../harness/process.ts'
import { makeScratch } from '../harness/scratch.ts'
import { upgradeSecret } from './secret.ts'

const files = globSync('*.backup', { cwd: import.meta.dirname }).sort()
const env = { PARLEY_SECRET: upgradeSecret }

test('0.2.0 and this version have a backup', () => {
  expect(files.map((file) => basename(file, '.backup'))).toEqual(expect.arrayContaining(['0.2.0', version]))
})

describe.each(files)('%s', (file) => {
  let home: string
  let data_dir: string
  let embedded: Embedded | undefined
  beforeAll(async () => {
    home = await makeScratch('parley-upgrade-')
    data_dir = join(home, 'data')
  })
  afterAll(async () => {
    await endProcesses()
    await embedded?.close()
    await rm(home, { recursive: true, force: true })
  })

  async function json<T>(...args: readonly string[]): Promise<T> {
    const { code, stdout, stderr } = await runVerb([...args, '--json', '--data-dir', data_dir], env)
    expect([code, stderr]).toEqual([0, ''])
    return JSON.parse(stdout) as T
  }

  test('is restored and migrated, with rows in every table', async () => {
    const path = join(import.meta.dirname, file)
    const tables = await readTables(path)
    const filled = tables.filter(({ rows }) => rows > 0).map(({ name }) => name)
    expect(tables.map(({ name }) => name).filter((name) => !filled.includes(name))).toEqual(emptyOnes)
    const parley_version = basename(file, '.backup')
    expect(await json('restore', path, '--without-erasures')).toMatchObject({
      parley_version,
      tables: tables.length,
    })
    // Stays open, so that no command below starts and stops the server.
    embedded = await openEmbedded({ data_dir, claim: 'command' })
    const counts = await countRows(embedded)
    expect(filled.filter((name) => counts.get(name) === 0)).toEqual([])
  })

  test('verifies: the audit log, and every campaign', async () => {
    expect(await json('audit', 'verify')).toMatchObject({ ok: true })
    const campaigns = await json<{ id: string }[]>('campaign', 'list')
    expect(campaigns.length).toBeGreaterThan(0)
    for (const { id } of campaigns) expect(await json('verify', 'campaign', id)).toMatchObject({ ok: true })
  })

  test('is served: the service starts on it, and reads what it had', async () => {
    const [workspace] = await json<{ id: string }[]>('workspace', 'list')
    const [user] = await json<{ id: string }[]>('user', 'list')
    const made = ['--workspace', workspace?.id ?? '', '--user', user?.id ?? '', '--name', 'upgraded']
    const { key } = await json<{ key: string }>(
      'key',
      'create',
      ...made,
      '--scopes',
      'read,write,send,campaigns',
    )
    const service = spawnParley(['start', '--port', await freePort(), '--data-dir', data_dir], env)
    const address = await service.ready()
    expect((await fetch(`${address}/readyz`)).status).toBe(200)
    for (const [path, name] of reads) {
      const response = await fetch(`${address}/api/v1${path}`, {
        headers: { authorization: `Bearer ${key}` },
      })
      const body = (await response.json()) as Record<string, readonly unknown[]>
      expect([path, response.status, (body[name]?.length ?? 0) > 0]).toEqual([path, 200, true])
    }
    service.signal('SIGTERM')
    expect(await service.exit()).toMatchObject({ code: 0 })
  })
})

/** A route, and the list in its answer. */
const reads: readonly (readonly [path: string, name: string])[] = [
  ['/campaigns', 'campaigns'],
  ['/webhooks', 'webhooks'],
  ['/events', 'events'],
]

const emptyOnes = ['manual_clock', 'simulated_time']

/** From the last frame of the file. */
async function readTables(
  path: string,
): Promise<readonly { readonly name: string; readonly rows: number }[]> {
  const bytes = await readFile(path)
  const zipped = bytes.subarray(bytes.indexOf('\n') + 1, bytes.lastIndexOf('sha256 '))
  const text = gunzipSync(zipped).toString('latin1')
  return JSON.parse(text.slice(text.lastIndexOf('{"tables"'))).tables
}

async function countRows({ connection }: Embedded): Promise<Map<string, number>> {
  const db = openDatabase(connection, { pool_size: 1 })
  try {
    const { rows } = await db.pool.query<{ name: string; rows: number }>(`
      select relname as name, (xpath('/row/count/text()', query_to_xml(
        'select count(*) from public.' || quote_ident(relname), false, true, '')))[1]::text::int as rows
      from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`)
    return new Map(rows.map(({ name, rows: count }) => [name, count]))
  } finally {
    await db.close()
  }
}
