import { z } from 'zod'
import { ok, type Route, route } from '../../route.ts'
import { describeOperation } from './operations.ts'

const operation = z.object({
  id: z.string(),
  kind: z.string(),
  state: z.enum(['queued', 'submitting', 'completed', 'refused', 'released', 'ambiguous']),
  account_id: z.string().nullable(),
  chat_id: z.string().nullable(),
  created_at: z.string(),
  crossed_at: z.string().nullable(),
  finished_at: z.string().nullable(),
  reconciled: z.boolean(),
  reason: z.string().nullable(),
  detail: z.string(),
  message_id: z.string().nullable(),
})

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
    params: z.strictObject({ operation_id: z.uuid() }),
    malformed: 'not_found',
    errors: ['not_found'],
    response: z.object({ operation }),
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
    handle: async ({ db }, { caller, params }) =>
      ok({ operation: await describeOperation(db, caller, params.operation_id) }),
  }),
]
