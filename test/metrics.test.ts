/** What /metrics says about the whole instance, in Prometheus's format, and what it costs. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { setDispatch } from '../src/capabilities/gates/gates.ts'
import { closeOperation } from '../src/capabilities/operations/operations.ts'
import { type Sql, sql } from '../src/db/sql.ts'
import { fileFigures, ledgerFigures } from '../src/ledger/figures.ts'
import { noteFlood } from '../src/ledger/floods.ts'
import type { HeldLease } from '../src/ledger/leases.ts'
import { noteDrives, noteHeartbeat, noteOwing } from '../src/ledger/workers.ts'
import { newId } from '../src/lib/ids.ts'
import { version } from '../src/lib/version.ts'
import { type LedgerRows, openLedgerRows } from './harness/ledger-rows.ts'

let rows: LedgerRows
let held: HeldLease
beforeAll(async () => {
  rows = await openLedgerRows()
  held = await rows.account()
})
afterAll(() => rows.close())

/** The samples of a metric, by their labels as in the text. */
async function samplesOf(name: string): Promise<Record<string, number>> {
  const text = await rows.app.metrics.metrics()
  const lines = text.split('\n').filter((line) => new RegExp(`^${name}(\\{| )`).test(line))
  return Object.fromEntries(
    lines.map((line) => {
      const [, labels = '', value] = /^\w+(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
      return [labels, Number(value)]
    }),
  )
}

async function age(id: string, seconds: number): Promise<void> {
  await rows.db.run(sql`
    update operations set created_at = domain_now() - make_interval(secs => ${seconds}) where id = ${id}`)
}

describe('/metrics', () => {
  test('has the version of Parley', async () => {
    expect(await samplesOf('parley_build_info')).toEqual({
      [`version="${version}",node="${process.versions.node}"`]: 1,
    })
  })

  test('has the process and Node under their usual names', async () => {
    const text = await rows.app.metrics.metrics()
    const usual = ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'process_start_time_seconds']
    for (const name of [...usual, 'nodejs_eventloop_lag_seconds', 'nodejs_heap_size_used_bytes']) {
      expect(text).toContain(`\n${name} `)
    }
    expect(text).not.toMatch(/parley_(nodejs|process)_/)
  })

  test('shows that sending is switched off', async () => {
    expect(await samplesOf('parley_dispatch_enabled')).toEqual({ '': 1 })
    await setDispatch(rows.app, 'system', false)
    expect(await samplesOf('parley_dispatch_enabled')).toEqual({ '': 0 })
    await setDispatch(rows.app, 'system', true)
  })

  test('counts unknown outcomes by age, without those that an operator has closed', async () => {
    const nothing = { 'age="hour"': 0, 'age="day"': 0, 'age="week"': 0, 'age="older"': 0 }
    expect(await samplesOf('parley_operations_ambiguous')).toEqual(nothing)
    const ambiguous = () => rows.operation(held, { state: 'ambiguous', token: newId() })
    for (const seconds of [60, 7_200, 7_201, 2 * 86_400, 8 * 86_400, 9 * 86_400, 10 * 86_400]) {
      await age(await ambiguous(), seconds)
    }
    await closeOperation(rows.app, 'system', { id: await ambiguous(), closed_as: 'sent' })
    expect(await samplesOf('parley_operations_ambiguous')).toEqual({
      'age="hour"': 1,
      'age="day"': 2,
      'age="week"': 1,
      'age="older"': 3,
    })
  })

  test('has the longest wait of a queued operation', async () => {
    expect(await samplesOf('parley_operations_queued_oldest_seconds')).toEqual({ '': 0 })
    await age(await rows.operation(held), 40)
    await age(await rows.operation(held, { chat_id: '43' }), 10)
    const { '': seconds = 0 } = await samplesOf('parley_operations_queued_oldest_seconds')
    expect(seconds).toBeGreaterThanOrEqual(40)
    expect(seconds).toBeLessThan(100)
    expect(await samplesOf('parley_operations_queued')).toEqual({ '': 2 })
  })

  test('counts the files whose bytes are stored', async () => {
    expect(await samplesOf('parley_files_waiting')).toEqual({ '': 0 })
    const [older, younger] = [newId(), newId()]
    for (const [file_id, n, seconds] of [
      [older, 0, 50],
      [older, 1, 50],
      [younger, 0, 0],
    ] as const) {
      await rows.db.run(sql`
        insert into file_chunks (file_id, n, workspace_id, bytes, stored_at) values (${file_id}, ${n},
          ${rows.tenant.workspace_id}, 'x', clock_timestamp() - make_interval(secs => ${seconds}))`)
    }
    expect(await samplesOf('parley_files_waiting')).toEqual({ '': 2 })
    const { '': seconds = 0 } = await samplesOf('parley_files_waiting_oldest_seconds')
    expect(seconds).toBeGreaterThanOrEqual(50)
  })

  test('counts accounts by status, those without a worker, and workers by what they can do', async () => {
    await rows.service.account(rows.tenant.workspace_id, 'NEEDS_LOGIN')
    expect(await samplesOf('parley_account_status')).toEqual({
      'status="CONNECTING"': 0,
      'status="READY"': 1,
      'status="NEEDS_LOGIN"': 1,
      'status="RESTRICTED"': 0,
      'status="DISABLED"': 0,
    })
    // The other needs an operator, and no worker would help it.
    expect(await samplesOf('parley_accounts_without_worker')).toEqual({ '': 1 })
    const nobody = { 'state="driving"': 0, 'state="without_journal"': 0, 'state="owing"': 0 }
    expect(await samplesOf('parley_workers')).toEqual(nobody)

    const worker_id = newId()
    await noteHeartbeat(rows.db, { worker_id, platforms: ['another'] })
    expect(await samplesOf('parley_accounts_without_worker')).toEqual({ '': 1 })
    await noteHeartbeat(rows.db, { worker_id, platforms: ['another', 'sandbox'] })
    expect(await samplesOf('parley_accounts_without_worker')).toEqual({ '': 0 })
    expect(await samplesOf('parley_workers')).toEqual({ ...nobody, 'state="driving"': 1 })
    await noteDrives(rows.db, worker_id, false)
    expect(await samplesOf('parley_accounts_without_worker')).toEqual({ '': 1 })
    await noteOwing(rows.db, worker_id, true)
    expect(await samplesOf('parley_workers')).toEqual({
      'state="driving"': 0,
      'state="without_journal"': 1,
      'state="owing"': 1,
    })
  })

  test('counts the accounts that wait, how long the longest wait lasts, and stopped first messages', async () => {
    const { account_id } = held
    const none = { 'stops="sends"': 0, 'stops="lookups"': 0, 'stops="reading"': 0 }
    expect(await samplesOf('parley_flood_waits')).toEqual(none)
    expect(await samplesOf('parley_accounts_cold_stopped')).toEqual({ '': 0 })
    await noteFlood(rows.db, account_id, { retry_after_seconds: 80_000, stops: 'lookups' })
    await rows.db.run(sql`update account_hosts set cold_stopped_at = now() where account_id = ${account_id}`)
    expect(await samplesOf('parley_flood_waits')).toEqual({ ...none, 'stops="lookups"': 1 })
    const { 'stops="lookups"': seconds = 0, ...others } = await samplesOf('parley_flood_wait_seconds')
    expect(seconds).toBeGreaterThan(79_000)
    expect(others).toEqual({ 'stops="sends"': 0, 'stops="reading"': 0 })
    expect(await samplesOf('parley_accounts_cold_stopped')).toEqual({ '': 1 })
    expect(await samplesOf('parley_accounts_campaigns_held')).toEqual({ '': 0 })
    const hold = sql`campaigns_held_at = now(), campaigns_held_by = 'NEW_LIMIT'`
    await rows.db.run(sql`update account_hosts set ${hold} where account_id = ${account_id}`)
    expect(await samplesOf('parley_accounts_campaigns_held')).toEqual({ '': 1 })
  })

  test('200 without these figures while they cannot be read, with all others', async () => {
    await rows.db.run(sql`alter table operations rename to operations_away`)
    try {
      const text = await rows.app.metrics.metrics()
      expect(text).toContain('\nprocess_cpu_seconds_total ')
      expect(await samplesOf('parley_dispatch_enabled')).toEqual({})
      expect(await samplesOf('parley_operations_ambiguous')).toEqual({})
    } finally {
      await rows.db.run(sql`alter table operations_away rename to operations`)
    }
    expect(await samplesOf('parley_dispatch_enabled')).toEqual({ '': 1 })
  })
})

