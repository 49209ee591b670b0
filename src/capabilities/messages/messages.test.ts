import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'

let service: Service
let own: Tenant
let account_id: string

beforeAll(async () => {
  service = await openService()
  own = await service.tenant('Own')
  account_id = await service.account(own.workspace_id)
})
afterAll(() => service.close())

interface Page {
  readonly messages: readonly { id: string; text: string; timestamp: string }[]
  readonly source: string
  readonly next_before: string | null
  readonly has_more: boolean
}

const get = (chat_id: string, query = '', key = own.key) =>
  service.get(`/chats/${chat_id}/messages?account_id=${account_id}${query}`, { key })

/** A chat whose whole history is in the store. */
async function chat(
  id: string,
  count: number,
  textOf = (number: number) => `message ${number}`,
): Promise<string> {
  const texts = Array.from({ length: count }, (_, at) => textOf(at + 1))
  const chat_id = await service.chat({
    account_id,
    workspace_id: own.workspace_id,
    id: `${Number(id)}`,
    texts,
  })
  await service.app.db.run(sql`
    insert into chat_sync (account_id, chat_id, workspace_id, oldest_id, complete)
    values (${account_id}, ${id}, ${own.workspace_id}, 1, true)`)
  return chat_id
}

async function walk(chat_id: string, limit: number, between: () => Promise<void> = async () => {}) {
  const pages: Page[] = []
  for (let before: string | null = ''; before !== null; ) {
    const { status, body } = await get(
      chat_id,
      `&limit=${limit}${before && `&before=${encodeURIComponent(before)}`}`,
    )
    expect(status).toBe(200)
    const page = body as unknown as Page
    expect(page.has_more).toBe(page.next_before !== null)
    pages.push(page)
    before = page.next_before
    await between()
  }
  return pages
}

