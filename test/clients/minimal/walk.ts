/**
 * The smallest body of every operation, written with the clients that three generators make at their default settings, without a
 * cast, and sent to a demo. A required property too many does not compile; one too few is refused.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import document from '../../../openapi.json' with { type: 'json' }
import { forms, type Given } from './given.ts'
import * as heyApi from './hey-api.ts'
import * as openapiTypescript from './openapi-typescript.ts'
import * as orval from './orval.ts'

const { PARLEY_BASE_URL: base = '', PARLEY_API_KEY: key = '' } = process.env
const base_url = `${base}/api/v1`

async function ask<T>(path: string, body?: object): Promise<T> {
  const response = await fetch(base_url + path, {
    method: body ? 'POST' : 'GET',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(`${path}: ${answer.error}`)
  return answer
}

interface Named {
  readonly id: string
}

type Chat = Named & { readonly kind: string }

/** Chats of people who were erased. */
const erased = new Set<string>()

/** Somebody whom no other call names. The demo's people write: a preview holds only for a moment. */
async function findErasable(
  chats: readonly Chat[],
  others: readonly string[],
): ReturnType<Given['findErasable']> {
  for (const { id } of chats.filter(({ id, kind }) => kind === 'private' && !erased.has(id))) {
    const { people } = await ask<{ people: (Named & { names: string[] })[] }>(
      `/people?q=${id.replace('platform:chat:', '')}`,
    )
    const [person] = people
    if (!person || [id, ...person.names].some((name) => others.includes(name))) continue
    erased.add(id)
    const { preview } = await ask<{ preview: string }>(`/people/${person.id}/erase`)
    return { person_id: person.id, preview }
  }
  throw new Error('No person is left to erase.')
}

async function prepare(): Promise<
  Omit<Given, 'recipient' | 'findErasable'> & { readonly chats: readonly Chat[] }
> {
  const [account] = (await ask<{ accounts: Named[] }>('/me')).accounts
  assert.ok(account)
  const account_id = account.id
  const scope = `account_id=${account_id}`
  const { chats } = await ask<{ chats: Chat[] }>(`/chats?${scope}&limit=100`)
  const { contacts } = await ask<{ contacts: { username: string | null }[] }>(`/contacts?${scope}`)
  const { columns } = await ask<{ columns: (Named & { type: string })[] }>('/columns')
  const { webhook } = await ask<{ webhook: Named }>('/webhooks', { url: 'https://example.com/first' })
  const column = columns.find(({ type }) => type === 'text')
  const username = contacts.find((each) => each.username !== null)?.username
  assert.ok(username && column)
  return {
    ...{ base_url, key, account_id, username, stage_key: 'new', webhook_id: webhook.id },
    ...{ chat_id: await findWilling(account_id, chats), newKey: randomUUID },
    ...{ column_id: column.id, column_value: 'a', chats, stranger: '@somebody_new' },
  }
}

/** Some people of the demo refuse messages. */
async function findWilling(account_id: string, chats: readonly Chat[]): Promise<string> {
  for (const { id } of chats.filter(({ kind }) => kind === 'private')) {
    const sent = await ask('/messages', { account_id, chat_id: id, text: 'Hello' }).catch(() => undefined)
    if (sent) return id
  }
  throw new Error('No person accepts a message.')
}

/** People of the demo may opt out at any message. */
async function findRecipient({
  account_id,
  chat_id,
  chats,
}: Awaited<ReturnType<typeof prepare>>): Promise<string> {
  for (const { id } of chats.filter(
    ({ id, kind }) => kind === 'private' && id !== chat_id && !erased.has(id),
  )) {
    const body = { message_text: 'Hello', recipients: [{ account_id, chat_id: id }] }
    const { excluded } = await ask<{ excluded: unknown[] }>('/campaigns/preview', body)
    if (excluded.length === 0) return id
  }
  throw new Error('No person may be written to.')
}

const prepared = await prepare()
heyApi.prepare(prepared)
orval.prepare(prepared)

const withBody = Object.values(document.paths).flatMap((path) =>
  Object.values(path).flatMap(
    (operation: { operationId: string; requestBody?: object; responses: object }) =>
      operation.requestBody ? [operation] : [],
  ),
)
const wanted = [
  ...withBody.map((operation) => ({ name: operation.operationId, ...operation })),
  ...Object.entries(forms).flatMap(([name, id]) =>
    withBody.filter(({ operationId }) => operationId === id).map((operation) => ({ name, ...operation })),
  ),
]
for (const [generator, { calls }] of Object.entries({ openapiTypescript, heyApi, orval })) {
  const names = wanted.map(({ name }) => name)
  assert.deepEqual(Object.keys(calls).sort(), names.sort(), `${generator} lacks a minimal body`)
  const recipient = await findRecipient(prepared)
  const others = [prepared.chat_id, recipient, `username:${prepared.username}`]
  const given = { ...prepared, recipient, findErasable: () => findErasable(prepared.chats, others) }
  for (const { name, responses } of wanted) {
    let status = await calls[name]?.(given)
    if (name === 'erase_person' && status === 409) status = await calls[name]?.(given)
    const documented = Object.keys(responses).filter((each) => each.startsWith('2'))
    assert.ok(documented.includes(String(status)), `${generator} ${name}: ${status}`)
  }
}
process.stdout.write(`${wanted.length} minimal bodies with each of three generators\n`)
