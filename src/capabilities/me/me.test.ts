import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { probes } from '../../../test/harness/probes.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
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

/** As a worker does whose session has caught up. */
async function connect(account_id: string): Promise<void> {
  await service.app.db.run(sql`
    insert into account_hosts (account_id, workspace_id, lease_owner, lease_epoch, lease_until, observed_at)
    select id, workspace_id, ${newId()}, 1, real_now() + interval '1 hour', real_now() from accounts where id = ${account_id}`)
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
      ready.map(({ id }) => ({
        id,
        provider: 'sandbox',
        type: 'MESSAGING',
        name: 'Sales',
        status: 'READY',
        connected: false,
      })),
    )
  })

  test('200: what needs the platform is possible only while an account is connected, and each says whether it is', async () => {
    const own = await service.tenant('Connected')
    const [one, other] = [await service.account(own.workspace_id), await service.account(own.workspace_id)]
    const read = async () => {
      const { accounts, capabilities: able } = (await service.get('/me', { key: own.key })).body as {
        accounts: { connected: boolean }[]
        capabilities: Record<string, boolean>
      }
      return [accounts.map(({ connected }) => connected), able.send_message, able.get_me]
    }
    expect(await read()).toEqual([[false, false], false, true])
    await connect(one)
    await connect(other)
    expect(await read()).toEqual([[true, true], true, true])
    // Its worker is dead: the last sign of life is too old.
    await service.app.db.run(sql`
      update account_hosts set observed_at = real_now() - interval '2 minutes' where account_id = ${one}`)
    expect(await read()).toEqual([[false, true], true, true])
    await service.app.db.run(sql`
      update account_hosts set observed_at = real_now() - interval '2 minutes' where account_id = ${other}`)
    expect(await read()).toEqual([[false, false], false, true])
    // An account that changes hands is not connected, and its operations wait.
    await service.app.db.run(sql`
      update account_hosts set observed_at = null, handed_over_at = real_now(), lease_until = real_now() + interval '1 minute'
      where account_id = ${other}`)
    expect(await read()).toEqual([[false, false], true, true])
    // Another workspace's account counts for nothing.
    await service.app.db.run(sql`update account_hosts set handed_over_at = null where account_id = ${other}`)
    await connect(await service.account((await service.tenant('Neighbour')).workspace_id))
    expect(await read()).toEqual([[false, false], false, true])
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
