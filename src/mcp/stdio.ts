/**
 * The same tools over standard input and output. Forwards everything to `/api/mcp`, so that checks and approvals also apply
 * here. Standard output carries nothing but the protocol.
 */
import { once } from 'node:events'
import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  type InputRequiredResult,
  type ListToolsResult,
  PROTOCOL_VERSION_META_KEY,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { mcpPath } from '../contract.ts'
import { instructions, serverInfo } from './introduction.ts'
import { refusalOf } from './tool-results.ts'

/** The revision used towards the endpoint. It has no sessions, and neither has the endpoint. */
const revision = '2026-07-28'

interface Upstream {
  /** Without a trailing slash. */
  readonly address: string
  readonly key: string
}

/** Serves until standard input ends. */
export async function serveOnStdio(upstream: Upstream): Promise<void> {
  const handle = serveStdio(() => makeServer(upstream), { maxSubscriptions: 0 })
  // Standard input from a file ends without a close.
  await Promise.race([once(process.stdin, 'end'), once(process.stdin, 'close')])
  await handle.close()
}

function makeServer(upstream: Upstream): Server {
  const server = new Server(serverInfo, { capabilities: { tools: {} }, instructions })
  const pass = (method: string, params: object, context: ServerContext) =>
    passOn(upstream, { method, params, client: clientOf(server, context), signal: context.mcpReq.signal })
  server.setRequestHandler('tools/list', async (_, context) => {
    const answer = await pass('tools/list', {}, context)
    if (answer.refusal) throw new ProtocolError(ProtocolErrorCode.InternalError, answer.refusal.error)
    return answer.result as ListToolsResult
  })
  server.setRequestHandler('tools/call', async ({ params: { name, arguments: given } }, context) => {
    const { inputResponses } = context.mcpReq
    const params = { name, arguments: given ?? {}, ...(inputResponses && { inputResponses }) }
    const answer = await pass('tools/call', params, context)
    if (answer.refusal) return refusalOf({ ...answer.refusal })
    return answer.result as CallToolResult | InputRequiredResult
  })
  return server
}

interface Client {
  readonly info: unknown
  readonly capabilities: unknown
}

/** The newer revision sends it with each call, the older one once at the start. */
function clientOf(server: Server, { mcpReq }: ServerContext): Client {
  const envelope = (mcpReq.envelope ?? {}) as Readonly<Record<string, unknown>>
  return {
    info: envelope[CLIENT_INFO_META_KEY] ?? server.getClientVersion() ?? serverInfo,
    capabilities: envelope[CLIENT_CAPABILITIES_META_KEY] ?? server.getClientCapabilities() ?? {},
  }
}

interface ForwardedRequest {
  readonly method: string
  readonly params: object & { readonly name?: string }
  readonly client: Client
  readonly signal: AbortSignal
}

interface Answer {
  readonly result?: unknown
  /** A refusal of the endpoint's authentication, such as an invalid key. */
  readonly refusal?: { readonly code: string; readonly error: string }
}

async function passOn(
  { address, key }: Upstream,
  { method, params, client, signal }: ForwardedRequest,
): Promise<Answer> {
  const _meta = {
    [PROTOCOL_VERSION_META_KEY]: revision,
    [CLIENT_INFO_META_KEY]: client.info,
    [CLIENT_CAPABILITIES_META_KEY]: client.capabilities,
  }
  const asked = fetch(address + mcpPath, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': revision,
      'mcp-method': method,
      ...(params.name !== undefined && { 'mcp-name': headerValue(params.name) }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
    redirect: 'manual',
    signal,
  })
  const text = await asked.then((response) => response.text()).catch(() => undefined)
  if (text === undefined) {
    throw unavailable(`The service at ${address} does not respond. Set PARLEY_BASE_URL to its address.`)
  }
  return readAnswer(text, address)
}

interface Message {
  readonly result?: unknown
  readonly error?: string | { readonly code: number; readonly message: string }
  readonly code?: string
}

function readAnswer(text: string, address: string): Answer {
  const { result, error, code } = parseMessage(text)
  if (typeof result === 'object' && result !== null) return { result: plain(result) }
  if (typeof error === 'string' && code !== undefined) return { refusal: { code, error } }
  if (typeof error === 'object') throw new ProtocolError(error.code, error.message)
  throw unavailable(
    `The server at ${address} is not Parley. Set PARLEY_BASE_URL to the address of the service.`,
  )
}

function parseMessage(text: string): Message {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}

/** Removes what the endpoint's revision adds to every result: the revision spoken here adds its own. */
function plain(result: object): object {
  const { resultType, _meta, ...rest } = result as Readonly<Record<string, unknown>>
  return resultType === 'input_required' ? { ...rest, resultType } : rest
}

/** Encodes what does not fit into a header as the protocol prescribes. */
function headerValue(name: string): string {
  if (/^[!-~]([ -~]*[!-~])?$/.test(name) && !/^=\?base64\?.*\?=$/.test(name)) return name
  return `=?base64?${Buffer.from(name).toString('base64')}?=`
}

function unavailable(sentence: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InternalError, sentence)
}
