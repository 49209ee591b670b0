/**
 * Makes a release's backup file, with rows in every table, for `upgrade.test.ts`. Run it once for each release, on the commit that
 * becomes it, and commit the file.
 *
 *   npm run upgrade:backup [-- --of ANOTHER_CHECKOUT]
 *
 * `--of` makes the file with the code of another checkout, which has its dependencies installed.
 */
import { readFile, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { openEmbedded } from '../../src/db/embedded.ts'
import { openDatabase } from '../../src/db/pool.ts'
import { type Exit, endProcesses, freePort, hangMs, spawnParley, until } from '../harness/process.ts'
import { makeScratch } from '../harness/scratch.ts'
import { emptyTables, rowsOf } from './rows.ts'
import { upgradeSecret } from './secret.ts'

const repository = join(import.meta.dirname, '..', '..')
const { of } = parseArgs({ options: { of: { type: 'string', default: repository } } }).values
const main = join(resolve(of), 'bin', 'main.js')
const env = { PARLEY_SECRET: upgradeSecret, PARLEY_WEBHOOK_ALLOW: '127.0.0.1' }

const { version } = JSON.parse(await readFile(join(of, 'package.json'), 'utf8')) as { version: string }
const file = join(import.meta.dirname, `${version}.backup`)
const home = await makeScratch('parley-upgrade-')
const data_dir = join(home, 'data')
try {
  await runDemo()
  await fillTables()
  await rm(file, { force: true })
  requireDone(await spawnParley(['backup', file, '--data-dir', data_dir], env, main).exit())
  process.stdout.write(`wrote ${file}\n`)
} finally {
  await endProcesses()
  await rm(home, { recursive: true, force: true })
}

interface Found {
  readonly match_count: number
  readonly completeness: { readonly complete: boolean }
  readonly events: readonly unknown[]
}

/** Most tables have rows once the demo has synced; a webhook needs the secret of the instance. */
async function runDemo(): Promise<void> {
  const args = ['start', '--port', await freePort(), '--data-dir', data_dir]
  const service = spawnParley(args, env, main)
  const address = await service.ready()
  const key = await until('the key is printed', hangMs, () => /svc_live_\w+/.exec(service.stdout())?.[0])
  const ask = async (path: string, body?: object): Promise<Found> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const sent = body && { method: 'POST', body: JSON.stringify(body) }
    const answer = await fetch(`${address}/api/v1${path}`, { headers, ...sent })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as Found
  }
  await until('the history is searchable', hangMs, async () => {
    const found = await ask('/search', { time_after: '2000-01-01T00:00:00Z', limit: 1 })
    return found.completeness.complete === true && found.match_count > 0
  })
  // Its people write by themselves.
  await until('there is an event', 180_000, async () => (await ask('/events?wait=20')).events.length > 0)
  await ask('/webhooks', { url: `http://127.0.0.1:${await freePort()}/hook` })
  service.signal('SIGTERM')
  requireDone(await service.exit())
}

async function fillTables(): Promise<void> {
  const embedded = await openEmbedded({ data_dir, claim: 'command' })
  const db = openDatabase(embedded.connection, { pool_size: 1 })
  try {
    const names = await listEmpty()
    for (const [name, statement] of Object.entries(rowsOf)) {
      if (names.includes(name)) await db.pool.query(statement)
    }
    const missing = (await listEmpty()).filter((name) => !emptyTables.includes(name))
    if (missing.length > 0) throw new Error(`Add rows to rows.ts for: ${missing.join(', ')}.`)
  } finally {
    await db.close()
    await embedded.close()
  }

  /** Unlogged tables are left out of backups. */
  async function listEmpty(): Promise<string[]> {
    const { rows } = await db.pool.query<{ name: string }>(`
      select relname as name from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r' and relpersistence = 'p'
        and query_to_xml('select 1 from public.' || quote_ident(relname) || ' limit 1', false, true, '')::text = ''`)
    return rows.map(({ name }) => name)
  }
}

function requireDone({ code, stdout, stderr }: Exit): void {
  if (code !== 0) throw new Error(`exit ${code}: ${stdout}${stderr}`)
}
