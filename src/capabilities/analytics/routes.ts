import { z } from 'zod'
import { Json, ok, type Route, route } from '../../route.ts'
import { periods, readAnalytics } from './analytics.ts'

const figures = { sent: z.number(), failed: z.number(), ambiguous: z.number() }

export const routes: readonly Route[] = [
  route({
    name: 'get_analytics',
    method: 'GET',
    path: '/analytics',
    summary: 'How much was written, and what came of campaigns',
    description:
      'Counts of what is persisted; nothing is inferred. `7d` and `30d` are days of the workspace, today included; `from` is ' +
      'the midnight they begin with, and null for `all`. A message counts on the day it was written, also if it was ' +
      'deleted since. `reply_rate` is the recipients who replied over those who were reached. `campaigns` has the 50 most ' +
      'recent, each with its figures from beginning to end.',
    scopes: ['read'],
    gates: ['analytics'],
    effect: 'read',
    query: z.object({ period: z.enum(periods).default('7d') }),
    response: z.object({
      period: z.enum(periods),
      from: z.string().nullable(),
      to: z.string(),
      messages: z.object({ received: z.number(), sent: z.number() }),
      campaign_sends: z.object(figures),
      totals: z.object({
        campaigns: z.number(),
        sent: z.number(),
        failed: z.number(),
        replies: z.number(),
        reply_rate: z.number(),
      }),
      campaigns: z.array(
        z.object({
          id: z.string(),
          name: z.string().nullable(),
          status: z.string(),
          kind: z.string(),
          created_at: z.string(),
          ...figures,
          replies: z.number(),
          reply_rate: z.number(),
        }),
      ),
    }),
    example: {
      query: { period: '7d' },
      response: {
        period: '7d',
        from: '2026-11-09T00:00:00.000Z',
        to: '2026-11-15T09:30:00.000Z',
        messages: { received: 120, sent: 95 },
        campaign_sends: { sent: 40, failed: 1, ambiguous: 0 },
        totals: { campaigns: 1, sent: 40, failed: 1, replies: 12, reply_rate: 0.3 },
        campaigns: [
          {
            id: '0199a1f0-0000-7000-8000-000000000021',
            name: 'Autumn offer',
            status: 'sending',
            kind: 'scoped',
            created_at: '2026-11-10T08:00:00.000Z',
            sent: 40,
            failed: 1,
            ambiguous: 0,
            replies: 12,
            reply_rate: 0.3,
          },
        ],
      },
    },
    handle: async (app, { caller, query }) => ok(new Json(await readAnalytics(app, caller, query.period))),
  }),
]
