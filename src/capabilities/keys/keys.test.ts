import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { sha256 } from '../../lib/secrets.ts'
import { createKey, listKeys, liveKeysMax, noteKeyUse, revokeKey } from './keys.ts'

let service: Service
let tenant: Tenant

beforeAll(async () => {
  service = await openService()
  tenant = await service.tenant()
})
afterAll(() => service.close())

const audited = (target: string) =>
  service.app.db.rows(sql`select action, detail from audit where target = ${target} order by seq`)

describe('a new key', () => {
  test('is shown once: only its hash and its first characters are stored', async () => {
    const { key, id, prefix } = await service.key(tenant)
    expect((await service.get('/me', { key })).status).toBe(200)
    const row = await service.app.db.one<{ text: string; hash: Buffer }>(sql`
      select row_to_json(k)::text as text, hash from keys k where id = ${id}`)
    expect(row.text).not.toContain(key.slice(15))
    expect(row.hash).toEqual(sha256(key))
    expect(key.startsWith(prefix)).toBe(true)
    expect(JSON.stringify(await listKeys(service.app.db, tenant.workspace_id))).not.toContain(key)
    expect(JSON.stringify(await audited(id))).not.toContain(key)
    expect(await audited(id)).toMatchObject([{ action: 'key.created' }])
  })

  test('has the requested scopes, each once, in the order of the contract', async () => {
    const made = await service.key({ ...tenant, scopes: ['send', 'read', 'send'] })
    expect(made.scopes).toEqual(['read', 'send'])
  })

  test.each([
    ['no scope', { scopes: [] }],
    ['an unknown scope', { scopes: ['read', 'admin'] }],
    ['a scope in capitals', { scopes: ['READ'] }],
    ['a blank name', { name: ' ' }],
    ['a name that is too long', { name: '😀'.repeat(201) }],
    ['NUL in its name', { name: 'a\0' }],
    ['an unknown workspace', { workspace_id: '0199a1f0-0000-7000-8000-000000000001' }],
    ['a workspace that is no id', { workspace_id: "' or 1=1" }],
    ['an unknown user', { user_id: '0199a1f0-0000-7000-8000-000000000001' }],
  ])('is refused with a sentence: %s', async (_, fields) => {
    const before = (await listKeys(service.app.db, tenant.workspace_id)).length
    await expect(service.key({ ...tenant, ...fields })).rejects.toMatchObject({
      name: 'ApiError',
      status: expect.toBeOneOf([400, 404]),
    })
    expect(await listKeys(service.app.db, tenant.workspace_id)).toHaveLength(before)
  })

  test('is refused for a user of another workspace', async () => {
    const other = await service.tenant('Other')
    const stranger = service.key({ workspace_id: tenant.workspace_id, user_id: other.user_id })
    await expect(stranger).rejects.toThrow('is not a member of this workspace')
  })
})

describe('revoking', () => {
  test('401 afterwards; a repeat changes nothing and is not audited again', async () => {
    const { key, id } = await service.key(tenant)
    expect((await service.get('/me', { key })).status).toBe(200)
    const revoked = await revokeKey(service.app, 'cli:test', id)
    expect((await service.get('/me', { key })).status).toBe(401)
    expect(await revokeKey(service.app, 'cli:test', id)).toEqual(revoked)
    expect(await audited(id)).toMatchObject([{ action: 'key.created' }, { action: 'key.revoked' }])
  })

  test('refuses an unknown key', async () => {
    for (const id of ['x', '', '0199a1f0-0000-7000-8000-000000000001']) {
      await expect(revokeKey(service.app, 'system', id)).rejects.toThrow('There is no key')
    }
  })
})

describe('the number of keys', () => {
  test(`is at most ${liveKeysMax} live ones, however many are requested at once`, async () => {
    const crowded = await service.tenant('Crowded')
    const wanted = { ...crowded, name: 'many', scopes: ['read'] }
    const made = await Promise.allSettled(
      Array.from({ length: liveKeysMax + 10 }, () => createKey(service.app, 'system', wanted)),
    )
    // The tenant came with one.
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(liveKeysMax - 1)
    for (const each of made) {
      if (each.status === 'rejected') expect(each.reason.message).toContain('at most 50 live keys')
    }
    await revokeKey(service.app, 'system', crowded.key_id)
    await createKey(service.app, 'system', wanted)
    await expect(createKey(service.app, 'system', wanted)).rejects.toThrow('at most 50 live keys')
  })

  test('does not include expired keys', async () => {
    const brief = await service.tenant('Brief')
    const expires_at = new Date(Date.now() - 1_000)
    for (let at = 0; at < liveKeysMax + 5; at++) await service.key({ ...brief, expires_at })
    expect(await listKeys(service.app.db, brief.workspace_id)).toHaveLength(liveKeysMax + 6)
  })
})

describe('the last use', () => {
  test('is stored to the minute, and invalidates no cached lookup', async () => {
    const { id } = await service.key(tenant)
    const before = await service.app.settings.refresh()
    await noteKeyUse(service.app, [id])
    const used = (await listKeys(service.app.db, tenant.workspace_id)).find((key) => key.id === id)
    expect(used?.last_used_at?.toISOString()).toMatch(/:00\.000Z$/)
    expect(Math.abs((used?.last_used_at?.getTime() ?? 0) - Date.now())).toBeLessThan(61_000)
    expect((await service.app.settings.refresh()).version).toBe(before.version)
  })

  test('is written when the service closes', async () => {
    const brief = await openService()
    const { key, workspace_id } = await brief.tenant()
    await brief.get('/me', { key })
    const [unused] = await listKeys(brief.app.db, workspace_id)
    expect(unused?.last_used_at).toBeNull()
    const client = await brief.app.db.client()
    const used = new Promise((resolve) => client.on('notification', ({ payload }) => resolve(payload)))
    await client.query(`
      listen used;
      create function say() returns trigger language plpgsql as
        $$ begin perform pg_notify('used', new.last_used_at::text); return null; end $$;
      create trigger say after update on keys for each row execute function say()`)
    await brief.close()
    expect(await used).toMatch(/:00\+00$/)
    await client.end().catch(() => {})
  })
})
