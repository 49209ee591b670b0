import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service } from '../../../test/harness/service.ts'
import { type Asking, addOperation, openTeam, type Team } from '../../../test/harness/team.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'

let service: Service
let other: Team
beforeAll(async () => {
  service = await openService()
  other = await openTeam(service, 'Other')
})
afterAll(() => service.close())

interface Item {
  readonly type: 'message' | 'operation' | 'note'
  readonly id: string
  readonly text: string
  readonly at: string
}

interface Timeline {
  readonly items: readonly (Item & Record<string, unknown>)[]
  readonly before: string | null
  readonly after: string | null
  readonly older_on_platform: boolean
}

const path = ({ account_id }: Team, query = '', chat = 'platform:chat:42') =>
  `/chats/${chat}/timeline?account_id=${account_id}${query}`

async function read(team: Team, query = '', ask: Asking = team.ask): Promise<Timeline> {
  const { status, body } = await ask('GET', path(team, query))
  expect([status, body.error]).toEqual([200, undefined])
  return body as unknown as Timeline
}

const texts = ({ items }: Timeline) => items.map(({ text }) => text)

/** A chat with one message a minute after 08:00; every second one is ours. */
async function openChat(messages: number, name = 'Team'): Promise<Team> {
  const team = await openTeam(service, name)
  await service.chat({
    account_id: team.account_id,
    workspace_id: team.workspace_id,
    texts: Array.from({ length: messages }, (_, at) => `m${at + 1}`),
  })
  return team
}

const minute = (n: number, second = 0) => new Date(Date.UTC(2026, 10, 1, 8, n, second)).toISOString()

async function note({ workspace_id, account_id, user_id }: Team, text: string, at: string): Promise<string> {
  const id = newId()
  await service.app.db.run(sql`
    insert into notes (id, workspace_id, account_id, chat_id, author_id, text, created_at)
    values (${id}, ${workspace_id}, ${account_id}, 42, ${user_id}, ${text}, ${at})`)
  return id
}

const complete = ({ workspace_id, account_id }: Team) =>
  service.app.db.run(sql`
    insert into chat_sync (account_id, chat_id, workspace_id, complete)
    values (${account_id}, 42, ${workspace_id}, true)`)

