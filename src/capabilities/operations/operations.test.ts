import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { addOperation, openTeam, type Team } from '../../../test/harness/team.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import { routes } from '../../lists/routes.ts'
import { closeOperation } from './operations.ts'

let service: Service
let own: Tenant
let account_id: string
beforeAll(async () => {
  service = await openService()
  own = await service.tenant('Own')
  account_id = await service.account(own.workspace_id)
})
afterAll(() => service.close())

interface Row {
  readonly state: string
  readonly reason?: string | null
  readonly detail?: string | null
  readonly closed_as?: string | null
  readonly reconciled?: boolean
}

async function operation({ state, reason = null, detail = null, closed_as = null, reconciled = false }: Row) {
  const id = newId()
  const done = state === 'completed'
  await service.app.db.run(sql`
    insert into operations (id, workspace_id, kind, effect, fingerprint, state, reason, detail, closed_as, reconciled,
      account_id, chat_id, reply_status, reply_body)
    values (${id}, ${own.workspace_id}, 'send_message', 'platform', ${Buffer.alloc(32)}, ${state}, ${reason}, ${detail},
      ${closed_as}, ${reconciled}, ${account_id}, 42, ${done ? 200 : null}, ${done ? '{"message_id":"8"}' : null})`)
  return id
}

const look = (id: string, key = own.key) => service.get(`/operations/${id}`, { key })

describe('GET /operations/{operation_id}', () => {
  test('200 with the row, and the message it became', async () => {
    const id = await operation({ state: 'completed' })
    const { status, body } = await look(id)
    expect([status, body.operation]).toEqual([
      200,
      {
        id,
        kind: 'send_message',
        state: 'completed',
        account_id,
        chat_id: 'platform:chat:42',
        created_at: expect.any(String),
        crossed_at: null,
        finished_at: null,
        reconciled: false,
        reason: null,
        detail: 'The platform accepted it.',
        message_id: '8',
      },
    ])
  })

  test.each<[RegExp, Row]>([
    [/Nothing was sent yet/, { state: 'queued' }],
    [/waits for the answer of the platform/, { state: 'submitting' }],
    [/proved it later/, { state: 'completed', reconciled: true }],
    [/refused it permanently \(blocked_by_person\)/, { state: 'refused', detail: 'blocked_by_person' }],
    [
      /Nothing was sent \(flood_wait\)\. You can repeat the request/,
      { state: 'released', detail: 'flood_wait' },
    ],
    [
      /did not answer in time.*Not sent again.*shows up in the chat/,
      { state: 'ambiguous', reason: 'timeout' },
    ],
    [/stopped before it stored the outcome/, { state: 'ambiguous', reason: 'lease' }],
    [/restored from an older copy/, { state: 'ambiguous', reason: 'restored' }],
    [/recorded it as not sent/, { state: 'ambiguous', reason: 'unknown', closed_as: 'not_sent' }],
  ])('200 with what is known: %s', async (sentence, row) => {
    const { body } = await look(await operation(row))
    expect(body.operation).toMatchObject({ state: row.state, detail: expect.stringMatching(sentence) })
  })

  test.each(routes.filter(({ effect, idempotency }) => effect === 'local' && idempotency))(
    '$name says what was done, in its answer or for the ledger',
    ({ done, example }) => {
      const { message } = example.response as { message?: string }
      expect(message ?? done).toMatch(/\.$/)
    },
  )

  test('200 for the id that callers got before a restore', async () => {
    const [id, public_id] = [await operation({ state: 'completed' }), newId()]
    await service.app.db.run(sql`update operations set public_id = ${public_id} where id = ${id}`)
    expect((await look(public_id)).body.operation).toMatchObject({ id: public_id })
  })

  test("404 for another workspace's, an unknown and a malformed id: the same answer", async () => {
    const other = await service.tenant('Other')
    const id = await operation({ state: 'completed' })
    const foreign = await look(id, other.key)
    const unknown = await look(newId())
    expect([foreign.status, foreign.body]).toEqual([404, unknown.body])
    expect((await look('no-id')).body.code).toBe('not_found')
  })
})

