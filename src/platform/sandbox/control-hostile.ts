/** The calls of the control address that make the network of the data centre hostile. */
import { z } from 'zod'
import { ApiError } from '../../lib/errors.ts'
import { exampleAccountId } from '../../lib/examples.ts'
import { type ControlOperation, operation } from '../control-operation.ts'
import { type HostileNetwork, hostileNames } from './hostility.ts'
import type { World } from './world.ts'

export const hostileOperations: readonly ControlOperation<World>[] = [
  operation({
    name: 'addHostility',
    method: 'POST',
    path: '/hostile',
    summary: 'Make the network hostile',
    description:
      'Only with `parley sandbox --mtproto-port`. Puts a `case` in place of the next `times` answers (1 by default) to a request, ' +
      'after `after` others: `on` is the name of the request, such as `messages.sendMessage` or `mt_req_pq_multi`, `accept` for a ' +
      'new connection, or `any`. `now` does it immediately, on every connection of the account. The cases are frames that are ' +
      'truncated, endless, empty or foreign, flipped bits, wrong keys and salts, unknown constructors, compressed bombs, ' +
      'transport errors, answers to no call, silence, half-open sockets and cuts.',
    body: z.strictObject({
      case: z.enum(hostileNames),
      on: z.string().regex(/^[A-Za-z][A-Za-z_.]{0,99}$/),
      after: z.int().min(0).max(1_000_000).optional(),
      times: z.int().min(1).max(1_000_000).optional(),
      account_id: z.string().min(1).max(200).optional(),
    }),
    query: null,
    response: z.strictObject({
      struck: z.int().nonnegative().describe('How many connections were hit immediately.'),
    }),
    example: {
      request: { case: 'silence', on: 'messages.sendMessage', account_id: exampleAccountId },
      response: { struck: 0 },
    },
    handle: (world, { body }) => {
      const network = requireNetwork(world)
      if (body.on !== 'now') {
        network.add(body)
        return { struck: 0 }
      }
      if (body.account_id === undefined) {
        throw new ApiError('invalid_request', { detail: 'With `now`, name the account.' })
      }
      return { struck: network.strike(body.account_id, body.case) }
    },
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
    handle: (world) => ({ cleared: requireNetwork(world).clear() }),
  }),
]

function requireNetwork({ network }: World): HostileNetwork {
  if (network) return network
  throw new ApiError('invalid_request', {
    detail: 'This sandbox has no data centre. Start it with --mtproto-port.',
  })
}
