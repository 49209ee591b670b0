/** The approvals page: what agents have asked a user for, and how the user decides. */
import { z } from 'zod'
import type { App } from '../../app.ts'
import type { UserCaller } from '../../contract.ts'
import { type Paging, readPaging } from '../../lib/cursor.ts'
import { cursor, limit } from '../../lib/shapes.ts'
import { done, moment, momentOrNull, pageEnd, said, uuid } from '../../lib/wire.ts'
import { ok, ownRoute, type Route } from '../../route.ts'
import { type Approval, listApprovals, requireApproval } from './approval-pages.ts'
import { approvable } from './approvals.ts'
import { approve, deny } from './decisions.ts'

const named = (what: string) =>
  z.object({ id: said(`Its id.`), name: said('What people call it.') }).meta({ description: what })

const saidOrNull = (description: string) => z.string().nullable().meta({ description })
const fieldOrNull = (description: string) => z.array(z.string()).nullable().meta({ description })

const outcome = z
  .object({
    state: z
      .enum(['queued', 'submitting', 'completed', 'refused', 'released', 'ambiguous'])
      .meta({ description: 'State in the ledger.' }),
    finished_at: saidOrNull('When the operation ended.'),
    message_id: saidOrNull('Id of the sent message.'),
    code: saidOrNull('Reason for the refusal, as a code.'),
    error: saidOrNull('Reason as a sentence.'),
  })
  .meta({ description: 'Outcome of the operation.' })

const approval = z
  .object({
    id: uuid('Id of the request.'),
    state: z
      .enum(['waiting', 'approved', 'denied', 'expired', 'used'])
      .meta({ description: 'Status of the request.' }),
    created_at: moment('When the agent asked for it.'),
    expires_at: moment('When it expires without a decision.'),
    decided_at: momentOrNull('When it was approved or denied.'),
    token_expires_at: momentOrNull('When the token expires.'),
    used_at: momentOrNull('When the token was used.'),
    workspace: named('Workspace of the key.'),
    key: z
      .object({
        id: said('Its id.'),
        name: said('What people call it.'),
        prefix: said('First characters of the key.'),
      })
      .meta({ description: 'The key that made the request.' }),
    client_name: saidOrNull('Name that the client gave itself; not verified.'),
    account: z
      .object({
        id: said('Its id.'),
        name: said('What people call it.'),
        provider: said('Platform of the account.'),
      })
      .meta({ description: 'The account that would execute the request.' }),
    operation: said('The route that would run.'),
    tool: said('Name of the tool that the agent called.'),
    chat: named('The chat of the request.'),
    payload: z.unknown().meta({ description: 'The exact payload.' }),
    payload_sha256: said('Fingerprint of the payload.'),
    field: saidOrNull('The field that changes; null for a message.'),
    from: fieldOrNull('Current value of the field; after a decision, the value at that time.'),
    to: fieldOrNull('New value of the field.'),
    operation_id: saidOrNull('The operation, once the token was used.'),
    outcome: outcome.nullable(),
  })
  .meta({ id: 'Approval', description: 'A write that an agent requested.' })

