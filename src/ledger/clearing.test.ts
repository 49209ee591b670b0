/** Clearing ended operations: no text stays, and everything that proves, counts and repeats does. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LedgerRows } from '../../test/harness/ledger-rows.ts'
import type { Tenant } from '../../test/harness/service.ts'
import { openWorkplace, type Workplace } from '../../test/harness/worker.ts'
import { sql } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import { clearOperations } from './clearing.ts'

let work: Workplace
let tenant: Tenant
let rows: LedgerRows
let account_id: string
let person: number
beforeAll(async () => {
  work = await openWorkplace()
  await work.work()
  await work.service.open('all', 'extended')
  tenant = await work.service.tenant()
  rows = new LedgerRows(work.service, tenant)
  account_id = await work.connected(tenant)
  person = work.person('Wilhelmina')
  work.write(account_id, person, 'hello')
  await work.untilStored(account_id, 1)
})
afterAll(() => work.close())

const clear = (...ids: readonly string[]) => work.db.transaction((tx) => clearOperations(tx, ids))

/** The row as text, without what clearing may change. */
const kept = (id: string) =>
  work.db.one(sql`
    select to_jsonb(o) - '{payload, reply_body, cleared_at}'::text[] as row from operations o where id = ${id}`)

const whole = async (id: string) =>
  (await work.db.one<{ row: string }>(sql`select o::text as row from operations o where id = ${id}`)).row

const isCleared = async (id: string) =>
  (
    await work.db.one<{ cleared: boolean }>(
      sql`select cleared_at is not null as cleared from operations where id = ${id}`,
    )
  ).cleared

describe('clearing an operation', () => {
  test('a repeat of a cleared send is 200 with the same ids, and sends nothing', async () => {
    const request = {
      key: tenant.key,
      body: { account_id, chat_id: `platform:chat:${person}`, text: 'the canary text' },
      headers: { 'idempotency-key': randomUUID() },
    }
    const first = await work.service.post('/messages', request)
    expect(first.status).toBe(200)
    const id = String(first.body.operation_id)
    expect(await whole(id)).toContain('canary')
    const before = await kept(id)
    expect(await clear(id)).toBe(1)
    expect(await whole(id)).not.toContain('canary')
    expect(await kept(id)).toEqual(before)
    const again = await work.service.post('/messages', request)
    expect([again.status, again.body]).toEqual([200, first.body])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    const sent = work.sandbox.world.state.journal.filter(
      (one) => 'text' in one && one.text?.includes('canary'),
    )
    expect(sent).toHaveLength(1)
    expect(await clear(id)).toBe(0)
  })

  test('stored answers lose texts, names and values, and repeats keep their form', async () => {
    const { person_id } = work.sandbox.world.addPerson({ name: 'Wilhelmina Canary', username: 'canary_w' })
    const started = {
      key: tenant.key,
      body: { account_id, identifier: '@canary_w' },
      headers: { 'idempotency-key': randomUUID() },
    }
    const first = await work.service.post('/chats/start', started)
    expect(first.body.chat).toMatchObject({ name: 'Wilhelmina Canary', username: 'canary_w' })
    const id = String(first.headers.get('x-operation-id'))
    await clear(id)
    expect(await whole(id)).not.toMatch(/canary/i)
    const again = await work.service.post('/chats/start', started)
    expect([again.status, again.body]).toEqual([
      200,
      { chat: { id: `platform:chat:${person_id}`, account_id, name: '', username: null }, created: true },
    ])
    const local = newId()
    const answer = {
      note: { id: 'x', text: 'canary', author: { name: 'Ana' } },
      value: ['canary'],
      texts: ['t'],
    }
    await work.db.run(sql`
      insert into operations (id, workspace_id, kind, effect, fingerprint, state, reply_status, reply_body)
      values (${local}, ${tenant.workspace_id}, 'create_note', 'local', ${Buffer.alloc(32)}, 'completed', 201,
        ${JSON.stringify(answer)}::json)`)
    expect(await clear(local)).toBe(1)
    const { reply_body } = await rows.row(local)
    expect(reply_body).toEqual({
      note: { id: 'x', text: '', author: { name: 'Ana' } },
      value: [],
      texts: ['t'],
    })
  })

  test('what is queued or in flight keeps its text; what ran again is not cleared any more', async () => {
    const held = await rows.account()
    const states = ['queued', 'submitting', 'completed', 'refused', 'released', 'ambiguous'] as const
    const ids: string[] = []
    for (const state of states) ids.push(await rows.operation(held, { state, token: newId() }))
    expect(await clear(...ids)).toBe(4)
    expect(await Promise.all(ids.map(isCleared))).toEqual([false, false, true, true, true, true])
    const released = ids[4] ?? ''
    await work.db.run(sql`
      update operations set state = 'queued', payload = '{"text": "once more", "file": null}' where id = ${released}`)
    expect(await isCleared(released)).toBe(false)
  })

  test('an ambiguous one can be proven afterwards, of every kind that is found in history', async () => {
    const held = await rows.account()
    const kinds = [...work.service.app.operations.values()].filter(({ found_in_history }) => found_in_history)
    expect(kinds.length).toBeGreaterThan(2)
    for (const kind of kinds) {
      const payload = { text: 'canary', file: null, branch: 'seen', variant: 1, found: false }
      const id = await rows.operation(held, { kind: kind.kind, state: 'ambiguous', token: newId(), payload })
      await clear(id)
      const value = { message_id: '7', at: '2026-11-02T09:00:00.000Z' }
      const operation = await rows.queued(id)
      await work.db.transaction((tx) => kind.store(tx, [{ operation, value }]))
      const [reply] = await work.db.transaction((tx) => kind.reply(tx, [{ operation, value }]))
      expect(reply).toMatchObject({ message_id: '7', account_id: held.account_id })
    }
  })

  test('its file goes, unless another operation is still to send it', async () => {
    const held = await rows.account()
    const [own, shared] = [newId(), newId()]
    for (const file_id of [own, shared]) {
      await work.db.run(sql`
        insert into file_chunks (file_id, n, workspace_id, bytes) values (${file_id}, 0, ${tenant.workspace_id}, 'bytes')`)
    }
    const first = await rows.operation(held, { state: 'ambiguous' })
    const second = await rows.operation(held, { state: 'completed' })
    const queued = await rows.operation(held)
    await work.db.run(sql`update operations set file_id = ${own} where id = ${first}`)
    await work.db.run(
      sql`update operations set file_id = ${shared} where id = any(${[second, queued]}::uuid[])`,
    )
    await clear(first, second)
    const left = await work.db.rows(sql`
      select file_id from file_chunks where file_id = any(${[own, shared]}::uuid[])`)
    expect(left).toEqual([{ file_id: shared }])
  })
})
