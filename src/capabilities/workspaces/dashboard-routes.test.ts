/** What a member of a workspace sees of it. `test/people.test.ts` tests who may call the routes. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import type { Gate } from '../../contract.ts'
import { sql } from '../../db/sql.ts'
import { noteHeartbeat, noteOwing } from '../../ledger/workers.ts'
import { newId } from '../../lib/ids.ts'
import { setDispatch } from '../gates/gates.ts'
import { createUser } from '../users/users.ts'
import { updateWorkspace } from './workspaces.ts'

let service: Service
let tenant: Tenant
let owner: string
let member: string

beforeAll(async () => {
  service = await openService()
  tenant = await service.tenant()
  owner = await signIn(service, tenant.user_id)
  const { workspace_id } = tenant
  const { id } = await createUser(service.app, 'system', {
    email: 'm@acme.example',
    workspace_id,
    role: 'member',
  })
  member = await signIn(service, id)
})
afterAll(() => service.close())
afterEach(() => service.open('all'))

interface View {
  readonly workspace: Record<string, unknown>
  readonly dispatch: { on: boolean; reason: string | null }
  readonly capabilities: Readonly<Record<string, { open: boolean; closed_by: unknown }>>
}

async function read(cookie = owner): Promise<View> {
  const { status, body } = await askDashboard(service, 'GET', `/w/${tenant.workspace_id}/workspace`, {
    cookie,
  })
  expect(status).toBe(200)
  return body as unknown as View
}

async function closed(cookie?: string): Promise<Record<string, unknown>> {
  const all = Object.entries((await read(cookie)).capabilities)
  for (const [, { open, closed_by }] of all) expect(open).toBe(closed_by === null)
  return Object.fromEntries(all.filter(([, { open }]) => !open).map(([name, each]) => [name, each.closed_by]))
}

const unlisted = (name: string) => ({ kind: 'allowlist', name })

describe('GET /workspace', () => {
  test('200 with its zone and sending window, and the role of the user', async () => {
    const { workspace_id: id } = tenant
    expect((await read()).workspace).toEqual({
      id,
      name: 'Acme',
      timezone: 'UTC',
      timezone_before: null,
      timezone_from: null,
      sending_window: null,
      role: 'owner',
    })
    await updateWorkspace(service.app, 'system', {
      id,
      timezone: 'Europe/Vienna',
      window: 'mon-fri 09:00-18:00',
    })
    expect((await read(member)).workspace).toMatchObject({
      timezone: 'Europe/Vienna',
      sending_window: 'mon-fri 09:00-18:00',
      role: 'member',
    })
  })

  test('200 with whether messages are sent, and why not', async () => {
    const { app } = service
    const worker_id = newId()
    expect((await read()).dispatch).toEqual({ on: true, reason: null })
    await setDispatch(app, 'system', false)
    expect((await read()).dispatch).toEqual({
      on: false,
      reason: 'Sending is switched off on this instance.',
    })
    await setDispatch(app, 'system', true)
    await noteOwing(app.db, worker_id, true)
    expect((await read()).dispatch).toEqual({
      on: false,
      reason: 'The database was restored, and a worker has not replayed its journals yet.',
    })
    await noteOwing(app.db, worker_id, false)
    await noteHeartbeat(app.db, { worker_id, platforms: ['sandbox'] })
    await app.db.run(sql`update workers set drives = false`)
    expect((await read()).dispatch).toEqual({ on: false, reason: 'No worker can write its journal.' })
    await app.db.run(sql`delete from workers`)
    expect((await read()).dispatch).toEqual({ on: true, reason: null })
  })

  test('200 with the gate that closes a capability', async () => {
    for (const [gate, names] of [
      ['crm', ['columns', 'contacts']],
      ['pipeline', ['pipeline']],
      ['analytics', ['analytics']],
      ['start_chat', ['start_chat']],
      ['broadcast', ['broadcast']],
      ['campaigns', ['campaigns', 'create_campaign']],
      ['scoped_routing', ['create_campaign']],
    ] as [Gate, string[]][]) {
      await service.shut(gate)
      expect(await closed()).toMatchObject(
        Object.fromEntries(names.map((name) => [name, { kind: 'gate', name: gate }])),
      )
      await service.open(gate)
    }
  })

  test('200 with the role and the allowlist that close one; what is open is open for members too', async () => {
    expect(await closed()).toEqual({
      campaigns: unlisted('campaign_user'),
      create_campaign: unlisted('campaign_user'),
    })
    const admin = { kind: 'role', name: 'admin' }
    expect(await closed(member)).toEqual({
      broadcast: admin,
      campaigns: admin,
      create_campaign: admin,
      webhooks: admin,
    })
    await service.allow(tenant)
    expect(await closed()).toEqual({})
    await service.app.db.run(sql`delete from allowlists where list = 'campaign_workspace'`)
    await service.settle()
    expect(await closed()).toEqual({ create_campaign: unlisted('campaign_workspace') })
  })

  test('200 with every part that a page needs, each as its route would answer', async () => {
    expect(Object.keys((await read()).capabilities)).toEqual(
      expect.arrayContaining([
        'read',
        'send',
        'search',
        'pipeline',
        'columns',
        'history',
        'media',
        'contacts',
        'start_chat',
        'campaigns',
        'broadcast',
      ]),
    )
    await service.shut('crm')
    const { capabilities } = await read()
    const at = `/w/${tenant.workspace_id}`
    const contacts = await askDashboard(service, 'GET', `${at}/contacts`, { cookie: owner })
    expect([capabilities.contacts?.open, contacts.status]).toEqual([false, 503])
  })
})

describe('PATCH /workspace', () => {
  const change = (body: object, cookie = owner) =>
    askDashboard(service, 'PATCH', `/w/${tenant.workspace_id}/workspace`, { cookie, body })

  test('200 with what was changed, in the audit log under the user', async () => {
    const before = (await read()).workspace
    const { status, body } = await change({ sending_window: 'Mon-Fri 9:00-18:00', timezone: 'Europe/Vienna' })
    expect([status, body.workspace]).toEqual([
      200,
      {
        id: tenant.workspace_id,
        name: before.name,
        timezone: 'Europe/Vienna',
        timezone_before: 'UTC',
        timezone_from: expect.stringMatching(/T00:00:00.000Z$/),
        sending_window: 'mon-fri 09:00-18:00',
      },
    ])
    expect((await change({ name: 'Acme & Co' })).body.workspace).toMatchObject({
      name: 'Acme & Co',
      sending_window: 'mon-fri 09:00-18:00',
    })
    expect((await change({ sending_window: null })).body.workspace).toMatchObject({ sending_window: null })
    const rows = await service.app.db.rows(sql`
      select actor from audit where action = 'workspace.updated' and actor = ${`user:${tenant.user_id}`}`)
    expect(rows).toHaveLength(3)
  })

  test('400 for a window, a zone or a name that is none, and for no change; 403 for a member', async () => {
    const refused = [
      { sending_window: 'always' },
      { sending_window: 'mon 18:00-09:00' },
      { timezone: 'Berlin' },
      { name: ' ' },
      {},
      { id: newId() },
    ]
    for (const body of refused) {
      const answer = await change(body)
      expect([body, answer.status, answer.body.code]).toEqual([body, 400, 'invalid_request'])
    }
    expect((await change({ name: 'Mine' }, member)).body.code).toBe('missing_role')
  })
})
