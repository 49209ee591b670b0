/** What a user found out about an operation whose outcome is unknown. */
import { z } from 'zod'
import { uuid } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { closeOperation, describeOperation, requireOwnOperation } from './operations.ts'
import { operation, operationExample } from './routes.ts'

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
      await closeOperation(app, actorOf(caller), { id, closed_as: sent ? 'sent' : 'not_sent' })
      return ok({ operation: await describeOperation(app, caller, id) })
    },
  }),
]
