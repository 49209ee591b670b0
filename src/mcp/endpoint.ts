/** The protocol at `/api/mcp`, in both of its revisions: no sessions, and a new server object for each request. */
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  createMcpHandler,
  type InputRequiredResult,
  inputRequired,
  type McpRequestContext,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { App } from '../app.ts'
import { quote } from '../lib/text.ts'
import type { Route } from '../route.ts'
import { callTool, type Exchange } from './call.ts'
import { listTools } from './choices.ts'
import { instructions, serverInfo } from './introduction.ts'
import type { ToolResult } from './tool-results.ts'
import { makeTools, type Tool } from './tools.ts'

interface Endpoint {
  /** `message` is the parsed body; the request provides the headers. */
  serve(request: Request, message: unknown, exchange: Exchange): Promise<Response>
}

export function makeEndpoint(app: App, routes: readonly Route[]): Endpoint {
  const tools = makeTools(routes)
  const handler = createMcpHandler((context) => makeServer(app, tools, context), { maxSubscriptions: 0 })
  return {
    serve: (request, parsedBody, exchange) => {
      // The library checks no token, so it gets none. We use its auth info to pass on the exchange.
      const authInfo = { token: '', clientId: '', scopes: [], extra: { exchange } }
      return handler.fetch(request, { authInfo, parsedBody })
    },
  }
}

function makeServer(app: App, tools: ReadonlyMap<string, Tool>, { authInfo }: McpRequestContext): Server {
  const exchange = authInfo?.extra?.exchange as Exchange
  const server = new Server(serverInfo, { capabilities: { tools: {} }, instructions })
  server.setRequestHandler('tools/list', async () => ({
    tools: await listTools(app, exchange.caller, tools),
  }))
  server.setRequestHandler('tools/call', async ({ params: { name, arguments: given = {} } }, context) => {
    const tool = tools.get(name)
    if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${quote(name)}.`)
    const client_name = clientNameOf(context) ?? exchange.user_agent
    const result = await callTool(app, tool, { ...exchange, client_name }, given)
    return elicited(result, context) ?? result
  })
  return server
}

/** What the newer revision sends with every call. The older one sends it with a session, and there are none here. */
interface Envelope {
  readonly [CLIENT_INFO_META_KEY]?: { readonly name?: unknown; readonly title?: unknown }
  readonly [CLIENT_CAPABILITIES_META_KEY]?: { readonly elicitation?: { readonly url?: unknown } }
}

function envelopeOf({ mcpReq }: ServerContext): Envelope {
  return (mcpReq.envelope ?? {}) as Envelope
}

function clientNameOf(context: ServerContext): string | undefined {
  const { title, name } = envelopeOf(context)[CLIENT_INFO_META_KEY] ?? {}
  return [title, name].find((each) => typeof each === 'string')
}

/**
 * A client that can show its user an address gets it that way first. It then repeats the call and gets what every other client
 * gets at once: only the token that the user was shown runs the call.
 */
function elicited(
  { structuredContent: { code, approval_url } }: ToolResult,
  context: ServerContext,
): InputRequiredResult | undefined {
  const capable = envelopeOf(context)[CLIENT_CAPABILITIES_META_KEY]?.elicitation?.url !== undefined
  if (code !== 'approval_required' || !capable || context.mcpReq.inputResponses !== undefined)
    return undefined
  const message = 'An agent asks for your approval. Review the request and decide.'
  const url = String(approval_url)
  return inputRequired({ inputRequests: { approval: inputRequired.elicitUrl({ message, url }) } })
}
