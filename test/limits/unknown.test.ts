/** A platform answer that never comes: what an operator can do about it. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { closeOperation, listLedger } from '../../src/capabilities/operations/operations.ts'
import { sql } from '../../src/db/sql.ts'
import { openWorkplace, type Workplace } from '../harness/worker.ts'

let workplace: Workplace
beforeAll(async () => {
  workplace = await openWorkplace()
  await workplace.work()
})
afterAll(() => workplace.close())

describe('an ambiguous operation', () => {
  test('is listed, closed once by an operator, audited, and its key is 409 forever', async () => {
    const { service } = workplace
    const { workspace_id, key, ...tenant } = await service.tenant()
    const account_id = await workplace.connected({ workspace_id, key, ...tenant })
    const person = workplace.person()
    workplace.write(account_id, person, 'hello')
    await workplace.untilStored(account_id, 1)
    const headers = { 'idempotency-key': randomUUID() }
    const body = { account_id, chat_id: `platform:chat:${person}`, text: 'never known' }
    workplace.fault({ on: 'send', fault: 'timeout_before', times: 1, account_id })
    const first = await service.post('/messages', { key, body, headers })
    expect(first).toMatchObject({ status: 503, body: { code: 'outcome_ambiguous' } })
    const id = String(first.headers.get('x-operation-id'))
    const open = () => listLedger(workplace.db, { workspace_id, ambiguous: true })
    expect(await open()).toContainEqual(expect.objectContaining({ id, state: 'ambiguous' }))
    await closeOperation(service.app, 'system', { id, closed_as: 'not_sent' })
    expect((await open()).map((row) => row.id)).not.toContain(id)
    expect(await service.post('/messages', { key, body, headers })).toMatchObject({
      status: 409,
      body: { code: 'outcome_ambiguous' },
    })
    const audited = await workplace.db.rows(sql`select action from audit where target = ${id}`)
    expect(audited).toEqual([{ action: 'operation.closed' }])
  })
})
