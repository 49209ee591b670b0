import { z } from 'zod'
import { present } from '../../lib/json-schema.ts'
import { accountId, text } from '../../lib/shapes.ts'
import { count, done, moment, momentOrNull, said, uuid } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { textMax } from '../../rules/limits.ts'
import { describeBroadcast, recipientOut, totalsOut } from '../campaigns/campaigns.ts'
import { createBroadcast } from './broadcast.ts'

export const reach = {
  broadcast_id: uuid('Id of the broadcast.'),
  recipients: count('Number of recipients: at most 30.'),
  audience_total: count('Number of people in the audience who can receive messages.'),
  capped: z.boolean().meta({ description: 'Whether the audience was larger than one call allows.' }),
}

const queued = z
  .object({ ...done, ...reach })
  .meta({ id: 'BroadcastResult', description: 'A queued broadcast.' })

export const statuses = ['queued', 'sending', 'completed'] as const

/** What a list of broadcasts shows of each. */
export const broadcastFacts = {
  ...reach,
  status: z.enum(statuses).meta({ description: 'Status of the broadcast.' }),
  message_text: said('The message with its placeholders.'),
  created_at: moment('When the broadcast was requested.'),
  started_at: momentOrNull('When its first message was submitted.'),
  completed_at: momentOrNull('When its last recipient reached a final status.'),
  totals: totalsOut,
}

const detail = z
  .object({
    ...broadcastFacts,
    people: z.array(recipientOut).meta({ description: 'Its recipients, most recent chat first.' }),
  })
  .meta({ id: 'Broadcast', description: 'A broadcast and its recipients.' })

const body = z
  .strictObject({
    account_id: accountId,
    audience_type: z.enum(['stage', 'column']).meta({ description: 'What `audience_ref` names.' }),
    audience_ref: z.string().min(1).max(200).meta({ description: 'Key of a stage, or id of a column.' }),
    column_value: z.string().min(1).max(4_096).optional().meta({
      description:
        'Selects chats with this value in the column. Required for a column; not allowed otherwise.',
    }),
    message_text: text(textMax).meta({
      description:
        'The message. The placeholders are `{{name}}` and, with a fallback, `{{name|there}}`; any other is refused.',
    }),
  })
  .superRefine(({ audience_type, column_value }, context) => {
    if (audience_type === 'column' && column_value === undefined) {
      context.addIssue({ code: 'custom', path: ['column_value'], message: 'is required for a column' })
    }
    if (audience_type === 'stage' && column_value !== undefined) {
      context.addIssue({ code: 'custom', path: ['column_value'], message: 'is allowed for a column only' })
    }
  })
  .meta({
    id: 'BroadcastRequest',
    description: 'A message and its audience.',
    not: {
      anyOf: [
        { properties: { audience_type: { const: 'column' }, column_value: false } },
        { properties: { audience_type: { const: 'stage' } }, ...present('column_value') },
      ],
    },
  })

export const totals = {
  queued: 0,
  submitting: 0,
  waiting: 0,
  completed: 2,
  replied: 0,
  failed: 0,
  ambiguous: 0,
  cancelled: 0,
  suppressed: 0,
}
export const example = {
  broadcast_id: '019a7e70-0000-7000-8000-0000000000b1',
  recipients: 2,
  audience_total: 2,
  capped: false,
}

/** A message to thirty people at once is for admins and owners. */
const senders = { scopes: ['send'], role: 'admin' } as const // guard: members send no broadcasts

export const routes: readonly Route[] = [
  route({
    name: 'create_broadcast',
    method: 'POST',
    path: '/broadcast',
    summary: 'Send a broadcast',
    description:
      'Queues a message to the private chats of the account in a stage or with a column value, most recent first, ' +
      'at most 30; the worker sends them. Skips suppressed people, bots, deleted accounts, and people without a name ' +
      'if the message needs one.',
    ...senders,
    gates: ['broadcast'],
    idempotency: 'optional',
    collision: 409,
    account: 'required',
    effect: 'local',
    touches: ['campaigns'],
    variant: ({ body: { audience_type } }) => ({
      ...senders,
      gates: ['broadcast', audience_type === 'stage' ? 'pipeline' : 'crm'],
      idempotency: 'optional',
    }),
    body,
    errors: ['invalid_stage', 'column_not_found', 'unresolved_personalization', 'suppression_unavailable'],
    response: queued,
    example: {
      body: {
        account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
        audience_type: 'stage',
        audience_ref: 'new',
        message_text: 'Hello {{name|there}}, we are closed on Friday.',
      },
      response: { ok: true, message: 'The broadcast is queued for 2 people.', ...example },
    },
    handle: async (app, tx, { caller, body: request, key }) => {
      const made = await createBroadcast(app, tx, caller, { request, key })
      const people = made.recipients === 1 ? '1 person' : `${made.recipients} people`
      const message =
        made.recipients === 0
          ? 'This audience is empty; nothing was queued.'
          : `The broadcast is queued for ${people}.`
      return ok({ ok: true, message, ...made })
    },
  }),
  route({
    name: 'get_broadcast',
    method: 'GET',
    path: '/broadcast/{broadcast_id}',
    summary: 'Get a broadcast',
    description: 'Returns the status, the blocking reason and the history of every recipient.',
    ...senders,
    gates: ['broadcast'],
    effect: 'read',
    params: z.strictObject({ broadcast_id: uuid('Id of the broadcast.') }),
    malformed: 'not_found',
    errors: ['not_found'],
    response: detail,
    example: {
      params: { broadcast_id: example.broadcast_id },
      response: {
        ...example,
        status: 'completed',
        message_text: 'Hello {{name|there}}, we are closed on Friday.',
        created_at: '2026-11-15T09:30:00.000Z',
        started_at: '2026-11-15T09:30:00.100Z',
        completed_at: '2026-11-15T09:30:15.200Z',
        totals,
        people: [],
      },
    },
    handle: async (app, { caller, params: { broadcast_id } }) =>
      ok(await describeBroadcast(app, caller, broadcast_id)),
  }),
]
