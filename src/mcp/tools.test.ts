/** The tools as an agent sees them: the list, the answers of reads, refusals, and the size of answers. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { callTool, eras, type McpCall, sendMessage } from '../../test/harness/mcp.ts'
import { openService, type Service, type Tenant } from '../../test/harness/service.ts'
import type { Gate } from '../contract.ts'
import { routes } from '../lists/routes.ts'
import { makeTools } from './tools.ts'

const names = [
  'service_whoami',
  'service_list_chats',
  'service_get_chat',
  'service_get_messages',
  'service_search_messages',
  'service_send_message',
  'service_move_pipeline_stage',
  'service_set_column',
]

let service: Service
let own: Tenant
let account_id: string
let at: McpCall
beforeAll(async () => {
  service = await openService()
  own = await service.tenant()
  account_id = await service.account(own.workspace_id)
  await service.chat({
    account_id,
    workspace_id: own.workspace_id,
    texts: ['hello', 'is the blue one there?'],
  })
  at = { url: service.url, key: own.key }
})
afterAll(() => service.close())

interface ListedTool {
  readonly name: string
  readonly description: string
  readonly inputSchema: { properties: Record<string, { type: string }>; required: string[] }
  readonly outputSchema: { type: string; anyOf: object[] }
  readonly annotations: Record<string, unknown>
}

async function list(ask = at): Promise<ListedTool[]> {
  const { body } = await sendMessage(ask, 'tools/list')
  return body.result?.tools as ListedTool[]
}

describe.each(eras)('tools/list, %s', (era) => {
  test("always has the eight tools, whatever the key's scopes and the closed gates", async () => {
    const { key } = await service.key({ ...own, scopes: ['campaigns'] })
    const gates: Gate[] = ['crm', 'pipeline', 'mcp_send', 'mcp_pipeline', 'mcp_columns']
    await service.shut(...gates)
    expect((await list({ ...at, key, era })).map(({ name }) => name)).toEqual(names)
    await service.open(...gates)
  })

  test('has schemas without references, small enough for an agent', async () => {
    const { text } = await sendMessage({ ...at, era }, 'tools/list')
    expect(text).not.toContain('$ref')
    expect(text).not.toContain('GET /me')
    expect(text.length).toBeLessThan(40_000)
  })
})

test('has parameters, query and body in one object as input, and numbers as numbers', async () => {
  const inputs = Object.fromEntries(
    (await list()).map(({ name, inputSchema: { properties, required } }) => [
      name,
      [Object.keys(properties).sort(), required],
    ]),
  )
  expect(inputs).toEqual({
    service_whoami: [[], []],
    service_list_chats: [['account_id', 'column_id', 'column_value', 'cursor', 'limit', 'stage_key'], []],
    service_get_chat: [['account_id', 'chat_id'], ['chat_id']],
    service_get_messages: [['account_id', 'before', 'chat_id', 'limit'], ['chat_id']],
    service_search_messages: [
      [
        'account_id',
        'account_types',
        'chat_id',
        'cursor',
        'keywords',
        'limit',
        'people',
        'query',
        'time_after',
        'time_before',
      ],
      [],
    ],
    service_send_message: [
      ['account_id', 'approval_token', 'chat_id', 'text'],
      ['chat_id', 'text'],
    ],
    service_move_pipeline_stage: [
      ['account_id', 'approval_token', 'chat_id', 'stage_key'],
      ['chat_id', 'stage_key'],
    ],
    service_set_column: [
      ['account_id', 'approval_token', 'chat_id', 'column_id', 'value'],
      ['chat_id', 'column_id', 'value'],
    ],
  })
  for (const { inputSchema } of await list()) {
    if (inputSchema.properties.limit) expect(inputSchema.properties.limit.type).toBe('integer')
  }
})

test('annotates which tools read, which cannot be undone, which can be repeated', async () => {
  const hints = Object.fromEntries(
    (await list()).map(({ name, annotations: { title: _, ...hints } }) => [name, hints]),
  )
  const read = { readOnlyHint: true }
  const set = { readOnlyHint: false, idempotentHint: true }
  expect(Object.values(hints)).toEqual([
    read,
    read,
    read,
    read,
    read,
    { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
    set,
    set,
  ])
})

test('a tool whose route is missing stops the endpoint instead of being left out of the list', () => {
  expect(() => makeTools(routes.filter(({ name }) => name !== 'get_me'))).toThrow('service_whoami')
})

describe.each(eras)('reading, %s', (era) => {
  const call = (name: string, given?: object) => callTool({ ...at, era }, name, given)

  test("returns the API's answer, as structured content and as the same text", async () => {
    const chat_id = 'platform:chat:42'
    const asked: [string, object, string, unknown?][] = [
      ['service_whoami', {}, '/me'],
      ['service_list_chats', { account_id, limit: 10 }, `/chats?account_id=${account_id}&limit=10`],
      ['service_get_chat', { account_id, chat_id }, `/chats/${chat_id}?account_id=${account_id}`],
      [
        'service_get_messages',
        { account_id, chat_id },
        `/chats/${chat_id}/messages?account_id=${account_id}`,
      ],
      ['service_search_messages', { query: 'blue', limit: 5 }, '/search', { query: 'blue', limit: 5 }],
    ]
    for (const [name, given, path, body] of asked) {
      const result = await call(name, given)
      const answer = await service.call(body ? 'POST' : 'GET', path, { key: own.key, body })
      expect(answer.status).toBe(200)
      expect(result.structuredContent).toEqual(answer.body)
      expect(result.isError).toBeUndefined()
      expect(result.content).toEqual([{ type: 'text', text: expect.any(String) }])
      expect(JSON.parse(result.content?.[0]?.text ?? '')).toEqual(answer.body)
    }
  })

  test('400 for invalid arguments, in the words of the route', async () => {
    const wrong: [string, object, string][] = [
      ['service_list_chats', { account_id, limit: '10' }, 'limit must be a whole number from 1 to 100.'],
      ['service_list_chats', { account_id, limit: 101 }, 'limit must be a whole number from 1 to 100.'],
      ['service_list_chats', { account_id, limit: 1.5 }, 'limit must be a whole number from 1 to 100.'],
      ['service_list_chats', { account_id, limit: null }, 'limit must be a whole number from 1 to 100.'],
      ['service_list_chats', { account_id: 7 }, 'account_id must be a string.'],
      ['service_list_chats', { account_id, limt: 7 }, 'Unknown query parameter: "limt". Did you mean limit?'],
      ['service_get_chat', { account_id }, 'chat_id is required.'],
      [
        'service_get_chat',
        { account_id, chat_id: ['platform:chat:1'] },
        'chat_id must be one string, given once.',
      ],
      ['service_search_messages', { query: 'a', limit: '5' }, 'limit must be a number.'],
      [
        'service_search_messages',
        { query: 'a', quary: 'b' },
        'Unknown property: "quary". Did you mean query?',
      ],
      ['service_whoami', { approval_token: 'x' }, 'Unknown query parameter: "approval_token".'],
    ]
    for (const [name, given, error] of wrong) {
      const { isError, structuredContent } = await call(name, given)
      expect([isError, structuredContent]).toEqual([true, { ok: false, code: 'invalid_request', error }])
    }
  })

  test('a refusal is a result with ok, code and error, as structured content and as text', async () => {
    const { key } = await service.key({ ...own, scopes: ['write'] })
    const result = await callTool({ ...at, key, era }, 'service_list_chats', { account_id, limit: 'x' })
    const refusal = {
      ok: false,
      code: 'missing_scope',
      error: 'This operation needs a key with the scope read.',
    }
    expect(result).toMatchObject({ isError: true, structuredContent: refusal })
    expect(JSON.parse(result.content?.[0]?.text ?? '')).toEqual(refusal)
  })

  test.each([
    'service_start_chat',
    'service_create_campaign',
    'service_cancel_campaign',
    'service_send_attachment',
    'service_broadcast',
    'send_message',
    'SERVICE_WHOAMI',
    'constructor',
    '__proto__',
    '',
    'x'.repeat(3_000),
  ])('%.30s is not a tool', async (name) => {
    const { text, body } = await sendMessage({ ...at, era }, 'tools/call', { name, arguments: {} })
    expect(body.error).toBeDefined()
    expect(text.length).toBeLessThan(500)
  })

  test('a send accepts no attachment', async () => {
    const { structuredContent } = await call('service_send_message', {
      account_id,
      chat_id: 'platform:chat:42',
      text: 'hi',
      attachments: ['x'],
    })
    expect(structuredContent).toMatchObject({ ok: false })
    expect(structuredContent?.code).not.toBe('approval_required')
  })
})

test("an error names the closed gate of the tool's arguments", async () => {
  await service.shut('pipeline')
  const { structuredContent } = await callTool(at, 'service_list_chats', { account_id, stage_key: 'new' })
  expect(structuredContent?.code).toBe('feature_disabled')
  await service.open('pipeline')
})

describe('the size of an answer', () => {
  const bytes = (result: object) => Buffer.byteLength(JSON.stringify(result))
  let large: string
  beforeAll(async () => {
    large = await service.account(own.workspace_id)
    for (let id = 1; id <= 60; id++) {
      const texts = [`"${'ü"\n'.repeat(1_300)}`]
      await service.chat({ account_id: large, workspace_id: own.workspace_id, id: `${id}`, texts })
    }
  })
  afterEach(() => service.open('rest'))

  test('a page that does not fit is read again with half the limit, and its cursor continues it', async () => {
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const given = { account_id: large, limit: 60, ...(cursor && { cursor }) }
      const result = await callTool(at, 'service_list_chats', given)
      expect(bytes(result)).toBeLessThan(100_000)
      const page = result.structuredContent as { chats: { id: string }[]; next_cursor: string | null }
      expect(page).not.toHaveProperty('truncated')
      expect(page.chats.length).toBeGreaterThan(0)
      seen.push(...page.chats.map(({ id }) => id))
      cursor = page.next_cursor ?? undefined
    } while (cursor)
    expect(new Set(seen).size).toBe(60)
    expect(seen.length).toBe(60)
  })

  test('halves the default limit if none is given', async () => {
    const result = await callTool(at, 'service_list_chats', { account_id: large })
    expect(bytes(result)).toBeLessThan(100_000)
    expect(result.structuredContent?.has_more).toBe(true)
  })

  test('a single chat that is too long is cut and says so', async () => {
    const participants = Array.from({ length: 3_000 }, (_, id) => ({
      id: String(id),
      name: `Person ${id} ${'é'.repeat(20)}`,
      username: null,
      phone: null,
      kind: 'person' as const,
    }))
    await service.app.db.transaction(async (tx) => {
      const { storeChats } = await import('../capabilities/chats/chats.ts')
      const chat = {
        id: '7000',
        kind: 'group',
        name: 'All',
        username: null,
        unread_count: 0,
        participants,
      } as const
      await storeChats(tx, { account_id: large, workspace_id: own.workspace_id }, [{ chat, last: null }])
    })
    const result = await callTool(at, 'service_get_chat', {
      account_id: large,
      chat_id: 'platform:chat:7000',
    })
    expect(bytes(result)).toBeLessThan(100_000)
    const { chat, truncated } = result.structuredContent as {
      chat: { participants: object[]; name: string }
      truncated: boolean
    }
    expect([truncated, chat.name]).toEqual([true, 'All'])
    expect(chat.participants.length).toBeGreaterThan(100)
    expect(JSON.parse(result.content?.[0]?.text ?? '')).toEqual(result.structuredContent)
  })
})
