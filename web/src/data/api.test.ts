/** What the dashboard shows and does when the service's answer is lost, on a real socket. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { QueryObserver } from '@tanstack/react-query'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { until } from '../../../test/harness/process.ts'
import { ask, Refused } from './api.ts'
import { gatesQuery, onSignedOut, queryClient } from './queries.ts'

/** A gate that a POST opens; then `answer` decides what happens to the answer. */
let open = false
let answer: (response: ServerResponse) => void
const gates = () => JSON.stringify({ gates: [{ name: 'rest', enabled: open }] })
const server = createServer((request, response) => {
  response.setHeader('content-type', 'application/json')
  if (request.method === 'GET' && request.url?.endsWith('/gates')) return void response.end(gates())
  if (request.url?.includes('/gates/')) open = true
  answer(response)
})
const { fetch } = globalThis

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  // A browser sends the page's origin.
  vi.stubGlobal('fetch', (path: string, init: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init))
})
beforeEach(() => {
  open = false
})
afterEach(() => queryClient.clear())
afterAll(async () => {
  vi.unstubAllGlobals()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

const lost: readonly [string, (response: ServerResponse) => void][] = [
  ['the connection is cut', (response) => void response.socket?.destroy()],
  ['the answer ends half-way', (response) => void response.writeHead(200).end('{"gate":')],
  ['a proxy answers instead', (response) => void response.writeHead(502).end('<h1>Bad Gateway</h1>')],
]

describe.each(lost)('%s', (_, act) => {
  beforeEach(() => {
    answer = act
  })

  test('after a change: says that the result is unknown, and reads the data again', async () => {
    const seen = new QueryObserver(queryClient, gatesQuery)
    const stop = seen.subscribe(() => {})
    const isOpen = () => seen.getCurrentResult().data?.gates[0]?.enabled
    await until('the gates are read', 30_000, () => isOpen() === false)
    const input = { params: { name: 'rest' }, body: { enabled: true } }
    const change = queryClient
      .getMutationCache()
      .build(queryClient, { mutationFn: () => ask('POST /gates/{name}', input) })
      .execute(undefined)
    const error = await change.catch((refused: unknown) => refused)
    expect(error).toBeInstanceOf(Refused)
    expect(error).toMatchObject({
      code: 'unreachable',
      message: expect.stringMatching(/can’t tell whether this went through/),
    })
    expect(String(error)).not.toMatch(/[Nn]othing was changed/)
    await until('the change that was made is seen', 30_000, () => isOpen() === true)
    stop()
  })

  test('after a read: says nothing about changes', async () => {
    const questions = [() => ask('GET /users'), () => ask('POST /setup/look', { body: { token: 'x' } })]
    for (const question of questions) {
      const error = await question().catch((refused: unknown) => refused)
      expect(error).toMatchObject({
        code: 'unreachable',
        message: expect.stringMatching(/cannot be reached|did not come from Parley/),
      })
    }
  })
})

test('any change notices the end of the session', async () => {
  answer = (response) => void response.writeHead(401).end('{"code":"not_signed_in","error":"Sign in."}')
  const ended = vi.fn()
  onSignedOut(ended)
  const change = queryClient
    .getMutationCache()
    .build(queryClient, {
      mutationFn: () => ask('POST /approvals/{request_id}/deny', { params: { request_id: 'x' } }),
    })
    .execute(undefined)
  await expect(change).rejects.toMatchObject({ code: 'not_signed_in' })
  expect(ended).toHaveBeenCalledOnce()
  onSignedOut(() => {})
})

test("shows the service's refusal in its own words, and reads nothing again", async () => {
  answer = (response) => void response.writeHead(403).end('{"code":"forbidden","error":"Not you."}')
  const invalidated = vi.spyOn(queryClient, 'invalidateQueries')
  const change = queryClient
    .getMutationCache()
    .build(queryClient, { mutationFn: () => ask('POST /sign-out') })
    .execute(undefined)
  await expect(change).rejects.toMatchObject({ status: 403, code: 'forbidden', message: 'Not you.' })
  expect(invalidated).not.toHaveBeenCalled()
  invalidated.mockRestore()
})