describe('POST /operations/{operation_id}/close', () => {
  let team: Team
  beforeAll(async () => {
    team = await openTeam(service)
    await service.chat({ account_id: team.account_id, workspace_id: team.workspace_id })
  })
  const close = (id: string, body: unknown, ask = team.ask) => ask('POST', `/operations/${id}/close`, body)
  const audited = (target: string) =>
    service.app.db.rows<{ detail: string }>(sql`
      select actor, action, workspace_id, detail from audit where target = ${target} order by seq`)

  test('200 records what a member saw, in the audit log too, and the message is never sent again', async () => {
    const member = await team.join('member')
    const id = await addOperation(service, team, { state: 'ambiguous', reason: 'timeout' })
    const { status, body } = await close(id, { sent: true }, member.ask)
    expect([status, body.operation]).toEqual([
      200,
      expect.objectContaining({
        id,
        state: 'ambiguous',
        detail: expect.stringMatching(/recorded it as sent/),
      }),
    ])
    expect(await audited(id)).toEqual([
      {
        actor: `user:${member.user_id}`,
        action: 'operation.closed',
        workspace_id: team.workspace_id,
        detail: '{"closed_as":"sent"}',
      },
    ])
    const path = `/chats/platform:chat:42/timeline?account_id=${team.account_id}`
    expect((await team.ask('GET', path)).body.items).toContainEqual(
      expect.objectContaining({ id, closed_as: 'sent', state: 'ambiguous' }),
    )
  })

  test('409 with the present state of one that is not ambiguous', async () => {
    for (const state of ['queued', 'submitting', 'completed', 'refused', 'released']) {
      const id = await addOperation(service, team, { state })
      const answer = await close(id, { sent: false })
      expect(answer).toMatchObject({ status: 409, body: { code: 'conflict' } })
      expect(answer.body.error).toContain(state)
      expect(await audited(id)).toEqual([])
    }
  })

  test('409 for one that another person recorded otherwise; the same again is no conflict, and a command corrects it', async () => {
    const id = await addOperation(service, team, { state: 'ambiguous', reason: 'timeout' })
    const member = await team.join('member')
    expect(await close(id, { sent: false }, member.ask)).toMatchObject({ status: 200 })
    const answer = await close(id, { sent: true })
    expect(answer).toMatchObject({ status: 409, body: { code: 'conflict' } })
    expect(answer.body.error).toMatch(/recorded it as not sent\. An operator can correct it/)
    expect(await close(id, { sent: false })).toMatchObject({ status: 200 })
    await closeOperation(service.app, 'system', { id, closed_as: 'sent' })
    expect(await close(id, { sent: false })).toMatchObject({ status: 409 })
    expect((await audited(id)).map(({ detail }) => detail)).toEqual([
      '{"closed_as":"not_sent"}',
      '{"closed_as":"not_sent"}',
      '{"closed_as":"sent"}',
    ])
  })

  test("404 for another workspace's, an unknown and a malformed id, 400 for another body", async () => {
    const other = await openTeam(service, 'Elsewhere')
    const id = await addOperation(service, team, { state: 'ambiguous', reason: 'timeout' })
    for (const [asked, ask] of [
      [id, other.ask],
      [newId(), team.ask],
      ['no-id', team.ask],
    ] as const) {
      expect(await close(asked, { sent: true }, ask)).toMatchObject({
        status: 404,
        body: { code: 'not_found' },
      })
    }
    for (const body of [{}, { sent: 'yes' }, { sent: null }, { sent: true, more: 1 }, null]) {
      expect(await close(id, body)).toMatchObject({ status: 400 })
    }
    expect(await audited(id)).toEqual([])
  })
})
