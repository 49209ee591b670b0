import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { createAccount, listAccounts, setAccountEnabled, statuses } from './accounts.ts'

let service: Service
let tenant: Tenant

beforeAll(async () => {
  service = await openService()
  tenant = await service.tenant()
})
afterAll(() => service.close())

const make = (fields: object = {}) =>
  createAccount(service.app, 'system', {
    workspace_id: tenant.workspace_id,
    platform: 'sandbox',
    name: 'Sales',
    ...fields,
  })
const audited = (target: string) =>
  service.app.db.rows<{ action: string }>(sql`select action from audit where target = ${target} order by seq`)

describe('an account', () => {
  test('starts as CONNECTING, and is audited', async () => {
    const account = await make()
    expect(account).toMatchObject({ platform: 'sandbox', name: 'Sales', status: 'CONNECTING' })
    expect(account.id).toMatch(/^acc_[0-9A-Za-z]{20}$/)
    expect(await audited(account.id)).toEqual([{ action: 'account.created' }])
  })

  test.each([
    ['a blank name', { name: '\t' }],
    ['a name that is too long', { name: 'x'.repeat(201) }],
    ['NUL in its name', { name: '\0' }],
    ['no such workspace', { workspace_id: 'x' }],
  ])('is refused with %s', async (_, fields) => {
    await expect(make(fields)).rejects.toMatchObject({
      name: 'ApiError',
      status: expect.toBeOneOf([400, 404]),
    })
  })

  test('is disabled in every status and reconnects when enabled, each audited once', async () => {
    const { id } = await make()
    const change = (enabled: boolean) => setAccountEnabled(service.app, 'system', { id, enabled })
    for (const status of statuses.filter((each) => each !== 'DISABLED')) {
      await service.app.db.run(sql`update accounts set status = ${status} where id = ${id}`)
      const troubled = status === 'NEEDS_LOGIN' || status === 'RESTRICTED'
      expect((await change(true)).status).toBe(troubled ? 'CONNECTING' : status)
      expect((await change(false)).status).toBe('DISABLED')
      expect((await change(false)).status).toBe('DISABLED')
      expect((await change(true)).status).toBe('CONNECTING')
    }
    expect(await audited(id)).toHaveLength(1 + 2 * (statuses.length - 1) + 2)
    await expect(setAccountEnabled(service.app, 'system', { id: 'acc_0', enabled: true })).rejects.toThrow(
      'There is no account "acc_0"',
    )
  })

  test('is visible only to its own workspace, and to /me immediately', async () => {
    const own = await service.tenant('Own')
    const other = await service.tenant('Other')
    const id = await service.account(own.workspace_id)
    const seen = async ({ key }: Tenant) =>
      ((await service.get('/me', { key })).body.accounts as { id: string }[]).map((account) => account.id)
    expect([await seen(own), await seen(other)]).toEqual([[id], []])
    await setAccountEnabled(service.app, 'system', { id, enabled: false })
    expect(await seen(own)).toEqual([])
    expect((await listAccounts(service.app.db, own.workspace_id)).map((account) => account.id)).toEqual([id])
    expect(await listAccounts(service.app.db, other.workspace_id)).toEqual([])
  })
})
