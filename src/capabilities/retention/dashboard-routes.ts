/** Retention at the dashboard, for admins and owners. */
import { z } from 'zod'
import { count } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import {
  daysMax,
  oldMax,
  previewRetention,
  readRetention,
  recipientsDaysMin,
  setRetention,
} from './retention.ts'

const kinds = {
  messages_days: 'Days for which texts and files of messages are kept',
  operations_days: 'Days for which texts in operations are kept after they ended',
  recipients_days: 'Days for which names of recipients are kept after their campaign ended',
  notes_days: 'Days for which notes are kept',
} as const

type Each<T> = { [K in keyof typeof kinds]: T }

function each<T>(of: (description: string, least: number) => T): Each<T> {
  const entries = Object.entries(kinds).map(([name, words]) => [
    name,
    of(words, name === 'recipients_days' ? recipientsDaysMin : 1),
  ])
  return Object.fromEntries(entries) as Each<T>
}

const days = (least: number) => z.int().min(least).max(daysMax)
const retention = z
  .object(
    each((words) =>
      z
        .int()
        .nullable()
        .meta({ description: `${words}; null: without end.` }),
    ),
  )
  .meta({ id: 'Retention', description: 'How long a workspace keeps texts, files and names.' })
const example = { messages_days: 365, operations_days: 365, recipients_days: null, notes_days: null }

const counted = `counted up to ${oldMax.toLocaleString('en')}`
const admins = { scopes: [], role: 'admin', path: '/retention' } as const

export const workspaceRoutes: readonly Route[] = [
  route({
    ...admins,
    name: 'get_retention',
    method: 'GET',
    summary: 'Get how long texts, files and names are kept',
    effect: 'read',
    response: z.object({ retention }),
    example: { response: { retention: example } },
    handle: async ({ db }, { caller }) => ok({ retention: await readRetention(db, caller.workspace_id) }),
  }),
  route({
    ...admins,
    name: 'preview_retention',
    method: 'GET',
    path: '/retention/preview',
    summary: 'Count what a change of retention would clear now; changes nothing',
    effect: 'read',
    costly: true,
    query: z.object(
      each((words, least) =>
        z.coerce
          .number()
          .pipe(days(least))
          .optional()
          .meta({ description: `${words}; left out: without end.` }),
      ),
    ),
    response: z.object({
      clears: z.object({
        messages: count(`Messages, ${counted}.`),
        files: count('Files of these messages.'),
        operations: count(`Operations, ${counted}.`),
        recipients: count(`Recipients, ${counted}.`),
        notes: count(`Notes, ${counted}.`),
      }),
    }),
    example: {
      query: { messages_days: '365' },
      response: { clears: { messages: 1204, files: 31, operations: 0, recipients: 0, notes: 0 } },
    },
    handle: async ({ db }, { caller: { workspace_id }, query }) => {
      const {
        messages_days = null,
        operations_days = null,
        recipients_days = null,
        notes_days = null,
      } = query
      const retention = { messages_days, operations_days, recipients_days, notes_days }
      return ok({ clears: await previewRetention(db, { workspace_id, retention }) })
    },
  }),
  route({
    ...admins,
    name: 'set_retention',
    method: 'PUT',
    summary: 'Set how long texts, files and names are kept: what is older is cleared from now on',
    effect: 'admin',
    touches: ['workspace'],
    body: z.strictObject(
      each((words, least) =>
        days(least)
          .nullable()
          .meta({ description: `${words}; null: without end.` }),
      ),
    ),
    response: z.object({ retention }),
    example: { body: example, response: { retention: example } },
    handle: async (app, { caller, body }) =>
      ok({
        retention: await setRetention(app, actorOf(caller), {
          workspace_id: caller.workspace_id,
          retention: body,
        }),
      }),
  }),
]
