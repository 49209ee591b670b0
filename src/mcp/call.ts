/** Runs one tool call with the same checks as any other request, and returns an answer or a refusal that an agent can read. */
import { perform } from '../access/perform.ts'
import type { App } from '../app.ts'
import { performApproved } from '../capabilities/approvals/approvals.ts'
import type { Caller } from '../contract.ts'
import { ApiError } from '../lib/errors.ts'
import { Json, type Reply } from '../route.ts'
import { type Arguments, splitArguments } from './tool-input.ts'
import {
  cutToFit,
  fieldsOfError,
  fits,
  refusalOf,
  resultOf,
  type ToolResult,
  textOf,
} from './tool-results.ts'
import type { Tool } from './tools.ts'

/** One request at the endpoint: its caller, and the function that logs its result. */
export interface Exchange {
  readonly caller: Caller
  /** The program's name from its headers, for clients that give it nowhere else. */
  readonly user_agent: string | undefined
  readonly tell: (facts: Facts) => void
  /** Aborted once the caller has left. */
  readonly left: () => AbortSignal
}

/** For the log and the metrics. */
export interface Facts {
  readonly tool: string
  readonly operation_id?: string | undefined
  /** The error code of a refusal. */
  readonly code?: string | undefined
  readonly error?: ApiError
}

/** The client's name for itself, which nothing verifies. */
interface Client {
  readonly client_name: string | undefined
}

export async function callTool(
  app: App,
  tool: Tool,
  exchange: Exchange & Client,
  given: Arguments,
): Promise<ToolResult> {
  try {
    const { status, headers, body } = await (tool.approved ? write : read)(app, tool, exchange, given)
    const operation_id = headers?.['X-Operation-Id']
    const refusal = status < 400 ? undefined : (body as { readonly code?: string })
    exchange.tell({ tool: tool.name, operation_id, code: refusal?.code })
    if (!refusal) return resultOf(textOf(body))
    const wait = headers?.['Retry-After']
    return refusalOf({ ...refusal, operation_id, retry_after: wait === undefined ? undefined : Number(wait) })
  } catch (thrown) {
    // Nobody reads an answer, and nothing has failed.
    if (thrown === exchange.left().reason) throw thrown
    const error = thrown instanceof ApiError ? thrown : new ApiError('internal', { cause: thrown })
    exchange.tell({ tool: tool.name, code: error.code, error })
    return refusalOf(fieldsOfError(error))
  }
}

/** Reads a page that is too long again with half the limit, so that its cursor continues where the page ends. */
async function read(app: App, tool: Tool, { caller, left }: Exchange, given: Arguments): Promise<Reply> {
  let limit = typeof given.limit === 'number' ? given.limit : (tool.page_size ?? 1)
  let asked = given
  for (;;) {
    const { params, query, body } = splitArguments(tool, asked)
    const reply = await perform(app, tool.route, caller, {
      params,
      query,
      body: async () => body,
      idempotency_keys: [],
      channel: 'mcp',
      left, // guard: an agent that leaves waits no longer
    })
    const text = textOf(reply.body)
    if (limit <= 1 || fits(text)) return { ...reply, body: new Json(limit <= 1 ? cutToFit(text) : text) }
    limit >>= 1
    asked = { ...given, limit }
  }
}

/** Does nothing without the token that a person was shown for exactly this call. */
function write(
  app: App,
  tool: Tool,
  { caller, client_name }: Exchange & Client,
  given: Arguments,
): Promise<Reply> {
  const { approval_token, ...input } = given
  return performApproved(app, tool.route, caller, {
    input,
    approval_token: readToken(approval_token),
    client_name,
    base_url: app.base_url(),
  })
}

/** Clients leave the token out in several ways. Anything else that is not a token is refused where tokens are checked. */
function readToken(given: unknown): string | undefined {
  if (given === undefined || given === null || given === '') return undefined
  return typeof given === 'string' ? given : JSON.stringify(given)
}
