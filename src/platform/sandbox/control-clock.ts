/** The two control calls that move the manual clock: on the service, and on a separate sandbox. */
import { z } from 'zod'
import { time } from '../../lib/shapes.ts'
import { type ControlOperation, operation } from '../control-operation.ts'
import type { AdvanceClock } from '../module.ts'
import type { PlatformClock } from '../port.ts'

export const advanceOperation: ControlOperation<AdvanceClock> = operation({
  name: 'advance_clock',
  method: 'POST',
  path: '/clock/advance',
  summary: 'Advance the manual clock',
  description: 'Responds once everything due by the new time is done. Only with PARLEY_CLOCK=manual.',
  body: z.strictObject({
    seconds: z
      .number()
      .min(0)
      .max(366 * 86_400),
  }),
  query: null,
  response: z.strictObject({ now: z.string() }),
  example: { request: { seconds: 3600 }, response: { now: '2026-11-15T10:30:00.000Z' } },
  handle: async (advance, { body }) => ({ now: (await advance(body.seconds)).toISOString() }),
})

/** How a service passes its time to a sandbox in another process. */
export const followOperation: ControlOperation<PlatformClock> = operation({
  name: 'follow_clock',
  method: 'POST',
  path: '/clock',
  summary: 'Set the clock of a separate sandbox',
  description: 'The service that moves the clock calls this. Only with PARLEY_CLOCK=manual.',
  body: z.strictObject({ to: time }),
  query: null,
  response: z.strictObject({
    next_due_at: z.string().nullable(),
    positions: z.record(z.string(), z.string()),
  }),
  example: {
    request: { to: '2026-11-15T10:30:00.000Z' },
    response: { next_due_at: null, positions: { acc_2Jk9vQ7wXb4LmN8pRt3Z: '12' } },
  },
  handle: (clock, { body }) => clock.run(body.to),
})
