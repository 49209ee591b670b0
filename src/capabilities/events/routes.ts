import { z } from 'zod'
import { ApiError } from '../../lib/errors.ts'
import { cursor, limit } from '../../lib/shapes.ts'
import { pageEnd } from '../../lib/wire.ts'
import { Json, ok, type Route, route } from '../../route.ts'
import { eventOut } from './event-shapes.ts'
import { watchOf } from './event-watch.ts'
import { listEvents } from './events.ts'
import { waitInPlace } from './wait-places.ts'

const isSequence = (value: string) => /^(0|[1-9][0-9]{0,14})$/.test(value)

const after = z
  .string()
  .refine(isSequence, { message: 'must be the sequence of an event, such as 0 or 41' })
  .optional()
  .meta({
    description: '`sequence` of the last event that you have processed.',
    openapi: { type: 'integer', minimum: 0, default: 0 },
  })

const waitSecondsMax = 25

const wait = z
  .string()
  .refine((value) => /^(0|[1-9][0-9]?)$/.test(value) && Number(value) <= waitSecondsMax, {
    message: `must be a whole number of seconds from 0 to ${waitSecondsMax}`,
  })
  .transform(Number)
  .default(0)
  .meta({
    description: 'Seconds to wait for an event if there is none yet.',
    openapi: { type: 'integer', minimum: 0, maximum: waitSecondsMax, default: 0 },
  })

/** `cursor` is a synonym of `after`, so that clients can page this list like any other. */
function readPlace({ after, cursor }: { after?: string | undefined; cursor?: string | undefined }): string {
  if (cursor === undefined) return after ?? '0'
  if (!isSequence(cursor)) throw new ApiError('invalid_cursor')
  if (after === undefined || after === cursor) return cursor
  throw new ApiError('invalid_request', { detail: 'Give either after or cursor, not both.' })
}

export const routes: readonly Route[] = [
  route({
    name: 'list_events',
    method: 'GET',
    path: '/events',
    summary: 'List events',
    description:
      'Returns the events of the last 30 days in order, the same that webhooks deliver. `sequence` has no gaps within a workspace: repeat the request with ' +
      '`after` set to the last one you have processed, and you miss nothing. With `wait` it responds when there is an event or ' +
      'when the time is up; a key can have 3 such requests at a time, a workspace 20.',
    scopes: ['read'],
    effect: 'read',
    query: z.object({ after, cursor, limit: limit(1000, 100), wait }),
    check: (_app, _caller, { query }) => readPlace(query),
    errors: ['invalid_cursor'],
    response: z
      .object({
        events: z.array(eventOut).meta({ description: 'Events, oldest first.' }),
        ...pageEnd,
      })
      .meta({ id: 'EventPage', description: 'A page of events.' }),
    example: {
      query: { after: '0', limit: '100' },
      response: {
        events: [
          {
            id: 'evt_5f0c9a6e1f3b4d0c8a7e6b5d4c3f2a10',
            type: 'message.received',
            api_version: '1.0.0',
            workspace_id: '0199a1f0-0000-7000-8000-000000000001',
            sequence: 1,
            occurred_at: '2026-11-15T09:30:00.000Z',
            created_at: '2026-11-15T09:30:00.012Z',
            data: {
              account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
              chat_id: 'platform:chat:42',
              message: {
                id: '7',
                text: 'Is the blue one still available?',
                is_sender: false,
                timestamp: '2026-11-15T09:30:00.000Z',
                edited_at: null,
                attachments: [],
              },
            },
          },
        ],
        next_cursor: null,
        has_more: false,
      },
    },
    handle: async (app, { caller, query: { limit, wait }, checked, left }) => {
      const asked = { after: checked, limit }
      const first = await listEvents(app, caller, asked)
      if (first.found > 0 || wait === 0) return ok(new Json(first.text))
      const waiting = { after: checked, ms: wait * 1_000, left: left?.() }
      await waitInPlace(app, caller, {
        seconds: wait,
        wait: () => watchOf(app).wait(caller, waiting),
      })
      // No caller is left to get the answer.
      waiting.left?.throwIfAborted()
      return ok(new Json((await listEvents(app, caller, asked)).text))
    },
  }),
]
