/** What a change of a chat shows before the service has answered, and after it refused, on a real socket. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'

// By a name that the compiler does not follow: the service's own types know no browser.
const load = (path: string) => import(path)

let answer: (response: ServerResponse) => void
const server = createServer((request, response) => {
  response.setHeader('content-type', 'application/json')
  request.resume().once('end', () => answer(response))
})
const { fetch } = globalThis

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  // A browser sends the page's origin.
  vi.stubGlobal('fetch', (path: string, init: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init))
})
afterEach(async () => (await load('./queries.ts')).queryClient.clear())
afterAll(async () => {
  vi.unstubAllGlobals()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

const chat = { workspace_id: 'w', account_id: 'acc_a', chat_id: 'platform:chat:1' }
const [talking, won] = [
  { key: 'talking', label: 'Talking' },
  { key: 'won', label: 'Won' },
]

/** The chat and a list that has it are in memory; returns the stage that each shows. */
async function showChat(): Promise<() => unknown[]> {
  const { queryClient } = await load('./queries.ts')
  const { keys } = await load('./keys.ts')
  const detail = keys.chat('w', chat.account_id, chat.chat_id)
  const list = keys.inbox('w', 'list', 'all')
  const row = { account_id: chat.account_id, id: chat.chat_id, stage_key: 'talking', columns: [] }
  queryClient.setQueryData(detail, { chat: row })
  queryClient.setQueryData(list, { chats: [row], next_cursor: null, pages: {} })
  return () => [
    queryClient.getQueryData(detail).chat.stage_key,
    queryClient.getQueryData(list).chats[0].stage_key,
  ]
}

test('a change shows at once, and the old value again if the service refuses it', async () => {
  const { moveChat } = await load('./chat-changes.ts')
  const { shownToast } = await load('./toasts.ts')
  const stages = await showChat()
  const { promise: asked, resolve } = Promise.withResolvers<ServerResponse>()
  answer = resolve
  const moved = moveChat(chat, { from: talking, to: won })
  const response = await asked
  expect(stages()).toEqual(['won', 'won'])
  expect(shownToast.get()).toMatchObject({ text: 'Moved to Won', undo: expect.any(Function) })
  response.writeHead(409).end('{"code": "stage_hidden", "error": "This stage is hidden."}')
  expect(await moved).toMatchObject({ code: 'stage_hidden' })
  expect(stages()).toEqual(['talking', 'talking'])
  expect(shownToast.get()).toEqual({ text: 'This stage is hidden.', tone: 'danger' })
})

test('why a value was refused is said at the field that keeps it, not in a toast', async () => {
  const { setColumn } = await load('./chat-changes.ts')
  const { shownToast } = await load('./toasts.ts')
  const { queryClient } = await load('./queries.ts')
  const { keys } = await load('./keys.ts')
  await showChat()
  answer = (response) => response.writeHead(503).end('{"code": "feature_disabled", "error": "Closed."}')
  const change = { column: { id: 'c', name: 'Plan' }, from: [], to: ['Gold'], keeps: true }
  expect(await setColumn(chat, change)).toMatchObject({ code: 'feature_disabled' })
  expect(shownToast.get()).toBeUndefined()
  // The attempt before may have been stored.
  const detail = keys.chat('w', chat.account_id, chat.chat_id)
  expect(queryClient.getQueryState(detail).isInvalidated).toBe(true)
})
