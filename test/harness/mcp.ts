/** A client of `/api/mcp` that returns what goes over the wire, in both revisions of the protocol. */
import { mcpPath } from '../../src/contract.ts'

export type Era = 'modern' | 'legacy'
export const eras: readonly Era[] = ['modern', 'legacy']

const version = '2026-07-28'

interface McpAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The JSON-RPC message, or the refusal of the authentication. */
  readonly body: Message
}

interface Message {
  readonly result?: Result
  readonly error?: unknown
  readonly code?: string
}

interface Result {
  readonly [name: string]: unknown
  readonly isError?: boolean
  readonly structuredContent?: Record<string, unknown>
  readonly content?: readonly { readonly type: string; readonly text: string }[]
}

export interface McpAsk {
  readonly url: string
  readonly key?: string | undefined
  readonly query?: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** Sends any request to the address. */
export async function askMcp({
  url,
  key,
  query = '',
  method = 'POST',
  headers,
  body,
}: McpAsk): Promise<McpAnswer> {
  const response = await fetch(`${url}${mcpPath}${query}`, {
    method,
    headers: {
      accept: 'application/json, text/event-stream',
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  const data = /^data: (.*)$/m.exec(text)?.[1] ?? text
  return { status: response.status, headers: response.headers, text, body: data ? JSON.parse(data) : {} }
}

export interface McpCall extends Omit<McpAsk, 'body' | 'method'> {
  readonly era?: Era
  readonly capabilities?: object
  readonly client?: object
  /** More fields of the protocol, such as inputResponses. */
  readonly more?: object
}

/** Sends one message of the protocol as a client of that revision does. */
export function sendMessage(
  { era = 'modern', capabilities = {}, client = { name: 'test', version: '1' }, more = {}, ...ask }: McpCall,
  method: string,
  params: Record<string, unknown> = {},
): Promise<McpAnswer> {
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientInfo': client,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  }
  const named = typeof params.name === 'string' ? { 'mcp-name': params.name } : {}
  const modern = { 'mcp-protocol-version': version, 'mcp-method': method, ...named }
  return askMcp({
    ...ask,
    headers: { ...(era === 'modern' && modern), ...ask.headers },
    body: {
      jsonrpc: '2.0',
      id: 1,
      method,
      params: { ...params, ...more, ...(era === 'modern' && { _meta: envelope }) },
    },
  })
}

/** Calls a tool and returns its result. */
export async function callTool(ask: McpCall, name: string, given: object = {}): Promise<Result> {
  const { status, body, text } = await sendMessage(ask, 'tools/call', { name, arguments: given })
  if (status !== 200 || !body.result) throw new Error(`${status}: ${text}`)
  return body.result
}
