import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { createWorkspace, listWorkspaces, requireWorkspace, updateWorkspace } from './workspaces.ts'

let service: Service
beforeAll(async () => {
  service = await openService()
})
afterAll(() => service.close())

describe('a workspace', () => {
  test('starts with the stage new, which cannot be hidden', async () => {
    const { id, name, timezone } = await createWorkspace(service.app, 'system', { name: 'Acme' })
    expect([name, timezone]).toEqual(['Acme', 'UTC'])
    expect(await service.app.db.rows(sql`select key, hidden from stages where workspace_id = ${id}`)).toEqual(
      [{ key: 'new', hidden: false }],
    )
    const hide = service.app.db.run(sql`update stages set hidden = true where workspace_id = ${id}`)
    await expect(hide).rejects.toMatchObject({ code: '23514' })
  })

  test('gets a new name and zone, and keeps the fields that were not given', async () => {
    const { id } = await createWorkspace(service.app, 'system', { name: 'Before', timezone: 'Europe/Berlin' })
    expect(await updateWorkspace(service.app, 'system', { id, name: 'After' })).toMatchObject({
      name: 'After',
      timezone: 'Europe/Berlin',
    })
    await updateWorkspace(service.app, 'system', { id, timezone: 'America/New_York' })
    expect(await requireWorkspace(service.app.db, id)).toMatchObject({
      name: 'After',
      timezone: 'America/New_York',
    })
    const notes = await service.app.db.rows(sql`select action from audit where target = ${id} order by seq`)
    expect(notes).toEqual(['created', 'updated', 'updated'].map((what) => ({ action: `workspace.${what}` })))
  })

  test.each([
    ['a blank name', { name: ' ' }],
    ['no name', {}],
    ['a name that is too long', { name: 'x'.repeat(201) }],
    ['a lone surrogate', { name: 'a\ud800' }],
    ['an unknown zone', { name: 'Acme', timezone: 'Mars/Olympus' }],
    ['an offset for a zone', { name: 'Acme', timezone: '+02:00' }],
    ['a zone that only Node knows', { name: 'Acme', timezone: 'AET' }],
    ['a zone that means two places', { name: 'Acme', timezone: 'IST' }],
    ['an empty zone', { name: 'Acme', timezone: '' }],
  ])('is refused with %s', async (_, fields) => {
    const before = await listWorkspaces(service.app.db)
    await expect(createWorkspace(service.app, 'system', fields)).rejects.toMatchObject({
      name: 'ApiError',
      status: expect.toBeOneOf([400, 404]),
    })
    expect(await listWorkspaces(service.app.db)).toEqual(before)
  })

  test('may have a name in any script, 200 characters long', async () => {
    const name = '😀'.repeat(200)
    expect((await createWorkspace(service.app, 'system', { name })).name).toBe(name)
  })

  test('is refused if it does not exist, whatever its id looks like', async () => {
    for (const id of ['', 'x', "' or 1=1 --", '0199a1f0-0000-7000-8000-000000000001']) {
      await expect(requireWorkspace(service.app.db, id)).rejects.toThrow('There is no workspace')
      await expect(updateWorkspace(service.app, 'system', { id, name: 'x' })).rejects.toThrow(
        'There is no workspace',
      )
    }
  })
})
