import { createHash, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hangMs, until } from '../../../test/harness/process.ts'
import type { Ask, Tenant } from '../../../test/harness/service.ts'
import { openWorkplace, type Workplace } from '../../../test/harness/worker.ts'
import { sql } from '../../db/sql.ts'
import type { NewFault } from '../../platform/sandbox/faults.ts'
import { setDispatch } from '../gates/gates.ts'

let workplace: Workplace
let tenant: Tenant
let account_id: string
let person: number

beforeAll(async () => {
  workplace = await openWorkplace()
  const { service } = workplace
  await workplace.work()
  await service.open('start_chat')
  tenant = await service.tenant()
  account_id = await workplace.connected(tenant)
  person = await chatWith('Mara')
})
afterAll(() => workplace.close())

/** A person who has written to the account. */
async function chatWith(name: string, behaviour: 'silent' | 'blocks' = 'silent'): Promise<number> {
  const id = workplace.sandbox.world.addPerson({ name, behaviour }).person_id
  const known = (await workplace.messages(account_id)).length
  workplace.write(account_id, id, 'hello')
  await workplace.untilStored(account_id, known + 1)
  return id
}

interface Sending extends Ask {
  readonly text?: string
  readonly idempotency_key?: string | undefined
  readonly to?: number
}

function send({ text = 'Good morning', idempotency_key = randomUUID(), to = person, ...ask }: Sending = {}) {
  return workplace.service.post('/messages', {
    key: tenant.key,
    body: { account_id, chat_id: `platform:chat:${to}`, text },
    headers: { 'idempotency-key': idempotency_key },
    ...ask,
  })
}

/** What the platform accepted. */
function accepted(text: string) {
  return workplace.sandbox.world.state.journal.filter((entry) => 'text' in entry && entry.text === text)
}

async function operation(id: unknown) {
  return workplace.db.one<{
    state: string
    reason: string | null
    detail: string | null
    reconciled: boolean
  }>(sql`select state, reason, detail, reconciled from operations where id = ${id}`)
}

function fault(on: NewFault['on'], kind: NewFault['fault'], more: Partial<NewFault> = {}): void {
  workplace.fault({ on, fault: kind, times: 1, account_id, ...more })
}