/** The rules of the exposition format and of names, as in `promtool check metrics`. */
test('every metric has a help text, a type, a matching name and base units', async () => {
  const text = await rows.app.metrics.metrics()
  const names = [...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name = '', type = '']) => ({
    name,
    type,
  }))
  expect(names.length).toBeGreaterThan(30)
  expect(new Set(names.map(({ name }) => name)).size).toBe(names.length)
  for (const { name, type } of names) {
    expect(text).toMatch(new RegExp(`^# HELP ${name} \\S.*$`, 'm'))
    expect(name).toMatch(/^[a-z][a-z0-9_]*$/)
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter'])
    expect(name).not.toMatch(
      /_(milliseconds|ms|minutes|hours|kilobytes|megabytes|percent|counter|gauge)(_|$)/,
    )
    expect(type === 'histogram' || !/_(count|sum|bucket)$/.test(name)).toBe(true)
  }
  const known = new Set(
    names.flatMap(({ name, type }) =>
      type === 'histogram' || type === 'summary'
        ? [`${name}_bucket`, `${name}_sum`, `${name}_count`, name]
        : [name],
    ),
  )
  for (const line of text.split('\n').filter((given) => given && !given.startsWith('#'))) {
    const [, name = ''] =
      /^(\w+)(?:\{(?:[a-z_]+="[^"\n]*",?)*\})? (?:[-+]?(?:\d[\d.e+-]*|Inf)|Nan)$/.exec(line) ?? []
    expect([line, known.has(name)]).toEqual([line, true])
  }
  expect(text).not.toContain(rows.tenant.workspace_id)
  expect(text).not.toContain(held.account_id)
})

