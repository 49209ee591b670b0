/** Operations whose outcome is unknown: what a member found out, and all of them for operators. */
import { z } from 'zod'
import { chatIdOut, moment, said, uuid } from '../../lib/wire.ts'
import { ok, ownRoute, type Route, route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import {
  closeOperation,
  describeOperation,
  listLedger,
  requireOwnOperation,
  sentenceOn,
} from './operations.ts'
import { operation, operationExample } from './routes.ts'

/** A page may not know yet what another person recorded. */
const noteOf = (sent: boolean) => ({ closed_as: sent ? 'sent' : 'not_sent', corrects: false }) as const

export const workspaceRoutes: readonly Route[] = [
  route({
    scopes: [],
    role: 'member',
    name: 'close_operation',
    method: 'POST',
    path: '/operations/{operation_id}/close',
    summary: 'Record whether an ambiguous message was sent',
    description:
      'The operation stays ambiguous, and Parley never sends it again. Later proof replaces the record.',
    effect: 'admin',
    touches: ['operations'],
    params: z.strictObject({ operation_id: uuid('Id of the operation.') }),
    malformed: 'not_found',
    body: z.strictObject({
      sent: z.boolean().meta({ description: 'Whether the message is there, as seen on the phone.' }),
    }),
    errors: ['not_found', 'conflict'],
    response: z.object({ operation }),
    example: {
      params: { operation_id: operationExample.id },
      body: { sent: true },
      response: {
        operation: { ...operationExample, state: 'ambiguous', reason: 'timeout', message_id: null },
      },
    },
    handle: async (app, { caller, params, body: { sent } }) => {
      const id = await requireOwnOperation(app.db, caller, params.operation_id)
      await closeOperation(app, actorOf(caller), { id, ...noteOf(sent) })
      return ok({ operation: await describeOperation(app, caller, id) })
    },
  }),
]

const ambiguousOut = z.object({
  id: uuid('Id of the operation.'),
  workspace_id: uuid('Its workspace.'),
  account_id: said('Its account.'),
  chat_id: chatIdOut.nullable().meta({ description: 'Its chat; null if there is none yet.' }),
  kind: said('Kind of operation, such as `send_message`.'),
  reason: z.string().nullable().meta({ description: 'Why the outcome is unknown, as one word.' }),
  detail: said('What is known and what Parley does next, as a sentence.'),
  created_at: moment('When it was requested.'),
})
const ambiguous = {
  id: operationExample.id,
  workspace_id: '0199a1f0-0000-7000-8000-000000000001',
  account_id: operationExample.account_id,
  chat_id: operationExample.chat_id,
  kind: operationExample.kind,
  reason: 'timeout',
  detail: sentenceOn({ state: 'ambiguous', reason: 'timeout', cause: null, closed_as: null }),
  created_at: operationExample.created_at,
}
const operators = { scopes: [], operator: true } as const

type LedgerRows = Awaited<ReturnType<typeof listLedger>>

/** Ids, the state and times only: an operator who is no member must not read a text or learn who is in a chat. */
function withoutContent({
  id,
  workspace_id,
  account_id,
  chat_id,
  kind,
  reason,
  created_at,
}: LedgerRows[number]) {
  const detail = sentenceOn({ state: 'ambiguous', reason, cause: null, closed_as: null })
  return { id, workspace_id, account_id, chat_id, kind, reason, detail, created_at }
}

export const ownRoutes: readonly Route[] = [
  ownRoute({
    ...operators,
    name: 'list_ambiguous',
    method: 'GET',
    path: '/operations/ambiguous',
    summary: 'List operations with an unknown outcome that no person has closed',
    effect: 'read',
    response: z.object({
      operations: z
        .array(ambiguousOut)
        .meta({ description: 'Of all workspaces, newest first, at most 1,000.' }),
    }),
    example: { response: { operations: [ambiguous] } },
    handle: async ({ db }) =>
      ok({ operations: (await listLedger(db, { ambiguous: true })).map(withoutContent) }),
  }),
  ownRoute({
    ...operators,
    name: 'close_ambiguous',
    method: 'POST',
    path: '/operations/{operation_id}/close',
    summary: 'Record whether an ambiguous message of any workspace was sent',
    description: 'The operation stays ambiguous, and Parley never sends it again.',
    effect: 'admin',
    touches: ['instance'],
    params: z.strictObject({ operation_id: uuid('Id of the operation.') }),
    malformed: 'not_found',
    body: z.strictObject({ sent: z.boolean().meta({ description: 'Whether it was sent.' }) }),
    errors: ['not_found', 'conflict'],
    response: z.object({ operation: ambiguousOut }),
    example: {
      params: { operation_id: operationExample.id },
      body: { sent: true },
      response: { operation: ambiguous },
    },
    handle: async (app, { caller, params: { operation_id: id }, body: { sent } }) => {
      const closed = await closeOperation(app, actorOf(caller), { id, ...noteOf(sent) })
      const { workspace_id, account_id, chat_id } = closed
      app.wake.mark({ workspace_id, kind: 'operations', account_id, ...(chat_id && { chat_id }) })
      return ok({ operation: withoutContent(closed) })
    },
  }),
]
