/** `parley mcp` as a client starts it: a process that speaks the protocol and nothing else. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open as openFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { hangMs, runParley, until } from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'
import { openService, type Service, type Tenant } from './harness/service.ts'

let service: Service
let own: Tenant
let account_id: string
const open = new Set<ChildProcessWithoutNullStreams>()
beforeAll(async () => {
  service = await openService()
  own = await service.tenant()
  account_id = await service.account(own.workspace_id)
  await service.chat({ account_id, workspace_id: own.workspace_id })
})
afterEach(() => {
  for (const child of open) child.kill('SIGKILL')
})
afterAll(() => service.close())

interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: { readonly url?: string; readonly mode?: string }
  readonly result?: Record<string, unknown> & { readonly structuredContent?: Record<string, unknown> }
  readonly error?: { readonly code: number; readonly message: string }
}

const main = join(import.meta.dirname, '..', 'bin', 'parley.js')

/** A client with a pipe at either end. */
function start(env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [main, 'mcp'], {
    env: { PATH: process.env.PATH, PARLEY_API_KEY: own.key, PARLEY_BASE_URL: service.url, ...env },
    stdio: 'pipe',
  })
  open.add(child)
  const messages: Message[] = []
  const written = { stderr: '' }
  createInterface(child.stdout).on('line', (line) => messages.push(JSON.parse(line)))
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    written.stderr += text
  })
  const ended = new Promise<number | null>((resolve) =>
    child.once('close', (code) => {
      open.delete(child)
      resolve(code)
    }),
  )
  const write = (message: object) =>
    void child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  let last = 0
  const ask = async (method: string, params: object = {}): Promise<Message> => {
    const id = ++last
    write({ id, method, params })
    return until(`${method} is answered`, hangMs, () =>
      messages.find((message) => message.id === id && message.method === undefined),
    )
  }
  const end = () => {
    child.stdin.end()
    return ended
  }
  return { ask, write, end, messages, stderr: () => written.stderr }
}

async function startLegacy(env?: Readonly<Record<string, string>>, capabilities: object = {}) {
  const client = start(env)
  const clientInfo = { name: 'old client', version: '1' }
  const { result } = await client.ask('initialize', {
    protocolVersion: '2025-11-25',
    capabilities,
    clientInfo,
  })
  client.write({ method: 'notifications/initialized' })
  return { ...client, result }
}

const envelope = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'new client', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

describe('parley mcp', () => {
  test('serves clients of the older revision, and ends with standard input', async () => {
    const client = await startLegacy()
    expect(client.result).toMatchObject({ protocolVersion: '2025-11-25', serverInfo: { name: 'parley' } })
    const { result: listed } = await client.ask('tools/list')
    expect(listed?.tools).toHaveLength(8)
    const { result } = await client.ask('tools/call', {
      name: 'service_list_chats',
      arguments: { account_id, limit: 5 },
    })
    expect(result?.structuredContent?.chats).toHaveLength(1)
    expect(result).not.toHaveProperty('resultType')
    const { error } = await client.ask('tools/call', { name: 'service_nö', arguments: {} })
    expect(error).toMatchObject({ code: -32602, message: 'There is no tool "service_nö".' })
    expect(await client.end()).toBe(0)
    expect(client.stderr()).toBe('')
  })

  test('serves clients of the newer revision', async () => {
    const client = start()
    const { result: discovered } = await client.ask('server/discover', { _meta: envelope })
    expect(discovered?.supportedVersions).toEqual(['2026-07-28'])
    const { result } = await client.ask('tools/call', {
      name: 'service_whoami',
      arguments: {},
      _meta: envelope,
    })
    expect(result?.structuredContent?.workspace_id).toBe(own.workspace_id)
    expect(await client.end()).toBe(0)
  })

  test('returns a refusal of the entrance as a result, too', async () => {
    const { key } = await service.key(own)
    const client = await startLegacy({ PARLEY_API_KEY: `${key.slice(0, -1)}_` })
    const refusal = {
      ok: false,
      code: 'invalid_key',
      error: 'The API key is missing, invalid, expired or revoked.',
    }
    const call = await client.ask('tools/call', { name: 'service_whoami', arguments: {} })
    expect(call.result).toMatchObject({ isError: true, structuredContent: refusal })
    expect((await client.ask('tools/list')).error?.message).toBe(refusal.error)
    await client.end()
  })

  test('names its address when there is no answer, or not one of Parley', async () => {
    const client = await startLegacy({ PARLEY_BASE_URL: 'http://127.0.0.1:9' })
    const { error } = await client.ask('tools/list')
    expect(error?.message).toBe(
      'The service at http://127.0.0.1:9 does not respond. Set PARLEY_BASE_URL to its address.',
    )
    await client.end()
    const server = createServer((_, response) => response.end('<html>'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const PARLEY_BASE_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const lost = await startLegacy({ PARLEY_BASE_URL })
    expect((await lost.ask('tools/list')).error?.message).toContain('is not Parley')
    await lost.end()
    server.closeAllConnections()
    server.close()
  })

  test('reads no other variable, and opens no database', async () => {
    const client = await startLegacy({
      DATABASE_URL: 'nonsense',
      PARLEY_NO_SUCH: 'x',
      PARLEY_SECRET: 'short',
    })
    expect((await client.ask('tools/list')).result?.tools).toHaveLength(8)
    await client.end()
  })

  test('exits 1 without a key, with a sentence on standard error only', async () => {
    const { code, stdout, stderr } = await runParley(['mcp'], { PARLEY_BASE_URL: service.url })
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain('Set PARLEY_API_KEY')
  })
})

test('exits 0 at the end of an input file, with nothing on standard error', async () => {
  const directory = await makeScratch('parley-mcp-')
  const file = await openFile(join(directory, 'input'), 'w+')
  const hello = { jsonrpc: '2.0', id: 1, method: 'ping' }
  await file.write(`${JSON.stringify(hello)}\n`, 0)
  const child = spawn(process.execPath, [main, 'mcp'], {
    env: { PATH: process.env.PATH, PARLEY_API_KEY: own.key, PARLEY_BASE_URL: service.url },
    stdio: [file.fd, 'ignore', 'pipe'],
  })
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const [code] = await once(child, 'close')
  await file.close()
  await rm(directory, { recursive: true, force: true })
  expect([code, stderr]).toEqual([0, ''])
})