const example = {
  id: '0199a1f0-0000-7000-8000-00000000000b',
  state: 'waiting',
  created_at: '2026-11-15T09:30:00.000Z',
  expires_at: '2026-11-15T10:00:00.000Z',
  decided_at: null,
  token_expires_at: null,
  used_at: null,
  workspace: { id: '0199a1f0-0000-7000-8000-000000000001', name: 'Acme' },
  key: { id: '0199a1f0-0000-7000-8000-000000000002', name: 'Agent', prefix: 'svc_live_abcdef' },
  client_name: 'an agent',
  account: { id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z', name: 'Sales', provider: 'sandbox' },
  operation: 'send_message',
  tool: 'service_send_message',
  chat: { id: 'platform:chat:42', name: 'Ines García' },
  payload: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z', chat_id: 'platform:chat:42', text: 'Good morning' },
  payload_sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  field: null,
  from: null,
  to: null,
  operation_id: null,
  outcome: null,
}

const params = z.strictObject({ request_id: z.uuid() })
const exampleParams = { request_id: example.id }

function shown({ operation, ...rest }: Approval) {
  return { ...rest, operation, tool: approvable[operation]?.tool ?? operation }
}

interface ApprovalQuery {
  readonly state: 'waiting' | 'history'
  readonly cursor?: string | undefined
}

/** A cursor works only for the list of the user it was made for. */
function readApprovalPaging(
  app: App,
  { user_id }: UserCaller,
  { state, cursor: given }: ApprovalQuery,
): Paging {
  return readPaging(
    app.secrets,
    { workspace_id: null, operation: 'list_approvals', filters: { user_id, state } },
    given,
  )
}

export const ownRoutes: readonly Route[] = [
  ownRoute({
    name: 'list_approvals',
    method: 'GET',
    path: '/approvals',
    summary: 'List approval requests',
    scopes: [],
    effect: 'read',
    query: z.object({
      state: z
        .enum(['waiting', 'history'])
        .default('waiting')
        .meta({ description: '`pending` lists requests that wait for a decision, `decided` all others.' }),
      cursor,
      limit: limit(100, 50),
    }),
    check: (app, caller, { query }) => readApprovalPaging(app, caller, query),
    errors: ['invalid_cursor'],
    response: z.object({
      approvals: z.array(approval).meta({ description: 'Newest first.' }),
      ...pageEnd,
    }),
    example: { response: { approvals: [example], next_cursor: null, has_more: false } },
    handle: async (app, { caller, query, checked }) => {
      const { state: listed, limit: most } = query
      const page = await listApprovals(app, caller.user_id, { listed, limit: most, paging: checked })
      return ok({ ...page, approvals: page.approvals.map(shown) })
    },
  }),
  ownRoute({
    name: 'get_approval',
    method: 'GET',
    path: '/approvals/{request_id}',
    summary: 'Get an approval request',
    scopes: [],
    effect: 'read',
    params,
    malformed: 'not_found',
    errors: ['not_found'],
    response: z.object({ approval }),
    example: { params: exampleParams, response: { approval: example } },
    handle: async (app, { caller, params: { request_id } }) =>
      ok({ approval: shown(await requireApproval(app.db, caller.user_id, request_id)) }),
  }),
  ownRoute({
    name: 'approve_request',
    method: 'POST',
    path: '/approvals/{request_id}/approve',
    summary: 'Approve a request',
    scopes: [],
    effect: 'admin',
    touches: ['approvals'],
    params,
    malformed: 'not_found',
    errors: ['not_found', 'approval_denied', 'approval_expired', 'conflict'],
    response: z.object({
      token: said('The token: it runs exactly this payload, once. It is not shown again.'),
      expires_at: moment('When the token expires.'),
    }),
    example: {
      params: exampleParams,
      response: { token: `apr_${'0'.repeat(40)}`, expires_at: '2026-11-15T09:33:00.000Z' },
    },
    handle: async (app, { caller, params: { request_id } }) => ok(await approve(app, caller, request_id)),
  }),
  ownRoute({
    name: 'deny_request',
    method: 'POST',
    path: '/approvals/{request_id}/deny',
    summary: 'Deny a request',
    scopes: [],
    effect: 'admin',
    touches: ['approvals'],
    params,
    malformed: 'not_found',
    errors: ['not_found', 'approval_expired', 'conflict'],
    response: z.object(done),
    example: {
      params: exampleParams,
      response: { ok: true, message: 'The request was denied. The agent sees the denial.' },
    },
    handle: async (app, { caller, params: { request_id } }) => {
      await deny(app, caller, request_id)
      return ok({ ok: true, message: 'The request was denied. The agent sees the denial.' })
    },
  }),
]
