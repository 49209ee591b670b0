/** Agents' writes: an agent asks, the key's own user approves, and the token they get runs the write once. */

import { type Incoming, inspect, perform } from '../../access/perform.ts'
import { rehearse } from '../../access/rehearse.ts'
import type { App } from '../../app.ts'
import type { Caller, Gate } from '../../contract.ts'
import { sql, type Tx } from '../../db/sql.ts'
import { fingerprintOf } from '../../ledger/idempotency.ts'
import { ApiError } from '../../lib/errors.ts'
import { type ChatId, chatNumber } from '../../lib/shapes.ts'
import type { Reply, Route } from '../../route.ts'
import { type Request, requestApproval } from './requests.ts'
import {
  type Binding,
  consume,
  describeUsed,
  explain,
  findByToken,
  isNotConsumed,
  operationKey,
} from './use.ts'

export { isOfAgent } from './use.ts'

/** What an agent may do only with an approval: by route, its tool's name and the gate it needs besides the route's. */
export const approvable: Readonly<Record<string, { readonly tool: string; readonly gate: Gate }>> = {
  send_message: { tool: 'service_send_message', gate: 'mcp_send' },
  move_chat: { tool: 'service_move_pipeline_stage', gate: 'mcp_pipeline' },
  set_column: { tool: 'service_set_column', gate: 'mcp_columns' },
}

interface ApprovableCall {
  /** The route's body, without the token. */
  readonly input: unknown
  readonly approval_token: string | undefined
  /** The name the MCP client gives itself. */
  readonly client_name: string | undefined
  /** The instance's public address, without a trailing slash. */
  readonly base_url: string
}

/** Without a token, runs nothing and replies where a person can approve the call. With one, runs it once. */
export async function performApproved(
  app: App,
  route: Route,
  caller: Caller,
  wanted: ApprovableCall,
): Promise<Reply> {
  const { gate } = requireApprovable(route)
  const incoming = (body: unknown): Incoming => ({
    params: {},
    query: {},
    body: async () => body,
    idempotency_keys: [],
    channel: 'mcp',
    gates: [gate], // guard: gate of the tool
  })
  const { input, approval_token } = wanted
  if (approval_token === undefined) {
    const { body, account_id, chat_id } = await rehearse(app, route, caller, incoming(input))
    const payload = { ...body, account_id }
    const fingerprint = await fingerprintOf(route, { params: {}, body: payload })
    const asked: Request = { operation: route.name, account_id, chat_id, payload, fingerprint }
    return requestApproval(app, caller, asked, wanted)
  }
  const { body } = await inspect(app, route, caller, incoming(input))
  const binding = await bind(app, route, body, approval_token)
  const used = await describeUsed(app.db, caller, binding)
  if (used) return used
  const approval = {
    key: operationKey(binding.id),
    consume: consume(app, caller, binding),
    again: 'the approval is spent, so call without a token to request a new one',
  }
  try {
    const reply = await perform(app, route, caller, { ...incoming(binding.payload), approval })
    app.wake.mark({ workspace_id: null, kind: 'approvals', user_id: caller.user_id })
    return adviseReply(reply)
  } catch (error) {
    if (isNotConsumed(error)) return explain(app.db, caller, binding, error)
    throw adviseError(error)
  }
}

function requireApprovable({ name }: Route): { readonly tool: string; readonly gate: Gate } {
  const known = approvable[name]
  if (!known) throw new Error(`${name} is not run with approvals.`)
  return known
}

interface Body {
  readonly account_id?: string
  readonly chat_id: ChatId
}

/** Everything that must match what the person approved. If the call names no account, it means the approved one. */
async function bind(app: App, route: Route, body: Body, token: string): Promise<Binding> {
  const known = await findByToken(app.db, token)
  if (!known) throw new ApiError('approval_mismatch')
  const payload = { ...body, account_id: body.account_id ?? known.account_id }
  return {
    id: known.id,
    token,
    operation: route.name,
    account_id: payload.account_id,
    chat_id: chatNumber(body.chat_id),
    payload,
    fingerprint: await fingerprintOf(route, { params: {}, body: payload }),
  }
}

/** Tells the agent to ask with the same token after an unknown outcome: with a new approval the write could happen twice. */
const unknownOutcomeAdvice =
  'The outcome is unknown. Call again with the same approval_token: it runs nothing twice and returns the outcome.'

function adviseError(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.code !== 'outcome_ambiguous') return error
  return new ApiError('outcome_ambiguous', { detail: unknownOutcomeAdvice, cause: error })
}

/** The same for a lost answer, which arrives as a reply and not as an error. */
function adviseReply(reply: Reply): Reply {
  const { code } = reply.status < 400 ? {} : (reply.body as { readonly code?: string })
  return code === 'outcome_ambiguous' ? { ...reply, body: { error: unknownOutcomeAdvice, code } } : reply
}

interface ErasedPerson {
  readonly account_ids: readonly string[]
  /** Their number on the platform. */
  readonly number: string
  /** When the erasure was asked for. */
  readonly at: Date
}

/**
 * What agents asked to send to an erased person. A request that still waits is denied. One from after they have written again
 * stays.
 */
export async function eraseApprovals(tx: Tx, { account_ids, number, at }: ErasedPerson): Promise<void> {
  await tx.run(sql`
    update approvals a set payload = '{"erased": true}', state = case when state = 'waiting' then 'denied' else state end,
      decided_at = case when state = 'waiting' then domain_now() else decided_at end
    where account_id = any(${account_ids}) and chat_id = ${number} and payload::text <> '{"erased": true}'
      and (created_at <= ${at} or not exists (
        select from erased_chats e
        where e.account_id = a.account_id and e.chat_id = a.chat_id and e.from_id is not null)) -- guard: approvals since they wrote again stay
    `)
}
