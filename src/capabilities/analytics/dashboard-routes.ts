/** Analytics on the dashboard, besides the contract's periods: a range of days. */
import { z } from 'zod'
import { accountId } from '../../lib/shapes.ts'
import { count, said } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { daysMax, listDays } from './days.ts'

const dayMs = 86_400_000
const dayOut = (description: string) => z.iso.date().meta({ description })
const dayIn = (description: string) =>
  z.iso
    .date()
    .refine((day) => day >= '2000-01-01' && day <= '2199-12-31', {
      message: 'must be a day from 2000 to 2199',
    })
    .optional()
    .meta({ description })

export const workspaceRoutes: readonly Route[] = [
  route({
    scopes: [],
    role: 'member',
    gates: ['analytics'],
    name: 'list_days',
    method: 'GET',
    path: '/analytics/days',
    summary: 'Count messages per day',
    account: 'optional',
    effect: 'read',
    costly: true,
    query: z
      .object({
        from: dayIn('First day. Without `from` and `to`, the last 30 days.'),
        to: dayIn('Last day.'),
        account_id: accountId.optional().meta({ description: 'Only messages of this account.' }),
      })
      .superRefine(({ from, to }, context) => {
        const refuse = (message: string) => context.addIssue({ code: 'custom', path: ['from'], message })
        if ((from === undefined) !== (to === undefined)) return refuse('and to must be given together')
        if (from === undefined || to === undefined) return
        const days = (Date.parse(to) - Date.parse(from)) / dayMs + 1
        if (days < 1) refuse('must not be after to')
        if (days > daysMax) refuse(`and to must be at most ${daysMax} days apart`)
      }),
    errors: ['not_found'],
    response: z.object({
      timezone: said('Time zone of the workspace, in which its days end.'),
      from: dayOut('First day.'),
      to: dayOut('Last day.'),
      days: z
        .array(
          z
            .object({
              day: dayOut('The day.'),
              received: count('Messages that the accounts received.'),
              sent: count('Messages that the accounts sent.'),
            })
            .meta({ id: 'DayCounts', description: 'Messages of one day. Counted, never inferred.' }),
        )
        .meta({ description: 'Every day of the range, in order.' }),
    }),
    example: {
      response: {
        timezone: 'Europe/Berlin',
        from: '2026-11-14',
        to: '2026-11-15',
        days: [
          { day: '2026-11-14', received: 4, sent: 9 },
          { day: '2026-11-15', received: 0, sent: 0 },
        ],
      },
    },
    handle: async (app, { caller, query }) => ok(await listDays(app, caller, query)),
  }),
]