describe('with very many settled operations', () => {
  const settled = 20_000
  beforeAll(async () => {
    await rows.db.run(sql`
      insert into operations (id, workspace_id, kind, effect, idempotency_key, fingerprint, state, account_id, chat_id,
        reply_status, reply_body, finished_at)
      select gen_random_uuid(), ${held.workspace_id}, 'send_message', 'platform', 'settled ' || n, decode(repeat('00', 32), 'hex'),
        'completed', ${held.account_id}, n % 100, 200, '{}', now()
      from generate_series(1, ${settled}::int) n`)
    await rows.db.run(sql`analyze operations`)
  })

  test.each([
    ['operations', ledgerFigures()],
    ['file_chunks', fileFigures()],
  ])('the figures of %s read only the few open rows', async (table, { text, values }: Sql) => {
    // PostgreSQL reads a table of a few pages whole, whatever its indexes.
    const client = await rows.db.client()
    try {
      await client.query('set enable_seqscan = off')
      const { rows: answer } = await client.query(
        `explain (analyze, format json) ${text}`,
        values as unknown[],
      )
      const flatten = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flatten)]
      const scans = flatten(answer[0]['QUERY PLAN'][0].Plan).filter((node) => node['Relation Name'] === table)
      expect(scans.length).toBeGreaterThan(0)
      for (const scan of scans) {
        expect(scan['Node Type']).not.toBe('Seq Scan')
        expect(scan['Actual Rows'] + (scan['Rows Removed by Filter'] ?? 0)).toBeLessThan(100)
      }
    } finally {
      await client.end()
    }
  })
})

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly PlanNode[]
}
