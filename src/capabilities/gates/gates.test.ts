import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { gates } from '../../contract.ts'
import { sql } from '../../db/sql.ts'
import {
  describeSending,
  listAllowed,
  listGates,
  readDispatch,
  setAllowed,
  setDispatch,
  setGates,
} from './gates.ts'

let service: Service
let tenant: Tenant

beforeAll(async () => {
  service = await openService()
  tenant = await service.tenant()
})
afterAll(() => service.close())

let since: string
beforeEach(async () => {
  since = await lastSeq()
})

async function lastSeq(): Promise<string> {
  return (await service.app.db.one<{ seq: string }>(sql`select coalesce(max(seq), 0) as seq from audit`)).seq
}

function audited(): Promise<unknown[]> {
  return service.app.db.rows(sql`select actor, action, target from audit where seq > ${since} order by seq`)
}

describe('gates', () => {
  test('are all closed on an empty database', async () => {
    await service.app.db.run(sql`delete from gates`)
    expect(await listGates(service.app.db)).toEqual(
      gates.map((name) => ({ name, enabled: false, changed_at: null })),
    )
  })

  test('"all" opens every gate but extended, which has to be named', async () => {
    await service.app.db.run(sql`delete from gates`)
    const states = await setGates(service.app, 'cli:ana', { names: ['all'], enabled: true })
    const others = gates.filter((name) => name !== 'extended')
    expect(states).toMatchObject(others.map((name) => ({ name, enabled: true, changed: true })))
    expect(await audited()).toHaveLength(gates.length - 1)
    const again = await setGates(service.app, 'cli:ana', { names: ['extended', 'all'], enabled: true })
    expect(again).toMatchObject(gates.map((name) => ({ name, enabled: true, changed: name === 'extended' })))
    expect((await audited()).at(-1)).toEqual({ actor: 'cli:ana', action: 'gate.enabled', target: 'extended' })
    expect(await audited()).toHaveLength(gates.length)
  })

  test('are audited once for each change, and not when nothing changes', async () => {
    await service.app.db.run(sql`delete from gates`)
    await setGates(service.app, 'system', { names: ['crm'], enabled: false })
    expect(await audited()).toEqual([])
    await setGates(service.app, 'system', { names: ['crm', 'crm'], enabled: true })
    await setGates(service.app, 'system', { names: ['crm'], enabled: true })
    await setGates(service.app, 'system', { names: ['crm'], enabled: false })
    await setGates(service.app, 'system', { names: ['crm'], enabled: false })
    expect(await audited()).toMatchObject([
      { action: 'gate.enabled', target: 'crm' },
      { action: 'gate.disabled', target: 'crm' },
    ])
  })

  test('refuse an unknown name, and then change none of the others', async () => {
    const wrong = setGates(service.app, 'system', { names: ['pipeline', 'nonsense'], enabled: true })
    await expect(wrong).rejects.toThrow(/There is no gate "nonsense"\. The gates are rest, crm/)
    expect(await audited()).toEqual([])
  })

  test('end in one state when many change them at once, with one audit row per change', async () => {
    await service.app.db.run(sql`delete from gates`)
    await Promise.all(
      Array.from({ length: 20 }, () => setGates(service.app, 'system', { names: ['all'], enabled: true })),
    )
    expect(await audited()).toHaveLength(gates.length - 1)
  })

  test('503 immediately on the process that closed it', async () => {
    await service.open('rest')
    expect((await service.get('/me', { key: tenant.key })).status).toBe(200)
    await service.shut('rest')
    expect(await service.get('/me', { key: tenant.key })).toMatchObject({
      status: 503,
      body: { code: 'rest_disabled' },
    })
    await service.open('rest')
  })
})

describe('allowlists', () => {
  test('contain users and workspaces that exist, each change audited once', async () => {
    const { user_id, workspace_id } = tenant
    const change = (allowed: boolean) => service.allow({ user_id, workspace_id }, allowed)
    await change(false)
    await change(true)
    await change(true)
    expect((await listAllowed(service.app.db)).map(({ list, id }) => [list, id])).toEqual([
      ['campaign_user', user_id],
      ['campaign_workspace', workspace_id],
    ])
    await change(false)
    expect(await listAllowed(service.app.db)).toEqual([])
    expect(await audited()).toMatchObject([
      { action: 'allowlist.added', target: user_id },
      { action: 'allowlist.added', target: workspace_id },
      { action: 'allowlist.removed', target: user_id },
      { action: 'allowlist.removed', target: workspace_id },
    ])
  })

  test('refuse unknown ids, and ids for the wrong list', async () => {
    for (const id of ['x', tenant.workspace_id]) {
      const wrong = setAllowed(service.app, 'system', { list: 'campaign_user', id, allowed: true })
      await expect(wrong).rejects.toThrow('There is no user')
    }
    const wrong = setAllowed(service.app, 'system', {
      list: 'campaign_workspace',
      id: tenant.user_id,
      allowed: true,
    })
    await expect(wrong).rejects.toThrow('There is no workspace')
  })
})

describe('dispatch', () => {
  test('is on, and switched off and on again, each audited', async () => {
    expect((await service.app.settings.current()).dispatch).toBe(true)
    await setDispatch(service.app, 'system', false)
    await setDispatch(service.app, 'system', false)
    expect((await service.app.settings.current()).dispatch).toBe(false)
    await setDispatch(service.app, 'system', true)
    expect((await service.app.settings.current()).dispatch).toBe(true)
    expect(await audited()).toMatchObject([{ action: 'dispatch.off' }, { action: 'dispatch.on' }])
  })

  test('keeps the first reason and time while it is off', async () => {
    const { app } = service
    await setDispatch(app, 'system', false, 'The database moves to another machine.')
    const first = await readDispatch(app.db)
    await setDispatch(app, 'system', false, 'Another reason.')
    expect(await readDispatch(app.db)).toEqual(first)
    expect(await describeSending(app)).toEqual({
      on: false,
      stop: 'Sending is switched off on this instance.',
      since: expect.any(Date),
      reason: 'The database moves to another machine.',
    })
    await setDispatch(app, 'system', true)
    expect(await describeSending(app)).toEqual({ on: true, stop: null, since: null, reason: null })
    await setDispatch(app, 'system', false)
    expect(await readDispatch(app.db)).toMatchObject({ dispatch: false, reason: null })
    await setDispatch(app, 'system', true)
  })

  test('refuses a reason that is empty or too long', async () => {
    for (const reason of ['', '  ', 'x'.repeat(501)]) {
      await expect(setDispatch(service.app, 'system', false, reason)).rejects.toThrow('A reason has 1 to 500')
    }
    expect((await readDispatch(service.app.db)).dispatch).toBe(true)
  })
})
