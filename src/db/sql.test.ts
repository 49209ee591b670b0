import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { copyDatabase, type TestDatabase } from '../../test/harness/database.ts'
import { timed } from '../../test/harness/timed.ts'
import { ApiError } from '../lib/errors.ts'
import { openDatabase } from './pool.ts'
import { type Database, sql } from './sql.ts'

let copy: TestDatabase
let db: Database

beforeAll(async () => {
  copy = await copyDatabase()
  db = openDatabase({ connectionString: copy.url }, { pool_size: 3 })
})
afterAll(async () => {
  await db.close()
  await copy.drop()
})

describe('a statement', () => {
  test('holds parameters, never values', () => {
    const value = "'; drop table keys; --"
    const statement = sql`select ${value} as a, ${2} as b`
    expect([statement.text, statement.values]).toEqual(['select $1 as a, $2 as b', [value, 2]])
    expect(sql`select 1`.values).toEqual([])
  })

  test('nests, and numbers its parameters across fragments', () => {
    const inner = sql`workspace_id = ${'w'} and kind = ${'k'}`
    const middle = sql`where ${inner} and id > ${3}`
    const outer = sql`select ${1} from t ${middle} limit ${4}`
    expect(outer.text).toBe('select $1 from t where workspace_id = $2 and kind = $3 and id > $4 limit $5')
    expect(outer.values).toEqual([1, 'w', 'k', 3, 4])
    expect(sql`${sql`select ${1}`}${sql`, ${2}`}`.text).toBe('select $1, $2')
    expect(sql`select ${sql`a, b`} from t`.text).toBe('select a, b from t')
  })

  test('has the same name for the same text and another for another text, so that plans are kept', () => {
    const read = (id: number) => sql`select ${id}::int as id`
    expect(read(1).name).toBe(read(2).name)
    expect(read(1).name).toBe(sql`select ${sql`${3}`}::int as id`.name)
    expect(read(1).name).not.toBe(sql`select ${1}::bigint as id`.name)
    expect(read(1).name.length).toBeLessThan(63)
  })

  test('passes a value that looks like a statement as a value', async () => {
    const fake = { text: 'select 2', name: 'x', values: [] }
    const { value } = await db.one<{ value: unknown }>(sql`select ${fake}::jsonb as value`)
    expect(value).toEqual(fake)
  })
})

describe('the connections of a process', () => {
  /** Holds this many of them until `end`. */
  async function take(one: Database, count: number): Promise<{ end: () => Promise<unknown> }> {
    const held = Promise.withResolvers<void>()
    const all: Promise<void>[] = []
    for (let at = 0; at < count; at++) {
      const begun = Promise.withResolvers<void>()
      const holding = one.transaction(async (tx) => {
        await tx.one(sql`select 1`)
        begun.resolve()
        await held.promise
      })
      all.push(holding)
      await Promise.race([begun.promise, holding])
    }
    return {
      end: () => {
        held.resolve()
        return Promise.all(all)
      },
    }
  }

  test.each([
    ['requests', 'the background', 10, 6],
    ['the background', 'requests', 10, 8],
    ['requests', 'the background', 2, 1],
    ['the background', 'requests', 2, 1],
  ])('of %s leave some to %s: of %i they have %i at most', async (side, _, pool_size, most) => {
    const open = openDatabase({ connectionString: copy.url }, { pool_size })
    const [taking, other] = side === 'requests' ? [open, open.background] : [open.background, open]
    const taken = await take(taking, most)
    const waiting = taking.one(sql`select 1 as up`).catch((error) => error)
    const waits = open.countWaiting()
    const rest = await take(other, pool_size - most).catch((error) => ({ error, end: async () => {} }))
    await Promise.all([taken.end(), rest.end()])
    await waiting
    expect({ waits, left: open.countWaiting(), rest }).toMatchObject({ waits: 1, left: 0 })
    expect(rest).not.toHaveProperty('error')
    await open.close()
  })
})