describe('POST /messages', () => {
  test('200 once the platform has accepted the message, which is stored', async () => {
    const answer = await send({ text: 'the first' })
    expect(answer).toMatchObject({
      status: 200,
      body: { ok: true, account_id, chat_id: `platform:chat:${person}` },
    })
    expect(accepted('the first')).toMatchObject([{ account_id, random_id: expect.any(String) }])
    expect(answer.headers.get('x-operation-id')).toBe(answer.body.operation_id)
    const { body } = await workplace.service.get(
      `/chats/platform:chat:${person}/messages?account_id=${account_id}`,
      { key: tenant.key },
    )
    expect(body.messages).toContainEqual(
      expect.objectContaining({ id: answer.body.message_id, text: 'the first', is_sender: true }),
    )
    const chats = await workplace.service.get(`/chats?account_id=${account_id}`, { key: tenant.key })
    expect(chats.body.chats).toContainEqual(expect.objectContaining({ last_message_text: 'the first' }))
  })

  test('200 with the same body for a repeat, which sends nothing', async () => {
    const idempotency_key = randomUUID()
    const first = await send({ text: 'only once', idempotency_key })
    const again = await send({ text: 'only once', idempotency_key: `"${idempotency_key}"` })
    expect(again).toMatchObject({ status: 200, body: first.body })
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(first.headers.get('idempotent-replayed')).toBeNull()
    expect(accepted('only once')).toHaveLength(1)
  })

  test('400 for the same key with another payload, 400 without a key', async () => {
    const idempotency_key = randomUUID()
    await send({ text: 'one text', idempotency_key })
    const other = await send({ text: 'another text', idempotency_key })
    expect(other).toMatchObject({ status: 400, body: { code: 'idempotency_collision' } })
    expect(await send({ headers: {} })).toMatchObject({
      status: 400,
      body: { code: 'idempotency_key_required' },
    })
  })

  test('200 or 409 for fifty at once, and one submission', async () => {
    const idempotency_key = randomUUID()
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => send({ text: 'fifty at once', idempotency_key })),
    )
    expect(accepted('fifty at once')).toHaveLength(1)
    const bodies = new Set(
      answers.filter(({ status }) => status === 200).map(({ body }) => JSON.stringify(body)),
    )
    expect(bodies.size).toBe(1)
    for (const { status, body } of answers) {
      if (status !== 200)
        expect({ status, code: body.code }).toEqual({ status: 409, code: 'operation_in_progress' })
    }
  })

  test('403 for a chat that is not in the account, and for a recipient who refuses messages', async () => {
    expect(await send({ to: 999_999 })).toMatchObject({ status: 403, body: { code: 'chat_unavailable' } })
    const to = await chatWith('Blocker', 'blocks')
    const idempotency_key = randomUUID()
    const refused = await send({ to, idempotency_key })
    expect(refused).toMatchObject({ status: 403, body: { code: 'blocked_by_person' } })
    const again = await send({ to, idempotency_key })
    expect(again).toMatchObject({ status: 403, body: refused.body })
    expect(again.headers.get('idempotent-replayed')).toBe('true')
  })

  test('200 for a form with one file, whose bytes arrive unchanged', async () => {
    const bytes = Buffer.alloc(700_001, 'parley ')
    const form = (name = 'offer ü.pdf') => {
      const data = new FormData()
      data.set('account_id', account_id)
      data.set('chat_id', `platform:chat:${person}`)
      data.set('text', ' ')
      data.set('attachments', new Blob([bytes], { type: 'application/pdf' }), name)
      return data
    }
    const upload = async (body: FormData, idempotency_key: string) => {
      const headers = { authorization: `Bearer ${tenant.key}`, 'idempotency-key': idempotency_key }
      const response = await fetch(`${workplace.service.url}/api/v1/messages`, {
        method: 'POST',
        headers,
        body,
      })
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    }
    const idempotency_key = randomUUID()
    const first = await upload(form(), idempotency_key)
    expect(first).toMatchObject({ status: 200, body: { ok: true } })
    expect(await upload(form(), idempotency_key)).toEqual(first)
    expect(await upload(form('other.pdf'), idempotency_key)).toMatchObject({
      status: 400,
      body: { code: 'idempotency_collision' },
    })
    const { journal } = workplace.sandbox.world.state
    const arrived = journal.flatMap(({ file_sha256 }) => file_sha256 ?? [])
    expect(arrived).toEqual([createHash('sha256').update(bytes).digest('hex')])
    const { body } = await workplace.service.get(
      `/chats/platform:chat:${person}/messages?account_id=${account_id}`,
      { key: tenant.key },
    )
    expect(body.messages).toContainEqual(
      expect.objectContaining({
        id: first.body.message_id,
        text: '',
        attachments: [
          {
            index: 0,
            kind: 'file',
            file_name: 'offer ü.pdf',
            media_type: 'application/pdf',
            size: bytes.length,
          },
        ],
      }),
    )
  })

  test('503 flood_wait with Retry-After for every send of the account until it ends; reading continues', async () => {
    fault('send', 'flood_wait', { seconds: 2 })
    const idempotency_key = randomUUID()
    const first = await send({ text: 'flooded', idempotency_key })
    expect(first).toMatchObject({ status: 503, body: { code: 'flood_wait' } })
    expect(Number(first.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await send({ text: 'another' })).toMatchObject({ status: 503, body: { code: 'flood_wait' } })
    expect(await readState(false)).toMatchObject({ status: 200 })
    await until('the flood is over', hangMs, async () => (await send({ text: 'probe' })).status === 200)
    expect(await send({ text: 'flooded', idempotency_key })).toMatchObject({ status: 200 })
    expect(accepted('flooded')).toHaveLength(1)
  })

  test('503 outcome_ambiguous when the answer is lost, then 409, and 200 once the platform shows the message', async () => {
    // A reconnected account would receive it: then the first answer may be a 200 on a busy machine.
    fault('connect', 'unavailable', { times: 0 })
    fault('send', 'drop_after')
    const idempotency_key = randomUUID()
    const first = await send({ text: 'lost answer', idempotency_key })
    expect(first).toMatchObject({ status: 503, body: { code: 'outcome_ambiguous' } })
    expect(first.headers.get('retry-after')).toBeNull()
    const repeat = () => send({ text: 'lost answer', idempotency_key })
    expect(await repeat()).toMatchObject({ status: 409, body: { code: 'outcome_ambiguous' } })
    workplace.sandbox.world.clearFaults()
    const again = await until('it is known', hangMs, async () => {
      const answer = await repeat()
      return answer.status === 200 && answer
    })
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(await operation(again.body.operation_id)).toMatchObject({ state: 'completed', reconciled: true })
    expect(accepted('lost answer')).toHaveLength(1)
  })

  test('503 provider_unavailable while dispatch is off, and 200 with the same key afterwards', async () => {
    const idempotency_key = randomUUID()
    await setDispatch(workplace.service.app, 'system', false)
    expect(await send({ text: 'held', idempotency_key })).toMatchObject({
      status: 503,
      body: { code: 'provider_unavailable' },
    })
    await setDispatch(workplace.service.app, 'system', true)
    expect(await send({ text: 'held', idempotency_key })).toMatchObject({ status: 200 })
  })
})

