import { z } from 'zod'
import { moment, momentOrNull, said, uuid } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { describeOperation } from './operations.ts'

const states = ['queued', 'submitting', 'completed', 'refused', 'released', 'ambiguous'] as const

const textOrNull = (description: string) => z.string().nullable().meta({ description })

export const operation = z
  .object({
    id: uuid('Id of the operation, as in `X-Operation-Id` and `operation_id`.'),
    kind: said('Kind of operation, such as `send_message`.'),
    state: z
      .enum(states)
      .meta({ description: 'State of the operation. `ambiguous`: the outcome is unknown.' }),
    account_id: textOrNull('The account; null for changes in the database only.'),
    chat_id: textOrNull('The chat; null if there is none yet.'),
    created_at: moment('When it was first requested.'),
    crossed_at: momentOrNull('When the worker was last about to submit it; null if never.'),
    finished_at: momentOrNull('When it reached its current final state; null before.'),
    reconciled: z
      .boolean()
      .meta({ description: 'Whether a message found on the platform later proved the outcome.' }),
    reason: textOrNull('Reason for the state, as one word.'),
    detail: said('What is known and what Parley does next, as a sentence.'),
    message_id: textOrNull('Id of the sent message.'),
  })
  .meta({ id: 'Operation', description: 'An operation in the ledger.' })

export const operationExample = {
  id: '019a7e6e-7c1a-7b55-9f53-0d6a1f0c7a11',
  kind: 'send_message',
  state: 'completed',
  account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
  chat_id: 'platform:chat:42',
  created_at: '2026-11-15T09:30:59.900Z',
  crossed_at: '2026-11-15T09:30:59.950Z',
  finished_at: '2026-11-15T09:31:00.000Z',
  reconciled: false,
  reason: null,
  detail: 'The platform accepted it.',
  message_id: '8',
}

export const routes: readonly Route[] = [
  route({
    name: 'get_operation',
    method: 'GET',
    path: '/operations/{operation_id}',
    summary: 'Get an operation',
    description:
      'Returns an operation of the ledger by the id in `X-Operation-Id` or `operation_id`. `detail` says what is known and ' +
      'what Parley does next. Parley never sends an `ambiguous` operation again.',
    scopes: ['read'],
    effect: 'read',
    params: z.strictObject({ operation_id: uuid('Id of the operation.') }),
    malformed: 'not_found',
    errors: ['not_found'],
    response: z.object({ operation }).meta({ id: 'OperationAnswer', description: 'One operation.' }),
    example: {
      params: { operation_id: operationExample.id },
      response: { operation: operationExample },
    },
    handle: async (app, { caller, params }) =>
      ok({ operation: await describeOperation(app, caller, params.operation_id) }),
  }),
]