describe('a transaction', () => {
  test('leaves nothing behind when its work fails, and the next one can use the connection', async () => {
    await db.run(sql`create table if not exists remarks (id int primary key deferrable initially deferred)`)
    const failing = db.transaction(async (tx) => {
      await tx.run(sql`insert into remarks values (1)`)
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await db.rows(sql`select from remarks`)).toEqual([])
    expect(db.pool.totalCount).toBeLessThanOrEqual(3)
  })

  test('that failed inside does not pretend to have committed', async () => {
    const swallowed = db.transaction(async (tx) => {
      await tx.run(sql`insert into remarks values (2)`)
      await tx.run(sql`select 1 / 0`).catch(() => {})
      return 'done'
    })
    await expect(swallowed).rejects.toThrow('rolled back')
    expect(await db.rows(sql`select from remarks`)).toEqual([])
  })

  test('refused at COMMIT is a plain failure, not a lost answer', async () => {
    const twice = db.transaction(async (tx) => {
      await tx.run(sql`insert into remarks values (3)`)
      await tx.run(sql`insert into remarks values (3)`)
    })
    await expect(twice).rejects.toMatchObject({ code: '23505' })
    expect(await db.rows(sql`select from remarks`)).toEqual([])
  })

  test('runs the statements deferred to COMMIT together with it, or not at all', async () => {
    await db.run(sql`create table if not exists asides (id int primary key check (id > 0))`)
    const write = (...ids: number[]) =>
      db.transaction(async (tx) => {
        for (const id of ids) tx.atCommit(sql`insert into asides values (${id})`)
        return tx.one(sql`select count(*)::int as count from asides`)
      })
    expect(await write(1, 2)).toEqual({ count: 0 })
    await expect(write(3, -1, 4)).rejects.toMatchObject({ code: '23514' })
    expect(await write(5)).toEqual({ count: 2 })
    expect(await db.rows(sql`select id from asides order by id`)).toEqual([{ id: 1 }, { id: 2 }, { id: 5 }])
  })

  test('waits for a connection while the pool is busy', async () => {
    const many = Array.from({ length: 50 }, (_, at) =>
      db.transaction((tx) => tx.run(sql`insert into remarks values (${100 + at})`)),
    )
    expect(await Promise.all(many)).toEqual(Array(50).fill(1))
    expect(db.pool.totalCount).toBeLessThanOrEqual(3)
  })
})

describe('a failure', () => {
  test.each([
    ['a missing table', 'schema_unavailable', sql`select from nowhere`],
    ['a missing column', 'schema_unavailable', sql`select nothing from keys`],
  ])(
    '%s is %s',
    async (_, code, statement) => {
      await expect(db.run(statement)).rejects.toSatisfy(
        (error) => error instanceof ApiError && error.code === code,
      )
    },
    10_000,
  )

  test('a statement that takes too long is store_unavailable', async () => {
    const slow = db.transaction(async (tx) => {
      await tx.run(sql`set local statement_timeout = 10`)
      await tx.run(sql`select pg_sleep(1)`)
    })
    await expect(slow).rejects.toMatchObject({ code: 'store_unavailable', status: 503 })
  })

  test('an invalid statement stays a bug', async () => {
    await expect(db.run(sql`select 1 / 0`)).rejects.toMatchObject({ code: '22012' })
    await expect(db.one(sql`select 1 where false`)).rejects.toThrow('Expected one row')
  })

  test.each([
    ['a wrong password', (url: URL) => (url.password = 'wrong')],
    ['an unknown database', (url: URL) => (url.pathname = '/nowhere')],
    ['a missing server', (url: URL) => url.searchParams.set('host', '/nowhere')],
  ])('%s is store_unavailable', async (_, change) => {
    const url = new URL(copy.url)
    change(url)
    const other = openDatabase({ connectionString: url.href }, { pool_size: 2 })
    try {
      for (const attempt of [() => other.run(sql`select 1`), () => other.client()]) {
        await expect(attempt()).rejects.toMatchObject({ code: 'store_unavailable', status: 503 })
      }
    } finally {
      await other.close()
    }
  })

  test('no connection within the time is store_unavailable, and counts as waiting until then', async () => {
    const other = openDatabase({ connectionString: copy.url }, { pool_size: 2 })
    const held = Promise.withResolvers<void>()
    try {
      const holding = other.transaction(() => held.promise)
      const waiting = other.run(sql`select 1`)
      expect(other.countWaiting()).toBe(1)
      await expect(waiting).rejects.toMatchObject({ code: 'store_unavailable', status: 503 })
      expect(other.countWaiting()).toBe(0)
      held.resolve()
      await holding
      expect(await other.one(sql`select 1 as up`)).toEqual({ up: 1 })
    } finally {
      held.resolve()
      await other.close()
    }
  })

  const silent = 'a server that has fallen silent is store_unavailable, and its connection is replaced'
  test(silent, { ...timed, timeout: 60_000 }, async () => {
    const line = await openLine()
    const { pathname, username, password } = new URL(copy.url)
    const connectionString = `postgres://${username}:${password}@127.0.0.1:${line.port}${pathname}`
    const other = openDatabase({ connectionString }, { pool_size: 1 })
    try {
      await other.one(sql`select 1`)
      line.mute()
      const begun = performance.now()
      await expect(other.run(sql`select 1`)).rejects.toMatchObject({ code: 'store_unavailable' })
      expect(performance.now() - begun).toBeLessThan(9_000)
      expect(await other.one(sql`select 1 as up`)).toEqual({ up: 1 })
    } finally {
      await other.close()
      line.close()
    }
  })

  test('a connection that was cut is replaced', async () => {
    await db.rows(sql`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and usename = current_user and pid <> pg_backend_pid()`)
    const answers = await Promise.allSettled(Array.from({ length: 6 }, () => db.one(sql`select 1 as up`)))
    for (const answer of answers) {
      if (answer.status === 'rejected') expect(answer.reason).toMatchObject({ code: 'store_unavailable' })
    }
    expect(await db.one(sql`select 1 as up`)).toEqual({ up: 1 })
  })
})

/** A connection to the server that a test can make silent. (A stopped server process would stop the others.) */
async function openLine() {
  const lines = new Map<Socket, Socket>()
  const server = createServer((client) => {
    const upstream = connect(`${inject('cluster').host}/.s.PGSQL.5432`)
    lines.set(client, upstream)
    for (const socket of [client, upstream]) socket.on('error', () => {})
    client.pipe(upstream).pipe(client)
    client.on('close', () => upstream.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    mute() {
      for (const [client, upstream] of lines) client.unpipe(upstream)
    },
    close() {
      for (const socket of [...lines.keys(), ...lines.values()]) socket.destroy()
      server.close()
    },
  }
}