function readState(unread: boolean, idempotency_key: string = randomUUID()) {
  return workplace.service.post(`/chats/platform:chat:${person}/read-state`, {
    key: tenant.key,
    body: { account_id, unread },
    headers: { 'idempotency-key': idempotency_key },
  })
}

describe('POST /chats/{chat_id}/read-state', () => {
  test('200 marks read and unread on the platform, once per key', async () => {
    const marks = () =>
      workplace.sandbox.world.state.journal.filter(({ kind }) => kind === 'read_state').length
    const before = marks()
    const idempotency_key = randomUUID()
    const first = await readState(true, idempotency_key)
    expect(first).toMatchObject({ status: 200, body: { ok: true, unread: true, account_id } })
    expect(await readState(true, idempotency_key)).toMatchObject({ status: 200, body: first.body })
    expect(await readState(false, idempotency_key)).toMatchObject({
      status: 409,
      body: { code: 'idempotency_collision' },
    })
    expect(marks() - before).toBe(1)
  })
})

function start(
  identifier: string,
  more: Record<string, unknown> = {},
  idempotency_key: string = randomUUID(),
) {
  return workplace.service.post('/chats/start', {
    key: tenant.key,
    body: { account_id, identifier, ...more },
    headers: { 'idempotency-key': idempotency_key },
  })
}

