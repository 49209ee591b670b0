/**
 * A script as a user of the API writes one, with a client generated from the document: list, page, send, repeat,
 * search. What the types do not allow does not compile; what breaks the contract throws.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import createClient from 'openapi-fetch'
import type { components, paths } from './api.ts'

const { PARLEY_BASE_URL: base = '', PARLEY_API_KEY: key = '' } = process.env
const client = createClient<paths>({
  baseUrl: `${base}/api/v1`,
  headers: { authorization: `Bearer ${key}` },
})

type Schemas = components['schemas']

/** An answer is data or an error, never neither. */
function need<T>({ data, error }: { data?: T; error?: Schemas['ApiError'] }): T {
  if (data === undefined) throw new Error(`${error?.code}: ${error?.error}`)
  return data
}

async function until<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < 300; tries++) {
    const answer = await ask()
    if (answer !== undefined) return answer
    await sleep(100)
  }
  throw new Error(`Timed out waiting until ${what}.`)
}

const account = await until('an account is ready and has chats', async () => {
  const [first] = need(await client.GET('/me')).accounts
  if (!first) return undefined
  const { chats } = need(
    await client.GET('/chats', { params: { query: { account_id: first.id, limit: 5 } } }),
  )
  return chats.length === 5 ? first : undefined
})

/** The one pager that works on every list. */
async function* pages<T extends { next_cursor: string | null }>(
  read: (cursor: string | undefined) => Promise<T>,
) {
  let cursor: string | undefined
  do {
    const page = await read(cursor)
    yield page
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
}

const chats: Schemas['Chat'][] = []
const listChats = async (cursor: string | undefined) =>
  need(
    await client.GET('/chats', {
      params: { query: { account_id: account.id, limit: 7, ...(cursor !== undefined && { cursor }) } },
    }),
  )
for await (const page of pages(listChats)) chats.push(...page.chats)
assert.equal(new Set(chats.map(({ id }) => id)).size, chats.length)
assert.ok(chats.length > 7, 'there is more than one page')

const chat = chats.find(({ kind }) => kind === 'private')
assert.ok(chat)
const messages: Schemas['Message'][] = []
for (let before: string | null | undefined; before !== null; ) {
  const page: Schemas['MessagePage'] = need(
    await client.GET('/chats/{chat_id}/messages', {
      params: {
        path: { chat_id: chat.id },
        query: { account_id: account.id, limit: 10, ...(before !== undefined && { before }) },
      },
    }),
  )
  messages.push(...page.messages)
  // Clients like to turn a date-time into a date.
  before = page.next_before && new Date(page.next_before).toISOString()
}
assert.equal(new Set(messages.map(({ id }) => id)).size, messages.length)

const text = `A word that nobody else writes: ${randomUUID().slice(0, 8)}`
const send = (chat_id: string) =>
  client.POST('/messages', {
    params: { header: { 'Idempotency-Key': `walk-${chat_id}-${text}` } },
    body: { account_id: account.id, chat_id, text },
  })

/** Some people of the demo refuse messages. */
async function sendToSomebody() {
  for (const { id } of chats.filter(({ kind }) => kind === 'private')) {
    const sent = await send(id)
    if (sent.error?.code !== 'blocked_by_person') return sent
  }
  throw new Error('No person accepts a message.')
}

const first = await sendToSomebody()
const { chat_id, message_id } = need(first)
const second = await send(chat_id)
assert.equal(need(second).message_id, message_id)
assert.equal(first.response.headers.get('idempotent-replayed'), null)
assert.equal(second.response.headers.get('idempotent-replayed'), 'true')

const other = await client.POST('/messages', {
  params: { header: { 'Idempotency-Key': `walk-${chat_id}-${text}` } },
  body: { account_id: account.id, chat_id, text: 'something else' },
})
assert.equal(other.response.status, 400)
assert.equal(other.error?.code, 'idempotency_collision')

await until('the message is found', async () => {
  const { matches } = need(
    await client.POST('/search', {
      body: { query: text.split(' ').at(-1) ?? '' },
    }),
  )
  return matches.find((match) => match.message_id === message_id)
})

const { events } = need(await client.GET('/events', { params: { query: { limit: 100 } } }))
for (const event of events) {
  // The type says what the data is.
  if ('erased' in event.data) continue
  if (event.type === 'message.received' && 'message' in event.data) {
    assert.equal(typeof event.data.message.text, 'string')
  }
  if (event.type === 'pipeline.moved' && 'to_stage_key' in event.data) {
    assert.equal(typeof event.data.to_stage_key, 'string')
  }
}

process.stdout.write(
  `${chats.length} chats, ${messages.length} messages of one, one sent and repeated, ${events.length} events\n`,
)
