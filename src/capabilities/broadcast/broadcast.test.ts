import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { createColumn } from '../columns/columns.ts'
import { createStage } from '../pipeline/pipeline.ts'
import { addSuppression } from '../suppressions/suppressions.ts'

let service: Service
let own: Tenant
let account_id: string
let serial = 5_000

beforeAll(async () => {
  service = await openService()
  own = await service.tenant('Own')
  account_id = await service.account(own.workspace_id)
})
afterAll(() => service.close())

const db = () => service.app.db

async function chat(stage: string, name = 'Ada'): Promise<`${number}`> {
  const id = `${serial++}` as const
  await service.chat({ account_id, workspace_id: own.workspace_id, id, name })
  await db().run(sql`
    update chats set stage_key = ${stage}, last_message_at = '2026-01-01'::timestamptz + make_interval(secs => ${serial})
    where account_id = ${account_id} and chat_id = ${id}`)
  return id
}

async function stage(key: string): Promise<string> {
  await createStage(service.app, 'system', { workspace_id: own.workspace_id, key, label: key })
  return key
}

function broadcast(body: object, headers: Record<string, string> = {}): Promise<Answer> {
  const given = {
    account_id,
    audience_type: 'stage',
    audience_ref: 'new',
    message_text: 'Hi {{name|you}}',
    ...body,
  }
  return service.post('/broadcast', { key: own.key, body: given, headers })
}

const code = ({ status, body }: Answer) => [status, body.code]

