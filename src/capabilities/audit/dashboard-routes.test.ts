import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { type AuditFilters, auditRows } from './audit-pages.ts'

const rows = 20_000
let service: Service
let tenant: Tenant
let ask: (method: string, path: string) => ReturnType<typeof askDashboard>
beforeAll(async () => {
  service = await openService({ plans: 'shipped' })
  tenant = await service.tenant()
  await service.app.db.run(sql`update users set operator = true where id = ${tenant.user_id}`)
  const cookie = await signIn(service, tenant.user_id)
  ask = (method, path) => askDashboard(service, method, path, { cookie })
})
afterAll(() => service.close())

describe('GET /audit', () => {
  test('200 page by page: every row once, newest first, and filtered', async () => {
    const { rows: whole } = await service.app.db.one<{ rows: number }>(
      sql`select count(*)::int as rows from audit`,
    )
    const seen: string[] = []
    let cursor: string | null = null
    do {
      const { status, body } = await ask('GET', `/audit?limit=7${cursor === null ? '' : `&cursor=${cursor}`}`)
      expect(status).toBe(200)
      seen.push(...(body.rows as { seq: string }[]).map(({ seq }) => seq))
      cursor = body.next_cursor as string | null
    } while (cursor !== null)
    expect(seen).toEqual(Array.from({ length: whole }, (_, at) => String(whole - at)))
    const { body } = await ask('GET', `/audit?workspace_id=${tenant.workspace_id}&action=workspace.created`)
    expect(body).toMatchObject({
      rows: [{ action: 'workspace.created', workspace_name: 'Acme', workspace_id: tenant.workspace_id }],
      has_more: false,
    })
  })

  test('400 for a cursor of other filters', async () => {
    const { body } = await ask('GET', '/audit?limit=1')
    const foreign = await ask('GET', `/audit?limit=1&actor=system&cursor=${body.next_cursor}`)
    expect(foreign).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } })
  })
})

describe('POST /audit/verify', () => {
  test('200 names the changed row, and it stays known until the log verifies again', async () => {
    expect((await ask('GET', '/audit/verdict')).body.verdict).toBe(null)
    expect((await ask('POST', '/audit/verify')).body.verdict).toMatchObject({ ok: true })
    const tamper = (actor: string) =>
      service.app.db.pool.query(`
        begin; alter table audit disable trigger audit_append_only;
        update audit set actor = '${actor}' where seq = 2;
        alter table audit enable trigger audit_append_only; commit`)
    const { actor } = await service.app.db.one<{ actor: string }>(sql`select actor from audit where seq = 2`)
    await tamper('cli:mallory')
    const wrong = { ok: false, seq: '2', problem: expect.stringMatching(/^row 2 was changed/) }
    expect((await ask('POST', '/audit/verify')).body.verdict).toMatchObject(wrong)
    expect((await ask('GET', '/audit/verdict')).body).toMatchObject({
      verdict: wrong,
      actions: expect.arrayContaining(['workspace.created']),
    })
    await tamper(actor)
    expect((await ask('POST', '/audit/verify')).body.verdict).toMatchObject({ ok: true })
  })
})

interface Plan {
  readonly 'Node Type': string
  readonly 'Index Name'?: string
  readonly 'Actual Rows': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly Plan[]
}

function flatten(plan: Plan | undefined): Plan[] {
  return plan ? [plan, ...(plan.Plans ?? []).flatMap(flatten)] : []
}

describe('the plan of a page', () => {
  beforeAll(async () => {
    const { db } = service.app
    await db.run(sql`
      insert into audit (seq, at, workspace_id, actor, action, target, detail, hash)
      select n, now(), case when n % 100 = 0 then ${tenant.workspace_id}::uuid end, 'cli:' || n % 150,
        'thing.' || n % 150, 'x', '{}', sha256('x') from generate_series(1000, ${rows}::int) n`)
    await db.run(sql`analyze audit`)
  })

  test.each<[string, AuditFilters]>([
    ['audit_pkey', {}],
    ['audit_action', { action: 'thing.7' }],
    ['audit_actor', { actor: 'cli:7' }],
  ])('reads only its rows from %s, on the first page and deep in the log', async (index, filters) => {
    for (const before of [undefined, String(rows / 2)]) {
      const { text, values } = auditRows(filters, { before, limit: 51 })
      const { rows: plans } = await service.app.db.pool.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
        `explain (analyze, format json) ${text}`,
        [...values],
      )
      const nodes = flatten(plans[0]?.['QUERY PLAN'][0]?.Plan)
      const scan = nodes.find((node) => node['Index Name'] === index)
      // An action or actor has fewer than 150 rows here, and the whole log has thousands.
      expect(scan?.['Actual Rows']).toBeLessThan(150)
      expect(nodes.filter((node) => (node['Rows Removed by Filter'] ?? 0) > 0)).toEqual([])
    }
  })
})
