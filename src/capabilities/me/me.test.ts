import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { probes } from '../../../test/harness/probes.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { statuses } from '../accounts/accounts.ts'
import { updateWorkspace } from '../workspaces/workspaces.ts'

let service: Service
let tenant: Tenant

beforeAll(async () => {
  service = await openService({ routes: probes })
  tenant = await service.tenant()
})
afterAll(() => service.close())

async function capabilities(key = tenant.key): Promise<Record<string, boolean>> {
  const { status, body } = await service.get('/me', { key })
  expect(status).toBe(200)
  return body.capabilities as Record<string, boolean>
}

describe('GET /me', () => {
  test('200 with the workspace, the key and its scopes, and the version of the contract', async () => {
    const { key, prefix } = await service.key({ ...tenant, name: 'my app', scopes: ['read', 'send'] })
    const { status, body } = await service.get('/me', { key })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      workspace_id: tenant.workspace_id,
      workspace: { id: tenant.workspace_id, name: 'Acme' },
      key: { name: 'my app', prefix, scopes: ['read', 'send'] },
      accounts: [],
      contract_version: '1.0.0',
    })
    expect(JSON.stringify(body)).not.toContain(key)
  })

  test("200 with the workspace's current name", async () => {
    await updateWorkspace(service.app, 'system', { id: tenant.workspace_id, name: 'Acme & Sons' })
    expect((await service.get('/me', { key: tenant.key })).body.workspace).toMatchObject({
      name: 'Acme & Sons',
    })
  })

  test('200 with the READY accounts of its own workspace only', async () => {
    const own = await service.tenant('Own')
    const other = await service.tenant('Other')
    for (const status of statuses) {
      await service.account(own.workspace_id, status)
      await service.account(other.workspace_id, status)
    }
    const { body } = await service.get('/me', { key: own.key })
    const ready = await service.app.db.rows<{ id: string }>(sql`
      select id from accounts where workspace_id = ${own.workspace_id} and status = 'READY'`)
    expect(body.accounts).toEqual(
      ready.map(({ id }) => ({ id, provider: 'sandbox', type: 'MESSAGING', name: 'Sales', status: 'READY' })),
    )
  })

  test('200 with a capability for every operation', async () => {
    expect(Object.keys(await capabilities()).sort()).toEqual(
      service.app.routes.map(({ name }) => name).sort(),
    )
    expect(Object.values(await capabilities()).every((value) => typeof value === 'boolean')).toBe(true)
  })

  test('200 with capabilities that follow gates, scopes and allowlists', async () => {
    expect(await capabilities()).toMatchObject({ get_me: true, probe_note: false })
    await service.allow(tenant)
    expect(await capabilities()).toMatchObject({ probe_note: true, probe_variant: true })
    await service.shut('crm')
    expect(await capabilities()).toMatchObject({ probe_note: false, probe_variant: true })
    await service.open('crm')
    await service.app.db.run(sql`delete from allowlists where list = 'campaign_user'`)
    await service.settle()
    expect(await capabilities()).toMatchObject({ probe_note: false })
    await service.allow(tenant)
    const reader = await service.key({ ...tenant, scopes: ['read'] })
    expect(await capabilities(reader.key)).toMatchObject({
      get_me: true,
      probe_note: false,
      probe_variant: false,
    })
    const writer = await service.key({ ...tenant, scopes: ['read', 'write'] })
    expect(await capabilities(writer.key)).toMatchObject({ probe_note: true, probe_variant: false })
  })

  test('400 with a query: it takes none', async () => {
    const { status } = await service.get('/me?workspace_id=x&key=y&limit=-1', { key: tenant.key })
    expect(status).toBe(400)
  })
})
