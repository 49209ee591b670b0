/** The calls about what the data centre and the network in front of it do wrong, and about its clock. */
import { z } from 'zod'
import { ApiError } from '../../../src/lib/errors.ts'
import { exampleAccountId } from '../../../src/lib/examples.ts'
import { type ControlOperation, operation } from '../../../src/platform/control-operation.ts'
import type { DataCentre } from './data-centre.ts'
import { hostileNames } from './hostility.ts'

const turn = {
  on: z.string().regex(/^[A-Za-z][A-Za-z_.]{0,99}$/),
  after: z.int().min(0).max(1_000_000).optional(),
  times: z.int().min(1).max(1_000_000).optional(),
  account_id: z.string().min(1).max(200).optional(),
}

export const networkOperations: readonly ControlOperation<DataCentre>[] = [
  operation({
    name: 'setServerClock',
    method: 'POST',
    path: '/server-clock',
    summary: 'Move the clock of the servers',
    description:
      'How far it is ahead of this machine, or behind with a minus: for a client the same as a wrong clock of its own. A message ' +
      'whose id is more than 30 s ahead or 300 s behind is refused. Dates of messages do not move.',
    body: z.strictObject({ ahead_seconds: z.int().min(-31_536_000).max(31_536_000) }),
    query: null,
    response: z.strictObject({ now: z.iso.datetime() }),
    example: { request: { ahead_seconds: -600 }, response: { now: '2026-11-02T09:20:00.000Z' } },
    handle: ({ clock }, { body }) => {
      clock.set(body.ahead_seconds)
      return { now: new Date(clock.now()).toISOString() }
    },
  }),
  operation({
    name: 'addRefusal',
    method: 'POST',
    path: '/refusals',
    summary: 'Answer a method with an error',
    description:
      'The next `times` calls (1 by default) of `on`, after `after` others, do nothing and get `error`, preceded by its code ' +
      'unless that is 400: `401 AUTH_KEY_UNREGISTERED`, `500 AUTH_RESTART`. `any` is every method.',
    body: z.strictObject({ ...turn, error: z.string().regex(/^(-?\d{1,3} )?[A-Z][A-Z0-9_]{1,99}$/) }),
    query: null,
    response: z.strictObject({ done: z.literal(true) }),
    example: {
      request: { on: 'users.getUsers', error: '401 AUTH_KEY_UNREGISTERED', account_id: exampleAccountId },
      response: { done: true },
    },
    handle: ({ refusals }, { body }) => {
      refusals.add(body)
      return { done: true as const }
    },
  }),
  operation({
    name: 'clearRefusals',
    method: 'DELETE',
    path: '/refusals',
    summary: 'Answer every method again',
    description: 'Forgets the errors that wait.',
    body: null,
    query: null,
    response: z.strictObject({ cleared: z.int().nonnegative() }),
    example: { request: null, response: { cleared: 1 } },
    handle: ({ refusals }) => ({ cleared: refusals.clear() }),
  }),
  operation({
    name: 'addHostility',
    method: 'POST',
    path: '/hostile',
    summary: 'Make the network hostile',
    description:
      'Puts a `case` in place of the next `times` answers (1 by default) to a request, after `after` others: `on` is the name of ' +
      'the request, such as `messages.sendMessage` or `mt_req_pq_multi`, `accept` for a new connection, or `any`. `now` does it ' +
      'immediately, on every connection of the account. The cases are frames that are truncated, endless, empty or foreign, ' +
      'flipped bits, wrong keys and salts, unknown constructors, compressed bombs, transport errors, answers to no call, ' +
      'silence, half-open sockets and cuts.',
    body: z.strictObject({ ...turn, case: z.enum(hostileNames) }),
    query: null,
    response: z.strictObject({
      struck: z.int().nonnegative().describe('How many connections were hit immediately.'),
    }),
    example: {
      request: { case: 'silence', on: 'messages.sendMessage', account_id: exampleAccountId },
      response: { struck: 0 },
    },
    handle: ({ hostilities, strike }, { body }) => {
      if (body.on !== 'now') {
        hostilities.add(body)
        return { struck: 0 }
      }
      if (body.account_id === undefined) {
        throw new ApiError('invalid_request', { detail: 'With `now`, name the account.' })
      }
      return { struck: strike(body.account_id, body.case) }
    },
  }),
  operation({
    name: 'readHostilities',
    method: 'GET',
    path: '/hostile',
    summary: 'Count what the network will still do',
    description: 'The cases that wait for their request.',
    body: null,
    query: null,
    response: z.strictObject({ waiting: z.int().nonnegative() }),
    example: { request: null, response: { waiting: 1 } },
    handle: ({ hostilities }) => ({ waiting: hostilities.waiting }),
  }),
  operation({
    name: 'clearHostilities',
    method: 'DELETE',
    path: '/hostile',
    summary: 'Make the network behave',
    description: 'Connections that were already hit stay as they are.',
    body: null,
    query: null,
    response: z.strictObject({ cleared: z.int().nonnegative() }),
    example: { request: null, response: { cleared: 1 } },
    handle: ({ hostilities }) => ({ cleared: hostilities.clear() }),
  }),
]
