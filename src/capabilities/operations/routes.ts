import { z } from 'zod'
import { moment, momentOrNull, said, uuid } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { describeOperation } from './operations.ts'

const states = ['queued', 'submitting', 'completed', 'refused', 'released', 'ambiguous'] as const

const textOrNull = (description: string) => z.string().nullable().meta({ description })

const operation = z
  .object({
    id: uuid('The id that `X-Operation-Id` and `operation_id` named.'),
    kind: said('What was to be done, such as `send_message`.'),
    state: z
      .enum(states)
      .meta({ description: 'How far it has come. `ambiguous`: nobody can know whether it happened.' }),
    account_id: textOrNull('The account it acts through; null for what changes only our database.'),
    chat_id: textOrNull('The chat it is about; null where there is none yet.'),
    created_at: moment('When it was first asked for.'),
    crossed_at: momentOrNull('When it was last about to be submitted; null where it never was.'),
    finished_at: momentOrNull('When it came to its present end; null while it is under way.'),
    reconciled: z.boolean().meta({ description: 'True where a message of the platform proved it later.' }),
    reason: textOrNull('Why it ended as it did, as one word.'),
    detail: said('What is known and what is being done about it, as a sentence.'),
    message_id: textOrNull('The message it became.'),
  })
  .meta({ id: 'Operation', description: 'One row of the ledger.' })

export const routes: readonly Route[] = [
  route({
    name: 'get_operation',
    method: 'GET',
    path: '/operations/{operation_id}',
    summary: 'What became of an operation',
    description:
      'One row of the ledger, by the id that `X-Operation-Id` and `operation_id` name. `detail` says what is known and ' +
      'what is being done about it. An `ambiguous` operation is never sent again by itself.',
    scopes: ['read'],
    effect: 'read',
    params: z.strictObject({ operation_id: uuid('The id of the operation.') }),
    malformed: 'not_found',
    errors: ['not_found'],
    response: z
      .object({ operation })
      .meta({ id: 'OperationAnswer', description: 'What is known of an operation.' }),
    example: {
      params: { operation_id: '019a7e6e-7c1a-7b55-9f53-0d6a1f0c7a11' },
      response: {
        operation: {
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
        },
      },
    },
    handle: async (app, { caller, params }) =>
      ok({ operation: await describeOperation(app, caller, params.operation_id) }),
  }),
]
