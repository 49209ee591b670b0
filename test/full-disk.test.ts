/** A full data disk: what needs space gets 503, and once there is space everything works again by itself. */
import { randomUUID } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { layOut } from '../src/db/embedded-cluster.ts'
import { exampleAccountId } from '../src/lib/examples.ts'
import { openLocalSandbox } from '../src/platform/sandbox/sandbox.ts'
import { endProcesses, hangMs, serversOf, spawnParley, until } from './harness/process.ts'
import { mountSmallDisk } from './harness/small-disk.ts'

/** A new cluster and its write-ahead log take about a quarter of it. */
const disk = await mountSmallDisk(200)
const data_dir = join(disk?.path ?? '', 'data')
afterAll(async () => {
  await endProcesses()
  for (const pid of disk ? await serversOf(data_dir) : []) process.kill(pid, 'SIGKILL')
  await disk?.remove()
})

/** Sends a file of 3 MB, which needs space for its bytes, to a person of the demo who accepts every message. */
async function upload(url: string, key: string): Promise<unknown> {
  const form = new FormData()
  form.set('account_id', exampleAccountId)
  form.set('chat_id', 'platform:chat:42')
  form.set('attachments', new Blob([Buffer.alloc(3_000_000, 'x')]), 'a.bin')
  const headers = { authorization: `Bearer ${key}`, 'idempotency-key': randomUUID() }
  const response = await fetch(`${url}/api/v1/messages`, { method: 'POST', headers, body: form })
  const { code } = (await response.json()) as { code?: string }
  return code ? [response.status, code] : response.status
}

async function connect(): Promise<pg.Client> {
  const password = (await readFile(join(data_dir, 'postgres.password'), 'utf8')).trim()
  const host = join(data_dir, 'socket')
  const client = new pg.Client({ host, user: 'parley', password, database: 'postgres' })
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Begins a segment of the write-ahead log, so that a few megabytes need no other: without one PostgreSQL would end. */
async function beginSegment(): Promise<void> {
  const client = await connect()
  const rest = `select pg_size_bytes(current_setting('wal_segment_size')) as size,
    (pg_current_wal_insert_lsn() - '0/0')::bigint as written`
  await client.query(
    `select pg_logical_emit_message(true, 'x', repeat('x', (size - written % size)::int)) from (${rest}) as log`,
  )
  await client.end()
}

/** Fills the write-ahead log until it needs a new segment, without which PostgreSQL ends. */
async function endServer(): Promise<void> {
  const client = await connect()
  let lost = false
  client.on('end', () => {
    lost = true
  })
  await until('the server has ended', hangMs, async () => {
    await client.query("select pg_logical_emit_message(true, 'x', repeat('x', 4000000))").catch(() => {})
    return lost
  })
}

/** The server was started this often, and ended each time. */
async function untilTried(times: number): Promise<void> {
  const seen = new Set<number>()
  await until(`the server was started ${times} times in vain`, hangMs, async () => {
    const servers = await serversOf(data_dir)
    for (const pid of servers) seen.add(pid)
    return seen.size >= times && servers.length === 0
  })
}

test.skipIf(!disk)(
  'a full data disk answers 503 and recovers by itself, also when the server cannot even start on it',
  { timeout: 180_000 },
  async () => {
    const parley = spawnParley(['start', '--data-dir', data_dir, '--port', '0', '--admin-port', '0'])
    const url = await parley.ready()
    const key = await until('the key is shown', hangMs, () => /svc_live_\w+/.exec(parley.stdout())?.[0])
    const get = async (path: string) => {
      const response = await fetch(url + path, { headers: { authorization: `Bearer ${key}` } })
      return { status: response.status, body: (await response.json()) as never }
    }
    const send = () => upload(url, key)
    await until('its account is live', hangMs, async () => (await send()) === 200)

    await beginSegment()
    await disk?.fill()
    expect(await send()).toEqual([503, 'store_unavailable'])
    expect(await get('/api/v1/me')).toMatchObject({ status: 200 })
    await disk?.empty()
    await until('it sends again', hangMs, async () => (await send()) === 200)

    await disk?.fill()
    await endServer()
    await untilTried(3)
    expect(await send()).toEqual([503, 'store_unavailable'])
    expect(await get('/healthz')).toMatchObject({ status: 200 })
    await disk?.empty()
    await until('it sends again', hangMs, async () => (await send()) === 200)
    await until('everything works', hangMs, async () => (await get('/readyz')).status === 200)

    // SIGTERM while the server is down ends the service, and leaves no server behind.
    await disk?.fill()
    await endServer()
    parley.signal('SIGTERM')
    expect((await parley.exit()).code).toBe(0)
    expect(await serversOf(data_dir)).toEqual([])
  },
)

const startOf = (path: string) => {
  return ['start', '--data-dir', join(path, 'first'), '--port', '0', '--admin-port', '0']
}

/** In a new data directory, to its end. */
async function firstStart(path: string): Promise<string> {
  const { code, stderr } = await spawnParley(startOf(path)).ended()
  return `${code}: ${stderr}`
}

// Too small for a cluster's first files, for all of them, and for the tables.
test.skipIf(!disk).each([1, 20, 40])(
  'a first start on a disk of %i MB says that it is full',
  { timeout: 180_000 },
  async (megabytes) => {
    const small = await mountSmallDisk(megabytes)
    try {
      const said = await firstStart(small?.path ?? '')
      expect(said).toMatch(/^1: The disk (of \S+ )?is full/)
      expect(said).not.toContain('bug in Parley')
      expect(await serversOf(join(small?.path ?? '', 'first'))).toEqual([])
    } finally {
      await small?.remove()
    }
  },
)

test.skipIf(!disk)('a cluster that does not fit on its disk says that the disk is full', async () => {
  const small = await mountSmallDisk(20)
  try {
    await expect(layOut(join(small?.path ?? '', 'first'))).rejects.toThrow(/^The disk of \S+ is full/)
  } finally {
    await small?.remove()
  }
})

test.skipIf(!disk)(
  'a first start on a disk without a free byte says that it is full, and works once there is room',
  { timeout: 180_000 },
  async () => {
    await disk?.empty()
    await rm(data_dir, { recursive: true, force: true })
    await disk?.fill()
    const path = disk?.path ?? ''
    expect(await firstStart(path)).toMatch(/^1: The disk (of \S+ )?is full/)
    await disk?.empty()
    const parley = spawnParley(startOf(path))
    await parley.ready()
    parley.signal('SIGTERM')
    expect((await parley.exit()).code).toBe(0)
    await rm(join(path, 'first'), { recursive: true, force: true })
  },
)

test.skipIf(!disk)(
  'the sandbox continues once its disk has space, and has lost and torn nothing',
  async () => {
    await disk?.empty()
    const place = join(disk?.path ?? '', 'sandbox')
    const failed = (error: unknown) => {
      throw error
    }
    const open = () => openLocalSandbox({ data_dir: place, failed })
    const { world, close } = await open()
    const mara = world.addPerson({ name: 'Mara' }).person_id
    await disk?.fill()
    const long = 'x'.repeat(8_000)
    expect(() => world.addPerson({ name: long })).toThrow('The sandbox log cannot be written.')
    await disk?.empty()
    const noor = world.addPerson({ name: 'Noor' }).person_id
    await close()
    const again = await open()
    expect([mara, noor].map((id) => again.world.state.people.get(id)?.name)).toEqual(['Mara', 'Noor'])
    expect([...again.world.state.people.values()].filter(({ name }) => name === long)).toEqual([])
    await again.close()
  },
)