describe('POST /chats/start', () => {
  test('200 opens the private chat of a username in any spelling, and sends nothing', async () => {
    const { person_id } = workplace.sandbox.world.addPerson({ name: 'Noa', username: 'noa_start' })
    const sends = () => workplace.sandbox.world.state.journal.filter(({ kind }) => kind === 'send').length
    const before = sends()
    const first = await start('@noa_start')
    expect(first).toMatchObject({
      status: 200,
      body: {
        chat: { id: `platform:chat:${person_id}`, account_id, name: 'Noa', username: 'noa_start' },
        created: true,
      },
    })
    for (const way of [
      'noa_start',
      'NOA_START',
      'https://t.me/noa_start',
      't.me/noa_start',
      'tg://resolve?domain=noa_start',
    ]) {
      expect(await start(way)).toMatchObject({ status: 200, body: { chat: { name: 'Noa' }, created: false } })
    }
    expect(sends()).toBe(before)
    expect(await send({ to: person_id })).toMatchObject({ status: 200 })
  })

  test('404 when there is no such person, and the same on a repeat', async () => {
    const idempotency_key = randomUUID()
    const first = await start('nobody_at_all', {}, idempotency_key)
    expect(first).toMatchObject({ status: 404, body: { code: 'username_not_found' } })
    const again = await start('nobody_at_all', {}, idempotency_key)
    expect(again).toMatchObject({ status: 404, body: first.body })
    expect(again.headers.get('idempotent-replayed')).toBe('true')
  })

  test.each([
    ['a', 'invalid_username'],
    ['@with space', 'invalid_username'],
    ['1bad', 'invalid_username'],
    ['+49 170 1234567', 'unsupported_identifier'],
    ['123456', 'unsupported_identifier'],
    ['https://example.com/noa', 'unsupported_identifier'],
    ['t.me/+AbCdEf', 'unsupported_identifier'],
    ['t.me/joinchat/AbC', 'unsupported_identifier'],
    ['t.me/noa/12', 'unsupported_identifier'],
  ])('400 for %s', async (identifier, code) => {
    expect(await start(identifier)).toMatchObject({ status: 400, body: { code } })
  })

  test('400 for what only the extended operations accept, while they are off', async () => {
    expect(await start('noa_start', { text: 'Hello' })).toMatchObject({ status: 400 })
    expect(await start('noa_start', { provider: 'sandbox' })).toMatchObject({ status: 400 })
  })

  test('409 for a suppressed person, by the names that the look-up returns, and opens nothing', async () => {
    const { person_id } = workplace.sandbox.world.addPerson({ name: 'Quiet', username: 'quiet_one' })
    await workplace.db.run(sql`
      insert into suppressions (workspace_id, kind, value, source)
      values (${tenant.workspace_id}, 'platform_id', ${String(person_id)}, 'operator')`)
    expect(await start('quiet_one')).toMatchObject({ status: 409, body: { code: 'identity_suppressed' } })
    const opened = workplace.sandbox.world.state.journal.filter(
      ({ chat_id }) => chat_id === `platform:chat:${person_id}`,
    )
    expect(opened).toEqual([])
  })

  test("429 for the platform's flood_wait", async () => {
    fault('start', 'flood_wait', { seconds: 1 })
    const { person_id: _ } = workplace.sandbox.world.addPerson({ name: 'Ola', username: 'ola_flood' })
    expect(await start('ola_flood')).toMatchObject({ status: 429, body: { code: 'flood_wait' } })
    await until('the flood is over', hangMs, async () => (await start('ola_flood')).status === 200)
  })

  test('200 with a first text while extended is on: a row of its own, sent once', async () => {
    const { person_id } = workplace.sandbox.world.addPerson({ name: 'Pia', phone: '+491701234567' })
    await workplace.service.open('extended')
    const idempotency_key = randomUUID()
    const more = { text: 'Nice to meet you', provider: 'sandbox' }
    const first = await start('+49 170 1234567', more, idempotency_key)
    expect(first).toMatchObject({ status: 200, body: { chat: { id: `platform:chat:${person_id}` } } })
    expect(await start('+49 170 1234567', more, idempotency_key)).toMatchObject({
      status: 200,
      body: first.body,
    })
    expect(accepted('Nice to meet you')).toHaveLength(1)
  })

  test('409 for a first text that got a flood wait, once the person has opted out', async () => {
    const { person_id } = workplace.sandbox.world.addPerson({ name: 'Rui', username: 'rui_left_alone' })
    await workplace.service.open('extended')
    const again = () => start('rui_left_alone', { text: 'May I write to you?' }, 'rui')
    fault('send', 'flood_wait', { seconds: 1 })
    expect(await again()).toMatchObject({ status: 429, body: { code: 'flood_wait' } })
    await workplace.db.run(sql`
      insert into suppressions (workspace_id, kind, value, source)
      values (${tenant.workspace_id}, 'platform_id', ${String(person_id)}, 'opt_out')`)
    const told = await until('the flood is over', hangMs, async () => {
      const reply = await again()
      return reply.status !== 429 && reply
    })
    expect(told).toMatchObject({ status: 409, body: { code: 'identity_suppressed' } })
    expect(await again()).toMatchObject({ status: 409, body: { code: 'identity_suppressed' } })
    expect(accepted('May I write to you?')).toEqual([])
  })
})
