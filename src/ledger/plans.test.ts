/**
 * The plans of the statements that every operation passes: they look rows up by their keys, however many other rows there
 * are. A plan that scans instead made a batch twenty times as slow.
 */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { planOnce, type Sql, sql } from '../db/sql.ts'
import { countSent } from './account-usage.ts'
import { type Crossing, crossStatement } from './crossing.ts'
import { type Settlement, settleStatement } from './settle.ts'

const others = 20_000
const batch = 50

let rows: LedgerRows
const crossings: Crossing[] = []

beforeAll(async () => {
  rows = await openLedgerRows()
  const { db, tenant } = rows
  const { account_id } = await rows.account()
  await db.run(sql`
    insert into operations (id, workspace_id, kind, effect, fingerprint, state, account_id, random_id, reply_status)
    select gen_random_uuid(), ${tenant.workspace_id}, 'send_message', 'platform', ${Buffer.alloc(32)}, 'completed',
      ${account_id}, n, 200 from generate_series(1, ${others}::int) n`)
  await db.run(sql`
    insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at, random_id)
    select ${account_id}, n / 100, n, ${tenant.workspace_id}, 'text', n % 2 = 0, now(), n from generate_series(1, ${others}::int) n`)
  for (let n = 0; n < batch; n++) crossings.push(await rows.crossing(await rows.account()))
  for (const table of ['operations', 'messages', 'account_hosts', 'accounts']) {
    await db.pool.query(`analyze ${table}`)
  }
})
afterAll(() => rows.close())

interface Node {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly Plans?: readonly Node[]
}

/** The large tables that the statement scans in full. */
async function listScanned({ text, values }: Sql): Promise<string[]> {
  const { rows: found } = await rows.db.pool.query(`explain (format json) ${text}`, values as unknown[])
  const flatten = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(flatten)]
  const nodes = flatten(found[0]['QUERY PLAN'][0].Plan)
  expect(nodes.some((node) => node['Relation Name'] === 'operations')).toBe(true)
  const whole = nodes
    .filter((node) => node['Node Type'] === 'Seq Scan')
    .map((node) => node['Relation Name'] ?? '')
  return whole.filter((name) => ['operations', 'messages'].includes(name))
}

test('a batch that crosses looks operations and messages up by their keys', async () => {
  expect(await listScanned(crossStatement(rows.app.operations, await rows.instance(), crossings))).toEqual([])
})

test('a batch that settles looks operations up by their keys', async () => {
  const settlements = crossings.map(({ id, token }): Settlement => {
    return { id, token, ending: { to: 'completed', reply: {} } }
  })
  expect(await listScanned(settleStatement(settlements))).toEqual([])
})

test('whether a person has ever written is found by key, also with a plan from when there were fewer messages', async () => {
  const fresh = await openLedgerRows()
  onTestFinished(() => fresh.close())
  const { db } = fresh
  const { account_id, workspace_id } = await fresh.account()
  const { id } = await db.one<{ id: string }>(sql`
    insert into operations (id, workspace_id, kind, effect, fingerprint, state, account_id, reply_status, finished_at)
    values (gen_random_uuid(), ${workspace_id}, 'send_message', 'platform', ${Buffer.alloc(32)}, 'completed', ${account_id}, 200, now())
    returning id`)
  await db.run(sql`create table rows_read (count bigint)`)
  const count = () =>
    db.transaction(async (tx) => {
      await tx.run(planOnce)
      countSent(tx, [{ id, account_id, workspace_id, chat_id: '7' }])
      tx.atCommit(sql`
        insert into rows_read select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables where relname = 'messages'`)
    })
  await count()
  await db.run(sql`
    insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at)
    select ${account_id}, 7, n, ${workspace_id}, 'text', true, now() from generate_series(1, ${others}::int) n`)
  await count()
  expect(await db.one(sql`select cold from account_days where account_id = ${account_id}`)).toEqual({
    cold: 2,
  })
  expect(await db.rows(sql`select count::int from rows_read`)).toEqual([{ count: 0 }, { count: 0 }])
})
