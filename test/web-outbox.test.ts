/** Drafts and sends of the dashboard: the key is kept until the outcome is known, and nothing is sent twice. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { FakeDatabase } from './harness/fake-database.ts'
import { until } from './harness/process.ts'

const place = {
  user_id: 'user',
  workspace_id: 'workspace',
  account_id: 'acc_a',
  chat_id: 'platform:chat:42',
}

interface SentRequest {
  readonly key: string | null
  readonly text: string
  /** Whether the browser's store had the key when the request left. */
  readonly stored: boolean
}

const database = new FakeDatabase()
const sent: SentRequest[] = []
/** What each request is answered with; undefined: its answer is lost. */
let answers: (Response | undefined)[]

// By a name that the compiler does not follow: the service's own types know no browser.
const load = (path: string) => import(path)
// biome-ignore lint/suspicious/noExplicitAny: see above.
let outbox: any
// biome-ignore lint/suspicious/noExplicitAny: see above.
let sending: any

beforeAll(async () => {
  // Another file of this process may have opened its own database.
  vi.resetModules()
  vi.stubGlobal('indexedDB', database.factory)
  vi.stubGlobal('BroadcastChannel', undefined)
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    if (!url.endsWith('/messages') || init.method !== 'POST') return new Response('{}')
    const key = new Headers(init.headers).get('idempotency-key')
    const { text } = JSON.parse(String(init.body))
    sent.push({ key, text, stored: database.keysOf('sending').includes(key ?? '') })
    const answer = answers.shift()
    if (!answer) throw new TypeError('The connection was cut.')
    return answer
  })
  outbox = await load('../web/src/outbox.ts')
  sending = await load('../web/src/pages/inbox/sending.ts')
})
beforeEach(() => {
  sent.length = 0
  answers = []
})
afterEach(() => {
  database.full = false
  return outbox.clearOutbox()
})
afterAll(() => void vi.unstubAllGlobals())

const accepted = () => new Response('{"ok":true,"message_id":"7"}')
const refusal = (status: number, code: string, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify({ code, error: 'A sentence.' }), { status, headers })
const write = (text: string) => outbox.changeDraft(outbox.emptyDraft(place), { text })
const isSettled = () => database.keysOf('sending').length === 0 || undefined

test('a changed draft has its own key, an unchanged one keeps it', async () => {
  const draft = write('Hello')
  const changed = outbox.changeDraft(draft, { text: 'Hello!' })
  expect(changed.key).not.toBe(draft.key)
  await outbox.saveDraft(changed)
  expect((await outbox.readDraft(place)).key).toBe(changed.key)
})

test('the key is stored before the request, repeated until the outcome is known, and then gone', async () => {
  answers = [undefined, refusal(409, 'operation_in_progress', { 'retry-after': '1' }), accepted()]
  const draft = write('Once')
  await outbox.saveDraft(draft)
  await sending.sendDraft(draft)
  await until('the outcome is known', 30_000, isSettled)
  expect(sent).toEqual(Array.from({ length: 3 }, () => ({ key: draft.key, text: 'Once', stored: true })))
  expect(await outbox.readDraft(place)).toBeUndefined()
})

test('on a full disk a message is sent all the same, and repeated with its key until the outcome is known', async () => {
  await outbox.saveDraft(write('Before'))
  database.full = true
  answers = [undefined, accepted()]
  const draft = write('Once')
  await sending.sendDraft(draft)
  await until('the outcome is known', 30_000, async () => !(await outbox.isSending(draft.key)) || undefined)
  expect(sent.map(({ key }) => key)).toEqual([draft.key, draft.key])
  expect(outbox.isStored()).toBe(false)
})

test('an ambiguous message is not sent again, and its text does not return to the composer', async () => {
  answers = [refusal(503, 'outcome_ambiguous'), accepted()]
  await sending.sendDraft(write('Perhaps'))
  await until('the outcome is known', 30_000, isSettled)
  expect(sent).toHaveLength(1)
  expect(await outbox.readDraft(place)).toBeUndefined()
})

test('after a refusal the text is back with a new key; if nothing was tried, with the same', async () => {
  for (const [status, code, same] of [
    [403, 'blocked_by_person', false],
    [503, 'session_unavailable', true],
  ] as const) {
    answers = [refusal(status, code)]
    const draft = write(code)
    await sending.sendDraft(draft)
    await until('the outcome is known', 30_000, isSettled)
    const back = await outbox.readDraft(place)
    expect([back.text, back.key === draft.key]).toEqual([code, same])
    await outbox.clearOutbox()
  }
})

test('a text that was written meanwhile is not replaced by one that was refused', async () => {
  const entry = await outbox.beginSending(write('Refused'))
  const newer = write('Newer')
  await outbox.saveDraft(newer)
  await outbox.endSending(entry, { key: 'another' })
  expect((await outbox.readDraft(place)).text).toBe('Newer')
})

test('sign-out leaves no draft behind, and another user finds none', async () => {
  await outbox.saveDraft(write('Mine'))
  await outbox.beginSending({ ...write('Sent'), chat_id: 'platform:chat:43' })
  expect(await outbox.listSending('somebody else')).toEqual([])
  expect(await outbox.readDraft({ ...place, user_id: 'somebody else' })).toBeUndefined()
  await outbox.clearOutbox()
  expect([database.keysOf('drafts'), database.keysOf('sending')]).toEqual([[], []])
  await outbox.saveDraft(write('Mine'))
  await outbox.forgetOthers('somebody else')
  expect(database.keysOf('drafts')).toEqual([])
})
