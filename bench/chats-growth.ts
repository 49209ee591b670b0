/**
 * How the cost of a page grows: deeper in the list, with the number of chats, with other tenants in the same tables.
 * Buffers are those of the statement that the service runs; CPU is that of the whole service and its PostgreSQL.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { setGates } from '../src/capabilities/gates/gates.ts'
import { makeLogger } from '../src/cli/log.ts'
import { type OpenApp, openApp } from '../src/cli/open.ts'
import { readConfig } from '../src/config.ts'
import { operations } from '../src/lists/operations.ts'
import { routes } from '../src/lists/routes.ts'
import { benchDirectory, openBench, requireData } from './data.ts'
import { number, quantile, row, verdict } from './harness.ts'
import {
  connectionTo,
  cpuOf,
  get,
  load,
  makeReader,
  type Running,
  start,
  statementsOf,
  stop,
} from './load.ts'

const rounds = 40
const requests = 75
const warmup = 6_000
const deep = 1_000

interface Page {
  readonly service: Running
  readonly data_dir: string
  readonly url: string
  readonly key: string
}

const alone = await mkdtemp(join(tmpdir(), 'parley-bench-'))
try {
  const readers = await prepare()
  const service = await start('service')
  const other = await start('service', { BENCH_DIR: alone })
  try {
    await compare('chats', '/chats?limit=50', { service, other, ...readers })
    await compare('contacts', '/contacts?limit=50', { service, other, ...readers })
  } finally {
    await stop(other)
    await stop(service)
  }
} finally {
  await rm(alone, { recursive: true, force: true })
}

async function prepare() {
  const app = await openBench()
  try {
    await requireData(app)
    await openGates(app)
    const large = await makeReader(app, 'Large')
    const small = await makeReader(app, 'Small')
    return { large, small, single: await prepareAlone() }
  } finally {
    await app.close()
  }
}

/** An instance that contains only the small workspace. */
async function prepareAlone() {
  const config = readConfig({ PARLEY_POOL_SIZE: '16' })
  const log = makeLogger('silent')
  const app = await openApp({ config, data_dir: alone, log, claim: 'service', operations, routes })
  try {
    await requireData(app, { alone: true })
    await openGates(app)
    return await makeReader(app, 'Small')
  } finally {
    await app.close()
  }
}

async function openGates(app: OpenApp): Promise<void> {
  await setGates(app, 'system', { names: ['all', 'extended'], enabled: true })
}

type Reader = Awaited<ReturnType<typeof makeReader>>
interface Readers {
  readonly service: Running
  readonly other: Running
  readonly large: Reader
  readonly small: Reader
  readonly single: Reader
}

async function compare(name: string, path: string, of: Readers): Promise<void> {
  const pageOf = (service: Running, data_dir: string, { key, account_id }: Reader): Page => {
    return { service, data_dir, key, url: `${service.address}/api/v1${path}&account_id=${account_id}` }
  }
  const first = pageOf(of.service, benchDirectory, of.large)
  const pages = {
    first,
    deep: await deeper(first),
    crowded: pageOf(of.service, benchDirectory, of.small),
    alone: pageOf(of.other, alone, of.single),
  }
  const buffers = await each(pages, buffersOf)
  const cpu = await cpuOfEach(pages)
  const textOf = (values: Record<keyof typeof pages, number>, unit: string) =>
    `${number(values.first)}, ${number(values.deep)}, ${number(values.crowded)}, ${number(values.alone)}${unit}`
  row(`${name}, page 1, page ${number(deep)}, small among others, alone`, '')
  row(`${name}: buffers`, textOf(buffers, ''))
  row(`${name}: CPU`, textOf(cpu, ' µs'))
  for (const [unit, values] of [['buffers', buffers] as const, ['CPU', cpu] as const]) {
    verdict(`${name}: ${unit} of page ${number(deep)} over page 1`, values.deep / values.first, { most: 1.1 })
    verdict(`${name}: ${unit} of 1,000,000 over 10,000`, values.first / values.alone, { most: 1.2 })
    verdict(`${name}: ${unit} among 200 workspaces over alone`, values.crowded / values.alone, { most: 1.1 })
  }
}

/** The page reached after that many pages. */
async function deeper(page: Page): Promise<Page> {
  let cursor = ''
  for (let at = 1; at < deep; at++) {
    const { body } = await get(`${page.url}${cursor && `&cursor=${cursor}`}`, page.key)
    cursor = JSON.parse(body).next_cursor
  }
  return { ...page, url: `${page.url}&cursor=${cursor}` }
}

async function buffersOf({ service, data_dir, url, key }: Page): Promise<number> {
  const client = new pg.Client(connectionTo(data_dir))
  await client.connect()
  let touched = 0
  for (const { text, values } of await statementsOf(service, url, key)) {
    const explain = `explain (analyze, buffers, format json) ${text}`
    // On its first run a connection also reads the catalogs.
    await client.query(explain, values as unknown[])
    const { rows } = await client.query(explain, values as unknown[])
    const plan = rows[0]['QUERY PLAN'][0].Plan
    touched += plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
  }
  await client.end()
  return touched
}

/** Median microseconds per request of each page. They take turns, so that a busy moment of the machine affects all of them. */
async function cpuOfEach<K extends string>(pages: Record<K, Page>): Promise<Record<K, number>> {
  const seen = await each(pages, async ({ url, key }): Promise<number[]> => {
    await load(url, key, warmup)
    return []
  })
  for (let round = 0; round < rounds; round++) {
    const spent = await each(pages, ({ service, data_dir, url, key }) =>
      cpuOf({ processes: [service], data_dir }, () => load(url, key, requests)),
    )
    for (const name of Object.keys(pages) as K[]) seen[name].push(spent[name])
  }
  return each(seen, async (ms) => (quantile(ms, 0.5) / requests) * 1000)
}

async function each<K extends string, V, T>(
  named: Record<K, V>,
  work: (value: V) => Promise<T>,
): Promise<Record<K, T>> {
  const results: Partial<Record<K, T>> = {}
  for (const name of Object.keys(named) as K[]) results[name] = await work(named[name])
  return results as Record<K, T>
}
