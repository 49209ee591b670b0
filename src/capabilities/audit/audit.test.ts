import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { openService, type Service } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { setGates } from '../gates/gates.ts'
import { record, verifyAudit } from './audit.ts'

let service: Service
beforeEach(async () => {
  service ??= await openService()
  await tamper('truncate audit')
  await service.app.db.run(sql`delete from settings where name = 'audit_head'`)
  for (let at = 1; at <= 8; at++) await note(`target-${at}`)
})
afterAll(() => service.close())

function note(target: string): Promise<void> {
  return service.app.db.transaction((tx) =>
    record(service.app, tx, 'cli:ana', { action: 'thing.changed', target, detail: { b: 1, a: 'é' } }),
  )
}

/** Only possible with direct access to the database. */
async function tamper(statement: string): Promise<void> {
  await service.app.db.pool.query(`
    begin; alter table audit disable trigger audit_append_only; ${statement};
    alter table audit enable trigger audit_append_only; commit`)
}

describe('the audit log', () => {
  test('verifies from the first row to the last', async () => {
    expect(await verifyAudit(service.app)).toEqual({ ok: true, rows: 8 })
  })

  test('refuses to be changed', async () => {
    for (const statement of ['update audit set actor = actor', 'delete from audit', 'truncate audit']) {
      await expect(service.app.db.pool.query(statement)).rejects.toThrow('never changed')
    }
  })

  test.each([
    ['a changed actor', `update audit set actor = 'system' where seq = 4`, '4'],
    ['a changed detail', `update audit set detail = '{}' where seq = 1`, '1'],
    ['a changed time', `update audit set at = at + interval '1 ms' where seq = 8`, '8'],
    ['a changed hash', `update audit set hash = sha256('x') where seq = 5`, '5'],
    ['an added workspace', `update audit set workspace_id = gen_random_uuid() where seq = 2`, '2'],
    ['a row removed in the middle', 'delete from audit where seq = 5', '5'],
    ['the first row removed', 'delete from audit where seq = 1', '1'],
    ['the last row removed', 'delete from audit where seq = 8', '8'],
    ['all rows removed', 'delete from audit', '1'],
    [
      'two swapped rows',
      `update audit set seq = -seq where seq in (3, 6); update audit set seq = 9 + seq where seq < 0`,
      '3',
    ],
    [
      'a row removed and the others moved up',
      `delete from audit where seq = 4; update audit set seq = -seq where seq > 4; update audit set seq = -seq - 1 where seq < 0`,
      '4',
    ],
    [
      'a row added at the end',
      `insert into audit select 9, at, workspace_id, actor, action, target, detail, hash from audit where seq = 8`,
      '9',
    ],
  ])('names the first row that does not match: %s', async (_, statement, seq) => {
    await tamper(statement)
    expect(await verifyAudit(service.app)).toMatchObject({ ok: false, seq, rows: Number(seq) - 1 })
  })

  test('does not verify under another secret', async () => {
    const other = await openService({ env: { PARLEY_SECRET: 'another secret that is long enough, too' } })
    try {
      expect(await verifyAudit({ ...service.app, secrets: other.app.secrets })).toMatchObject({
        ok: false,
        seq: '1',
      })
    } finally {
      await other.close()
    }
  })

  test('verifies while many transactions write to it', async () => {
    const written = Promise.all(Array.from({ length: 60 }, (_, at) => note(`at-once-${at}`)))
    const verdicts = await Promise.all(Array.from({ length: 30 }, () => verifyAudit(service.app)))
    expect(verdicts.filter(({ ok }) => !ok)).toEqual([])
    await written
    expect(await verifyAudit(service.app)).toEqual({ ok: true, rows: 68 })
  })

  test('verifies over more than one page', async () => {
    await service.app.db.transaction(async (tx) => {
      for (let at = 0; at < 1_100; at++)
        await record(service.app, tx, 'system', { action: 'a', target: String(at) })
    })
    expect(await verifyAudit(service.app)).toEqual({ ok: true, rows: 1_108 })
  })

  test('has no row for a change that was rolled back', async () => {
    const failing = service.app.db.transaction(async (tx) => {
      await record(service.app, tx, 'system', { action: 'a', target: 'never' })
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    await setGates(service.app, 'system', { names: ['extended'], enabled: true })
    expect(await verifyAudit(service.app)).toEqual({ ok: true, rows: 9 })
  })
})
