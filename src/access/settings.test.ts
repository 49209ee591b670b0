import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { copyDatabase, type TestDatabase } from '../../test/harness/database.ts'
import { hangMs, until } from '../../test/harness/process.ts'
import { timed } from '../../test/harness/timed.ts'
import { openDatabase } from '../db/pool.ts'
import { type Database, sql } from '../db/sql.ts'
import { type LiveSettings, openSettings } from './settings.ts'

let copy: TestDatabase
let db: Database
let settings: LiveSettings

beforeEach(async () => {
  copy = await copyDatabase()
  db = openDatabase({ connectionString: copy.url }, { pool_size: 3 })
  settings = openSettings(db)
})
afterEach(async () => {
  settings.close()
  await db.close()
  await copy.drop()
})

describe('the settings', () => {
  test('are all off on an empty database', async () => {
    const { gates, allowlists, dispatch } = await settings.current()
    expect([...gates]).toEqual([])
    expect(allowlists).toEqual({ campaign_user: new Set(), campaign_workspace: new Set() })
    expect(dispatch).toBe(true)
  })

  test('show a change within a second, without a request for it', timed, async () => {
    await settings.current()
    await db.run(
      sql`insert into gates (name, enabled) values ('crm', true), ('pipeline', false), ('unheard_of', true)`,
    )
    await db.run(sql`insert into allowlists (list, id) values ('campaign_user', gen_random_uuid())`)
    await db.run(sql`update settings set value = 'false' where name = 'dispatch'`)
    const changedAt = performance.now()
    const seen = await until('it is seen', hangMs, async () => {
      const snapshot = await settings.current()
      return snapshot.gates.has('crm') && snapshot
    })
    expect(performance.now() - changedAt).toBeLessThan(1_000)
    expect([...seen.gates]).toEqual(['crm'])
    expect(seen.allowlists?.campaign_user.size).toBe(1)
    expect(seen.dispatch).toBe(false)
  })

  test('keep looked-up values while nothing changes', async () => {
    const first = await settings.refresh()
    const second = await settings.refresh()
    expect(second.callers).toBe(first.callers)
    await db.run(sql`insert into gates (name, enabled) values ('crm', true)`)
    const third = await settings.refresh()
    expect(third.callers).not.toBe(first.callers)
    expect(BigInt(third.version)).toBeGreaterThan(BigInt(first.version))
  })

  test('are not trusted once they are a second old and cannot be read', async () => {
    await settings.current()
    await db.run(sql`alter table gates rename to away`)
    await sleep(1_050)
    await expect(settings.current()).rejects.toMatchObject({ code: 'schema_unavailable' })
    await db.run(sql`alter table away rename to gates`)
    expect((await settings.current()).gates.size).toBe(0)
  })

  test('follow a database that was restored to an earlier state', async () => {
    await db.run(sql`insert into gates (name, enabled) values ('crm', true)`)
    expect((await settings.refresh()).gates.has('crm')).toBe(true)
    await db.run(sql`delete from gates`)
    await db.run(sql`update settings set value = '1' where name = 'version'`)
    expect((await settings.refresh()).gates.has('crm')).toBe(false)
  })

  test.each([
    `delete from settings where name = 'dispatch'`,
    `update settings set value = '"yes"' where name = 'dispatch'`,
  ])('an unreadable switch is off: %s', async (damage) => {
    await db.pool.query(damage)
    expect((await settings.refresh()).dispatch).toBe(false)
  })

  test('return domain time: a manual clock stands still', async () => {
    const snapshot = await settings.refresh()
    expect(Math.abs(snapshot.now().getTime() - Date.now())).toBeLessThan(5_000)
    await db.run(sql`insert into manual_clock (at) values ('2030-01-01T00:00:00Z')`)
    const manual = await settings.refresh()
    expect(manual.now()).toEqual(new Date('2030-01-01T00:00:00Z'))
  })
})
