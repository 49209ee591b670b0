import { afterAll, beforeAll, expect, test } from 'vitest'
import { copyDatabase, type TestDatabase } from '../../test/harness/database.ts'
import { given } from './given.ts'
import { openDatabase } from './pool.ts'
import { type Database, sql } from './sql.ts'

let copy: TestDatabase
let db: Database

beforeAll(async () => {
  copy = await copyDatabase()
  db = openDatabase({ connectionString: copy.url }, { pool_size: 1 })
})
afterAll(async () => {
  await db.close()
  await copy.drop()
})

test('gives each column its type, and each row its own values', async () => {
  const id = '018f2d6e-0000-7000-8000-000000000001'
  const at = new Date('2026-01-02T03:04:05.678Z')
  const rows = [
    {
      id,
      n: 1,
      yes: true,
      text: 'a {"b",c\\} NULL',
      data: { a: [1, null] },
      at,
      bytes: Buffer.from([0, 255]),
    },
    { id, n: null, yes: false, text: 'NULL', data: null, at: null, bytes: null },
  ]
  const columns = {
    id: 'uuid',
    n: 'int',
    big: ['bigint', ({ n }: { n: number | null }) => n ?? undefined],
    yes: 'boolean',
    text: 'text',
    data: 'jsonb',
    at: 'timestamptz',
    bytes: 'bytea',
    place: 'ordinality',
  } as const
  expect(
    await db.rows(
      sql`select *, pg_typeof(big)::text as type, data is null as no_data from ${given(rows, columns)} as g`,
    ),
  ).toEqual([
    { ...rows[0], big: '1', place: '1', type: 'bigint', no_data: false },
    { ...rows[1], big: null, place: '2', type: 'bigint', no_data: false },
  ])
})

test('also works as the body of a with, and no rows are an empty table', async () => {
  const count = (ids: readonly { id: number }[]) =>
    db.one(sql`with g as materialized ${given(ids, { id: 'int' })} select sum(id)::int as sum from g`)
  expect(await count([{ id: 1 }, { id: 2 }])).toEqual({ sum: 3 })
  expect(await count([])).toEqual({ sum: null })
})

test('makes the same statement for the same columns, and another for another type, order or number of columns', () => {
  const row = { a: 1, b: 2 }
  const { name, text } = given([row], { a: 'int', b: 'int' })
  expect(text).toBe('(select * from unnest($1::int[], $2::int[]) as given (a, b))')
  expect(given([row, row], { a: 'int', b: ['int', () => 3] }).name).toBe(name)
  // @ts-expect-error: a type alone needs a property of that name
  expect(given([row], { c: 'int' }).values).toEqual([[undefined]])
  const others = [
    given([row], { a: 'int', b: 'bigint' }),
    given([row], { b: 'int', a: 'int' }),
    given([row], { a: 'int' }),
    given([row], { a: 'int', b: 'int', place: 'ordinality' }),
  ]
  expect(new Set([name, ...others.map((other) => other.name)]).size).toBe(5)
})

test('lets the planner see the unnest itself', async () => {
  const plan = await db.lists<[string]>(sql`
    explain select * from ${given([{ a: 1 }], { a: 'int', place: 'ordinality' })} as g where g.a = 1`)
  expect(plan[0]?.[0]).toMatch(/^Function Scan on unnest/)
})