describe('POST /broadcast', () => {
  test('200 with the thirty most recent chats that may get a message', async () => {
    const audience_ref = await stage('many')
    const chats: string[] = []
    for (let n = 0; n < 33; n++) chats.unshift(await chat(audience_ref))
    const [barred = '', named = '', phoned = '', bot = ''] = chats
    const { workspace_id } = own
    await addSuppression(service.app, 'system', { workspace_id, platform_id: barred })
    await addSuppression(service.app, 'system', { workspace_id, username: `Person_${named}` })
    await db().run(sql`update contacts set phone = '+49 (0)170 555-02 02' where provider_id = ${phoned}`)
    await addSuppression(service.app, 'system', { workspace_id, phone: '+491705550202' })
    await db().run(sql`
      update chats set participants = jsonb_build_array(jsonb_build_object('id', ${bot}::text, 'kind', 'bot'))
      where chat_id = ${bot}`)
    const few = await broadcast({ audience_ref })
    expect(few.body, few.body.error).toMatchObject({
      ok: true,
      message: 'The broadcast is queued for 29 people.',
      recipients: 29,
      audience_total: 29,
      capped: false,
    })
    for (let n = 0; n < 3; n++) chats.unshift(await chat(audience_ref))
    const capped = await broadcast({ audience_ref })
    expect(capped.body).toMatchObject({ recipients: 30, audience_total: 32, capped: true })
    const shown = await service.get(`/broadcast/${String(capped.body.broadcast_id)}`, { key: own.key })
    expect(shown.body).toMatchObject({
      status: 'queued',
      recipients: 30,
      audience_total: 32,
      capped: true,
      totals: { queued: 30 },
    })
    const people = shown.body.people as { chat_id: string; blocked_by: string }[]
    expect(people.slice(0, 3).map(({ chat_id }) => chat_id)).toEqual(
      chats.slice(0, 3).map((id) => `platform:chat:${id}`),
    )
    expect(people[0]?.blocked_by).toBe('account_not_ready')
    await service.get(`/broadcast/${String(capped.body.broadcast_id)}`, { key: own.key })
  })

  test('200 with no recipient: an empty audience, and one without names when the message needs them', async () => {
    const audience_ref = await stage('empty')
    const none = {
      recipients: 0,
      audience_total: 0,
      capped: false,
      message: 'This audience is empty; nothing was queued.',
    }
    const answer = await broadcast({ audience_ref })
    expect(answer.body).toMatchObject(none)
    const shown = await service.get(`/broadcast/${String(answer.body.broadcast_id)}`, { key: own.key })
    expect(shown.body).toMatchObject({ status: 'completed', completed_at: expect.any(String), people: [] })
    await chat(audience_ref, '')
    expect((await broadcast({ audience_ref, message_text: 'Hi {{name}}' })).body).toMatchObject(none)
    expect((await broadcast({ audience_ref })).body).toMatchObject({ recipients: 1 })
  })

  test('200 for the chats with a value in a column', async () => {
    const column = await createColumn(service.app, 'system', {
      workspace_id: own.workspace_id,
      name: 'Team',
      type: 'select',
      options: [{ value: 'Red' }, { value: 'Blue' }],
    })
    const audience_ref = await stage('columns')
    for (const value of ['Red', 'Blue', 'Red']) {
      const chat_id = await chat(audience_ref)
      await db().run(sql`
        insert into column_values (account_id, chat_id, column_id, workspace_id, value)
        values (${account_id}, ${chat_id}, ${column.id}, ${own.workspace_id}, ${[value]})`)
    }
    const red = { audience_type: 'column', audience_ref: column.id, column_value: 'Red' }
    expect((await broadcast(red)).body).toMatchObject({ recipients: 2, audience_total: 2 })
    expect((await broadcast({ ...red, column_value: 'Green' })).body).toMatchObject({ recipients: 0 })
    expect(code(await broadcast({ ...red, column_value: undefined }))).toEqual([400, 'invalid_request'])
    for (const unknown of ['nothing', '0199a1f0-0000-7000-8000-00000000ffff']) {
      expect(code(await broadcast({ ...red, audience_ref: unknown }))).toEqual([404, 'column_not_found'])
    }
  })

  test('400 for an unknown or hidden stage, and for an invalid text', async () => {
    await stage('hidden')
    await db().run(sql`update stages set hidden = true where key = 'hidden'`)
    expect(code(await broadcast({ audience_ref: 'hidden' }))).toEqual([400, 'invalid_stage'])
    expect(code(await broadcast({ audience_ref: 'nothing' }))).toEqual([400, 'invalid_stage'])
    for (const message_text of ['', '   ', 'x'.repeat(4_097)]) {
      expect(code(await broadcast({ message_text }))).toEqual([400, 'invalid_request'])
    }
    for (const placeholder of [
      '[[name]]',
      '[[ NAME ]]',
      '{{first name}}',
      '{{name1}}',
      '{{name|a[b}}',
      '{{}}',
    ]) {
      const answer = await broadcast({ message_text: `Hi ${placeholder}` })
      expect(code(answer), placeholder).toEqual([400, 'unresolved_personalization'])
    }
    const audience_ref = await stage('long')
    await chat(audience_ref, 'Adalbertine')
    const message_text = `${'x'.repeat(4_088)}{{name}}`
    expect(code(await broadcast({ audience_ref, message_text }))).toEqual([400, 'invalid_request'])
  })

  test('503 while the suppression list cannot be read', async () => {
    await db().run(sql`alter table suppressions rename to suppressions_away`)
    try {
      expect(code(await broadcast({}))).toEqual([503, 'suppression_unavailable'])
    } finally {
      await db().run(sql`alter table suppressions_away rename to suppressions`)
    }
  })

  test('200 once per key, 409 for another message under it; without a key every call is another broadcast', async () => {
    const audience_ref = await stage('keyed')
    await chat(audience_ref)
    const key = { 'idempotency-key': 'once' }
    const first = await broadcast({ audience_ref }, key)
    const again = await broadcast({ audience_ref }, key)
    expect([again.status, again.body]).toEqual([200, first.body])
    const told = await service.get(`/operations/${first.headers.get('x-operation-id')}`, { key: own.key })
    expect(told.body.operation).toMatchObject({
      state: 'completed',
      detail: 'The broadcast is queued for 1 person. This request sent nothing.',
    })
    expect(code(await broadcast({ audience_ref, message_text: 'Other' }, key))).toEqual([
      409,
      'idempotency_collision',
    ])
    const apart = await broadcast({ audience_ref })
    expect(apart.body.broadcast_id).not.toBe(first.body.broadcast_id)
  })

  test('no list or detail of campaigns shows it, and no other workspace finds it', async () => {
    await service.allow(own)
    const { body } = await broadcast({})
    const id = String(body.broadcast_id)
    expect((await service.get(`/campaigns/${id}`, { key: own.key })).status).toBe(404)
    expect((await service.get('/campaigns', { key: own.key })).body.campaigns).toEqual([])
    const other = await service.tenant('Other')
    expect(code(await service.get(`/broadcast/${id}`, { key: other.key }))).toEqual([404, 'not_found'])
    expect(code(await service.get('/broadcast/x', { key: own.key }))).toEqual([404, 'not_found'])
    const { key } = own
    expect((await service.get('/analytics?period=all', { key })).body).toMatchObject({
      totals: { campaigns: 0 },
    })
  })

  test('200 whatever keys campaigns to the same people have', async () => {
    await service.allow(own)
    const audience_ref = await stage('alike')
    const chat_id = `platform:chat:${await chat(audience_ref)}`
    const made = await service.post('/campaigns', {
      key: own.key,
      body: { message_text: 'Hello', recipients: [{ account_id, chat_id }] },
      headers: { 'idempotency-key': 'broadcast alike' },
    })
    expect(made.status, made.body.error).toBe(201)
    const { status, body } = await broadcast({ audience_ref }, { 'idempotency-key': 'alike' })
    expect([status, body.recipients]).toEqual([200, 1])
  })
})
