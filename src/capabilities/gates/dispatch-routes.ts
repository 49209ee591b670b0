/** Dispatch on the dashboard: every user reads whether this instance sends, operators stop and resume it. */
import { z } from 'zod'
import { text } from '../../lib/shapes.ts'
import { done, moment, momentOrNull, said, uuid } from '../../lib/wire.ts'
import { ok, ownRoute, type Route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { describeSending, dispatchWithout, readDispatch, setDispatch } from './gates.ts'

const operators = { scopes: [], operator: true } as const

const stop = {
  since: momentOrNull('When dispatch was switched off; null while it is on, or if unknown.'),
  reason: z
    .string()
    .nullable()
    .meta({ description: 'Why, as the operator wrote it; null while it is on, or if none was given.' }),
}

const dispatchOut = z.object({
  dispatch: z.boolean().meta({ description: 'Whether the switch is on.' }),
  ...stop,
  owing: z
    .array(
      z.object({
        id: uuid('Id of the worker.'),
        beat_at: moment('Its last heartbeat.'),
      }),
    )
    .meta({ description: 'Workers that have to replay their journals first. Nothing is sent until then.' }),
  unconfirmed: z
    .array(
      z.object({
        account_id: said('Id of the account.'),
        workspace_id: uuid('Its workspace.'),
        status: said('Its status.'),
      }),
    )
    .meta({
      description: 'Accounts that have not connected since the database started: contacts wait for them.',
    }),
})
const dispatch = { dispatch: true, since: null, reason: null, owing: [], unconfirmed: [] }
const worker_id = '0199a1f0-0000-7000-8000-000000000003'

export const ownRoutes: readonly Route[] = [
  ownRoute({
    name: 'get_sending',
    method: 'GET',
    path: '/sending',
    summary: 'Get whether this instance sends messages',
    scopes: [],
    effect: 'read',
    response: z.object({
      on: z.boolean().meta({ description: 'Whether this instance sends messages now.' }),
      stop: z.string().nullable().meta({ description: 'Why it does not, as a sentence; null if it does.' }),
      ...stop,
    }),
    example: { response: { on: true, stop: null, since: null, reason: null } },
    handle: async (app) => ok(await describeSending(app)),
  }),
  ownRoute({
    ...operators,
    name: 'get_dispatch',
    method: 'GET',
    path: '/dispatch',
    summary: 'Get the dispatch switch and what sending waits for',
    effect: 'read',
    response: dispatchOut,
    example: { response: dispatch },
    handle: async ({ db }) => ok(await readDispatch(db)),
  }),
  ownRoute({
    ...operators,
    name: 'set_dispatch',
    method: 'POST',
    path: '/dispatch',
    summary: 'Stop or resume all sending',
    effect: 'admin',
    touches: ['gates', 'instance'],
    body: z.discriminatedUnion('on', [
      z.strictObject({ on: z.literal(true) }),
      z.strictObject({
        on: z.literal(false),
        reason: text(500).optional().meta({ description: 'Why; every user sees it until sending resumes.' }),
      }),
    ]),
    response: dispatchOut,
    example: { body: { on: true }, response: dispatch },
    handle: async (app, { caller, body }) => {
      await setDispatch(app, actorOf(caller), body.on, body.on ? undefined : body.reason)
      return ok(await readDispatch(app.db))
    },
  }),
  ownRoute({
    ...operators,
    name: 'dispatch_without',
    method: 'POST',
    path: '/dispatch/without',
    summary: 'Stop waiting for the journals of a worker',
    description: 'For a worker whose disk is lost for good. The outcomes in its journals stay unknown.',
    effect: 'admin',
    touches: ['gates', 'instance'],
    body: z.strictObject({ worker_id: uuid('Id of the worker.') }),
    errors: ['not_found'],
    response: z.object(done),
    example: {
      body: { worker_id },
      response: { ok: true, message: 'Parley no longer waits for the worker.' },
    },
    handle: async (app, { caller, body }) => {
      await dispatchWithout(app, actorOf(caller), body.worker_id)
      return ok({ ok: true, message: 'Parley no longer waits for the worker.' })
    },
  }),
]