describe('GET /chats/{chat_id}/messages', () => {
  test('200 oldest first within the page, thirty by default', async () => {
    const chat_id = await chat('1', 40)
    const { status, body } = await get(chat_id)
    const page = body as unknown as Page
    expect(status).toBe(200)
    expect(page.messages).toHaveLength(30)
    expect(page.messages[0]).toEqual({
      id: '11',
      text: 'message 11',
      is_sender: false,
      timestamp: '2026-11-01T08:11:00.000Z',
      edited_at: null,
      attachments: [],
    })
    expect(page).toMatchObject({ source: 'store', has_more: true })
    expect(page.messages.at(-1)?.text).toBe('message 40')
    expect(Date.parse(page.next_before ?? '')).toBe(Date.parse('2026-11-01T08:11:00.000Z'))
  })

  test.each([1, 3, 7, 100])(
    '200 returns every message once, with ties and new ones arriving, %i at a time',
    async (limit) => {
      const chat_id = await chat(`2${limit}`, 25)
      await service.app.db.run(sql`
      update messages set sent_at = '2026-11-01T09:00:00.123Z' where account_id = ${account_id}
        and chat_id = ${`2${limit}`} and id between 5 and 20`)
      let next = 100
      const pages = await walk(chat_id, limit, async () => {
        await service.app.db.run(sql`
        insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at)
        values (${account_id}, ${`2${limit}`}, ${next++}, ${own.workspace_id}, 'newer', false, '2026-11-02T00:00:00Z')`)
      })
      const texts = pages.toReversed().flatMap(({ messages }) => messages.map(({ text }) => text))
      expect(texts.filter((text) => text !== 'newer').sort()).toEqual(
        Array.from({ length: 25 }, (_, at) => `message ${at + 1}`).sort(),
      )
    },
  )

  test.each([
    ['short', 1],
    ['long', 500],
  ])('200 texts in any script, on a %s page', async (_, length) => {
    const texts = ['Grüße, ', 'Привет, ', '你好, ', '😀 '].map((text) => text.repeat(length))
    const chat_id = await chat(`10${length}`, 100, (number) => `${number} ${texts[number % texts.length]}`)
    const page = (await get(chat_id, '&limit=100')).body as unknown as Page
    expect(page.messages.map(({ text }) => text)).toEqual(
      Array.from({ length: 100 }, (_, at) => `${at + 1} ${texts[(at + 1) % texts.length]}`),
    )
  })

  test('200 before an ISO time: strictly older, in any of its formats', async () => {
    const chat_id = await chat('3', 10)
    const ids = async (before: string) =>
      ((await get(chat_id, `&before=${before}`)).body as unknown as Page).messages
        .map(({ id }) => Number(id))
        .at(-1)
    expect(await ids('2026-11-01T08:05:00Z')).toBe(4)
    expect(await ids('2026-11-01T08:05:00.000Z')).toBe(4)
    expect(await ids('2026-11-01T08:05:00.0001Z')).toBe(5)
    expect(await ids('2026-11-01T10:05:00%2B02:00')).toBe(4)
    expect(await ids('2026-11-01T10:05:00+02:00')).toBe(4)
    expect(await ids('2026-11-02')).toBe(10)
    expect(await ids('2026-11-01T08:05:00')).toBe(4)
  })

  test('200 without deleted messages', async () => {
    const chat_id = await chat('4', 5)
    await service.app.db.run(sql`
      update messages set deleted_at = now(), text = '' where account_id = ${account_id} and chat_id = 4 and id = 3`)
    const page = (await get(chat_id)).body as unknown as Page
    expect(page.messages.map(({ id }) => id)).toEqual(['1', '2', '4', '5'])
  })

  test('200 from the store while no session is live, and 503 for what only the platform has', async () => {
    const chat_id = await service.chat({
      account_id,
      workspace_id: own.workspace_id,
      id: '5',
      texts: ['a', 'b'],
    })
    // More of the oldest millisecond may still have to be fetched, so it makes a page of its own.
    const page = (await get(chat_id)).body as unknown as Page
    expect(page).toMatchObject({ source: 'store', has_more: true, messages: [{ text: 'b' }] })
    const second = (await get(chat_id, `&before=${page.next_before}`)).body as unknown as Page
    expect(second).toMatchObject({ source: 'store', has_more: true, messages: [{ text: 'a' }] })
    const older = await get(chat_id, `&before=${second.next_before}`)
    expect(older).toMatchObject({ status: 503, body: { code: 'session_unavailable' } })
  })

  test('400 before 403 and 404: input is checked first', async () => {
    const other = await service.tenant('Another')
    const wrong = { status: 400, body: { code: 'invalid_request' } }
    expect(await get('platform:chat:404', '&before=x')).toMatchObject(wrong)
    expect(await get('platform:chat:1', '&before=x', other.key)).toMatchObject(wrong)
    const beyond = '2026-11-15T10:00:00.0009999999999999999999Z'
    expect(await get('platform:chat:404', `&before=${beyond}`)).toMatchObject(wrong)
  })

  test('400 for an invalid before or limit, 404 for an unknown chat', async () => {
    const chat_id = await chat('6', 1)
    for (const before of [
      'x',
      '2026-13-01',
      '2026-02-30T00:00:00Z',
      '2026-01-01T00:00:00+99:99',
      '1e3',
      '-1',
    ]) {
      const answer = await get(chat_id, `&before=${encodeURIComponent(before)}`)
      expect(answer, before).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
      expect(answer.body.error).toContain('before')
    }
    for (const limit of ['0', '101', 'x'])
      expect(await get(chat_id, `&limit=${limit}`)).toMatchObject({ status: 400 })
    expect(await get('platform:chat:404')).toMatchObject({ status: 404, body: { code: 'chat_not_found' } })
    const other = await service.tenant('Other')
    expect(await get(chat_id, '', other.key)).toMatchObject({
      status: 403,
      body: { code: 'account_unavailable' },
    })
  })
})