describe('GET /chats/{chat_id}/timeline', () => {
  test('200 with messages, operations without a message and notes in one order', async () => {
    const team = await openChat(3)
    await complete(team)
    await note(team, 'n1', minute(1, 30))
    await addOperation(service, team, {
      state: 'ambiguous',
      text: 'o1',
      reason: 'timeout',
      at: minute(2, 30),
    })
    await addOperation(service, team, { state: 'queued', text: 'o2', at: minute(9) })
    const timeline = await read(team)
    expect(texts(timeline)).toEqual(['m1', 'n1', 'm2', 'o1', 'm3', 'o2'])
    expect(timeline).toMatchObject({ before: null, after: null, older_on_platform: false })
    const [first, written, second, unknown] = timeline.items
    expect(first).toEqual({
      type: 'message',
      id: '1',
      at: minute(1),
      is_sender: false,
      text: 'm1',
      edited_at: null,
      attachments: [],
      state: null,
      read_at: null,
      by: null,
      campaign: null,
      operation_id: null,
    })
    expect(written).toMatchObject({ type: 'note', author: { user_id: team.user_id }, deletable: true })
    expect(second).toMatchObject({ state: 'accepted', by: { kind: 'elsewhere', user_id: null, name: null } })
    expect(unknown).toEqual({
      type: 'operation',
      id: expect.any(String),
      at: minute(2, 30),
      text: 'o1',
      file_name: null,
      state: 'ambiguous',
      closed_as: null,
      sentence: expect.stringMatching(/did not answer in time\. We keep looking for it in the chat/),
      by: null,
      campaign: null,
    })
  })

  test('200 page by page in both directions, with items of the same time in one order', async () => {
    const team = await openChat(9)
    await complete(team)
    for (const at of [3, 3, 5]) await note(team, `n${at}`, minute(at))
    await addOperation(service, team, { state: 'refused', text: 'o3', at: minute(3), error: 'No.' })
    const { items } = await read(team)
    const whole = items.map(({ id }) => id)
    expect(texts({ items } as never)).toEqual([
      'm1',
      'm2',
      'm3',
      'o3',
      'n3',
      'n3',
      'm4',
      'm5',
      'n5',
      'm6',
      'm7',
      'm8',
      'm9',
    ])
    for (const limit of [1, 2, 4]) {
      const older: string[] = []
      let page = await read(team, `&limit=${limit}`)
      expect(page.after).toBeNull()
      older.unshift(...page.items.map(({ id }) => id))
      while (page.before !== null) {
        page = await read(team, `&limit=${limit}&before=${page.before}`)
        older.unshift(...page.items.map(({ id }) => id))
      }
      expect(older).toEqual(whole)
      // And back again from the first page.
      const newer = page.items.map(({ id }) => id)
      while (page.after !== null) {
        page = await read(team, `&limit=${limit}&after=${page.after}`)
        newer.push(...page.items.map(({ id }) => id))
      }
      expect(newer).toEqual(whole)
    }
  })

  test('200 around a message, and continuing from there in both directions', async () => {
    const team = await openChat(9)
    await complete(team)
    const page = await read(team, '&around=5&limit=3')
    expect(texts(page)).toEqual(['m4', 'm5', 'm6'])
    expect(texts(await read(team, `&limit=2&before=${page.before}`))).toEqual(['m2', 'm3'])
    expect(texts(await read(team, `&limit=2&after=${page.after}`))).toEqual(['m7', 'm8'])
    expect(texts(await read(team, '&around=9&limit=1'))).toEqual(['m9'])
    expect((await read(team, '&around=9&limit=4')).after).toBeNull()
  })

  test('200 with who sent each of our messages', async () => {
    const team = await openChat(10)
    const { db } = service.app
    await db.run(sql`update users set name = 'Ana' where id = ${team.user_id}`)
    await db.run(
      sql`update messages set random_id = 1000 + id where account_id = ${team.account_id} and is_sender`,
    )
    await db.run(
      sql`update chats set read_by_them_id = 4, read_by_them_at = ${minute(5)} where account_id = ${team.account_id}`,
    )
    const done = { state: 'completed', user_id: team.user_id }
    await addOperation(service, team, { ...done, random_id: '1002' })
    await addOperation(service, team, { ...done, random_id: '1004', key_id: team.key_id })
    await addOperation(service, team, {
      ...done,
      random_id: '1006',
      key_id: team.key_id,
      idempotency_key: `approval·${newId()}`,
    })
    const timeline = await read(team)
    const own = timeline.items.filter(({ is_sender }) => is_sender)
    expect(own.map(({ by }) => by)).toEqual([
      { kind: 'user', user_id: team.user_id, name: 'Ana' },
      { kind: 'key', user_id: null, name: 'test' },
      { kind: 'agent', user_id: null, name: 'test' },
      { kind: 'elsewhere', user_id: null, name: null },
      { kind: 'elsewhere', user_id: null, name: null },
    ])
    expect(own.map(({ read_at }) => read_at)).toEqual([minute(5), minute(5), null, null, null])
  })

  test('200 with refused operations and the sentence of their answer, without those that may be repeated or have a message', async () => {
    const team = await openChat(2)
    await service.app.db.run(
      sql`update messages set random_id = 77 where account_id = ${team.account_id} and id = 2`,
    )
    const at = minute(5)
    await addOperation(service, team, {
      state: 'refused',
      text: 'o1',
      at,
      error: 'The person has blocked this account.',
    })
    await addOperation(service, team, { state: 'released', text: 'o2', at })
    await addOperation(service, team, { state: 'ambiguous', text: 'o3', at, random_id: '77' })
    await addOperation(service, team, { state: 'refused', text: 'o4', at, kind: 'set_read_state' })
    const { items } = await read(team)
    expect(items.filter(({ type }) => type === 'operation')).toMatchObject([
      { text: 'o1', state: 'refused', sentence: 'The person has blocked this account.' },
    ])
  })

  test('200 with what is known of each outcome, in words for people', async () => {
    const team = await openChat(1)
    const at = minute(5)
    const unclear = [
      { reason: 'lease' },
      { reason: 'restored' },
      { reason: 'unknown' },
      { reason: 'timeout', closed_as: 'sent' },
      { reason: 'timeout', closed_as: 'not_sent' },
    ] as const
    for (const row of unclear) await addOperation(service, team, { ...row, state: 'ambiguous', at })
    await addOperation(service, team, { state: 'refused', detail: 'blocked_by_person', at })
    const { items } = await read(team)
    const sentences = items.filter(({ type }) => type === 'operation').map(({ sentence }) => sentence)
    const looking =
      'We keep looking for it in the chat, and won’t send it again. Or tell us what you see on the phone.'
    expect(sentences).toEqual([
      `Parley stopped while it was being sent. ${looking}`,
      `It may have been sent before Parley was restored from a backup. ${looking}`,
      `The connection dropped while it was being sent. ${looking}`,
      'The platform did not answer in time. A person recorded it as sent. It won’t be sent again.',
      'The platform did not answer in time. A person recorded it as not sent. It won’t be sent again.',
      'Nothing was sent.',
    ])
  })

  test('200 without a gap: what is older than the stored history stays hidden, notes of that time too', async () => {
    const team = await openChat(6)
    await service.app.db.run(sql`
      insert into chat_sync (account_id, chat_id, workspace_id, oldest_id)
      values (${team.account_id}, 42, ${team.workspace_id}, 4)`)
    await note(team, 'old', minute(2))
    await addOperation(service, team, { state: 'ambiguous', text: 'older', at: minute(2) })
    await note(team, 'new', minute(5, 1))
    const page = await read(team)
    expect(texts(page)).toEqual(['m4', 'm5', 'new', 'm6'])
    expect(page).toMatchObject({ older_on_platform: true, before: expect.any(String) })
    // No session is live here, so the platform cannot be asked; the same cursor may be used again.
    const older = await read(team, `&before=${page.before}`)
    expect(older).toMatchObject({ items: [], older_on_platform: true, before: page.before })
  })

  test('200 around a message before a gap, with what is stored there, and continuing from it', async () => {
    const team = await openChat(9)
    await service.app.db.run(sql`
      insert into chat_sync (account_id, chat_id, workspace_id, oldest_id)
      values (${team.account_id}, 42, ${team.workspace_id}, 6)`)
    expect(texts(await read(team))).toEqual(['m6', 'm7', 'm8', 'm9'])
    const page = await read(team, '&around=3&limit=3')
    expect(texts(page)).toEqual(['m2', 'm3', 'm4'])
    expect(page.older_on_platform).toBe(true)
    const newer = await read(team, `&limit=3&after=${page.after}`)
    expect(texts(newer)).toEqual(['m5', 'm6', 'm7'])
    expect(texts(await read(team, `&limit=3&before=${page.before}`))).toEqual(['m1'])
    // A message of the gapless part does not reach across the gap.
    const near = await read(team, '&around=7&limit=3')
    expect(texts(near)).toEqual(['m6', 'm7', 'm8'])
    expect(texts(await read(team, `&before=${near.before}`))).toEqual([])
  })

  test('200 for an account in every status, and for members', async () => {
    const team = await openChat(2)
    const member = await team.join('member')
    for (const status of ['DISABLED', 'NEEDS_LOGIN']) {
      await service.app.db.run(sql`update accounts set status = ${status} where id = ${team.account_id}`)
      await service.settle()
      expect(texts(await read(team, '', member.ask))).toEqual(['m1', 'm2'])
    }
  })

  test("404 for another workspace's account, an unknown chat and an unknown message", async () => {
    const team = await openChat(2)
    for (const [asked, code] of [
      [path(other), 'not_found'],
      [path(team, '', 'platform:chat:43'), 'chat_not_found'],
      [path(team, '&around=9'), 'not_found'],
      [path(team, '&around=9223372036854775807'), 'not_found'],
    ] as const) {
      expect(await team.ask('GET', asked), asked).toMatchObject({ status: 404, body: { code } })
    }
  })

  test('400 for hostile input', async () => {
    const team = await openChat(3)
    const elsewhere = await openChat(3)
    const { before } = await read(elsewhere, '&limit=1')
    for (const [asked, code] of [
      [path(team, `&before=${before}`), 'invalid_cursor'],
      [path(team, '&before='), 'invalid_cursor'],
      [path(team, '&after=x%00'), 'invalid_text'],
      [path(team, '&after=AAAA'), 'invalid_cursor'],
      [path(team, '&around=9223372036854775808'), 'invalid_request'],
      [path(team, '&around=01'), 'invalid_request'],
      [path(team, '&around=1&before=x'), 'invalid_request'],
      [path(team, '&limit=101'), 'invalid_request'],
      [path(team, '', 'platform:chat:01'), 'invalid_request'],
      [path(team, '', 'platform:chat:9223372036854775808'), 'invalid_request'],
      ['/chats/platform:chat:42/timeline', 'invalid_request'],
    ] as const) {
      expect(await team.ask('GET', asked), asked).toMatchObject({ status: 400, body: { code } })
    }
  })
})
