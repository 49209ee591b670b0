/**
 * Agents as people run them: two client libraries, both revisions of the protocol, over HTTP and over standard input and
 * output. Each lists the tools, reads, is refused a write, gets it approved at the dashboard, and runs it once.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Client as NewClient, StreamableHTTPClientTransport as NewHttp } from '@modelcontextprotocol/client'
import { StdioClientTransport as NewStdio } from '@modelcontextprotocol/client/stdio'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OldStdio } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as OldHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const { PARLEY_BASE_URL = '', PARLEY_API_KEY = '', PARLEY_MAIN = '', PARLEY_COOKIE = '' } = process.env
const url = new URL('/api/mcp', PARLEY_BASE_URL)
const inAddress = new URL(`/api/mcp?key=${PARLEY_API_KEY}`, PARLEY_BASE_URL)
const requestInit = { headers: { authorization: `Bearer ${PARLEY_API_KEY}` } }
const server = {
  command: process.execPath,
  args: [PARLEY_MAIN, 'mcp'],
  env: { PARLEY_API_KEY, PARLEY_BASE_URL },
}
const modern = { versionNegotiation: { mode: { pin: '2026-07-28' } } } as const
const withUrls = { capabilities: { elicitation: { url: {} } } }

type Answer = Record<string, unknown> & { readonly isError?: boolean }

/** What all of them can do. */
interface Agent {
  readonly name: string
  readonly tools: () => Promise<{ readonly tools: readonly { readonly name: string }[] }>
  readonly call: (tool: string, given: Record<string, unknown>) => Promise<unknown>
  readonly close: () => Promise<void>
  /** The addresses that the client should show to its user. */
  readonly shown: readonly string[]
}

async function oldAgent(name: string, transport: OldHttp | OldStdio): Promise<Agent> {
  const client = new OldClient({ name, version: '1' })
  await client.connect(transport as Parameters<typeof client.connect>[0])
  return {
    name,
    tools: () => client.listTools(),
    call: (tool, given) => client.callTool({ name: tool, arguments: given }),
    close: () => client.close(),
    shown: [],
  }
}

async function newAgent(name: string, transport: NewHttp | NewStdio, options = {}): Promise<Agent> {
  const client = new NewClient({ name, version: '1' }, options)
  const shown: string[] = []
  if ('capabilities' in options) {
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      if ('url' in params) shown.push(String(params.url))
      return { action: 'accept' as const }
    })
  }
  await client.connect(transport)
  return {
    name,
    tools: () => client.listTools(),
    call: (tool, given) => client.callTool({ name: tool, arguments: given }),
    close: () => client.close(),
    shown,
  }
}

const agents: (() => Promise<Agent>)[] = [
  () => oldAgent('sdk 1.32, HTTP', new OldHttp(url, { requestInit })),
  () => oldAgent('sdk 1.32, HTTP, key in the address', new OldHttp(inAddress)),
  () => oldAgent('sdk 1.32, stdio', new OldStdio(server)),
  () => newAgent('client 2.4, HTTP, 2025', new NewHttp(url, { requestInit })),
  () => newAgent('client 2.4, HTTP, 2026', new NewHttp(url, { requestInit }), modern),
  () =>
    newAgent('client 2.4, HTTP, 2026, shows addresses', new NewHttp(url, { requestInit }), {
      ...modern,
      ...withUrls,
    }),
  () => newAgent('client 2.4, stdio, 2025, shows addresses', new NewStdio(server), withUrls),
  () => newAgent('client 2.4, stdio, 2026', new NewStdio(server), modern),
]

for (const start of agents) {
  const agent = await start()
  await walk(agent)
  await agent.close()
  process.stdout.write(`${agent.name}: list, read, refused write, approved write\n`)
}

async function walk(agent: Agent): Promise<void> {
  const { tools } = await agent.tools()
  assert.equal(tools.length, 8)
  const call = async (tool: string, given: Record<string, unknown> = {}): Promise<Answer> => {
    const { structuredContent, isError = false } = (await agent.call(tool, given)) as {
      structuredContent: Answer
      isError?: boolean
    }
    return { ...structuredContent, isError }
  }
  const me = await call('service_whoami')
  const [account] = me.accounts as { id: string }[]
  assert.ok(account)
  const listed = await call('service_list_chats', { account_id: account.id, limit: 30 })
  const chats = (listed.chats as { id: string; kind: string }[]).filter(({ kind }) => kind === 'private')
  assert.ok(chats.length > 5)

  const text = `From an agent: ${randomUUID()}`
  const { sent, given } = await sendToSomebody(agent, call, { account_id: account.id, chats, text })
  const again = await call('service_send_message', given)
  assert.deepEqual([again.isError, again.code], [true, 'approval_used'])
  assert.equal(again.operation_id, sent.operation_id)
  const { messages } = (await call('service_get_messages', {
    account_id: account.id,
    chat_id: sent.chat_id,
    limit: 30,
  })) as unknown as { messages: { text: string }[] }
  assert.equal(messages.filter((message) => message.text === text).length, 1)

  const move = { account_id: account.id, chat_id: sent.chat_id, stage_key: 'qualified' }
  const asked = await call('service_move_pipeline_stage', move)
  assert.equal(asked.code, 'approval_required')
  const moved = await call('service_move_pipeline_stage', { ...move, approval_token: await approve(asked) })
  assert.deepEqual([moved.ok, moved.stage_key], [true, 'qualified'])
}

/** Some people of the demo refuse messages. */
async function sendToSomebody(
  agent: Agent,
  call: (tool: string, given: Record<string, unknown>) => Promise<Answer>,
  { account_id, chats, text }: { account_id: string; chats: readonly { id: string }[]; text: string },
): Promise<{ sent: Answer; given: Record<string, unknown> }> {
  for (const { id } of chats) {
    const message = { account_id, chat_id: id, text }
    const asked = await call('service_send_message', message)
    assert.deepEqual([asked.isError, asked.code], [true, 'approval_required'])
    if (agent.name.includes('shows addresses')) assert.ok(agent.shown.includes(String(asked.approval_url)))
    const given = { ...message, approval_token: await approve(asked) }
    const sent = await call('service_send_message', given)
    if (sent.ok) return { sent, given }
    assert.equal(sent.code, 'blocked_by_person')
  }
  throw new Error('No person accepts a message.')
}

/** What the page does when its user approves. */
async function approve({ request_id }: Answer): Promise<string> {
  const response = await fetch(`${PARLEY_BASE_URL}/dashboard/api/approvals/${request_id}/approve`, {
    method: 'POST',
    headers: { cookie: PARLEY_COOKIE, origin: PARLEY_BASE_URL, 'content-type': 'application/json' },
    body: '{}',
  })
  const { token, error } = (await response.json()) as { token?: string; error?: string }
  assert.ok(token, error)
  return token
}
