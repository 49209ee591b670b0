import { z } from 'zod'
import { count, moment, momentOrNull, said, uuid } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { periods, readAnalytics } from './analytics.ts'

const figures = {
  sent: count('Messages that the platform accepted.'),
  failed: count('Messages that the platform refused for good.'),
  ambiguous: count('Messages of which nobody can know.'),
}
const replies = count('Recipients who replied.')
const reply_rate = z
  .number()
  .min(0)
  .max(1)
  .meta({ description: 'Recipients who replied over those who were reached; 0 where nobody was.' })

const campaign = z
  .object({
    id: uuid('The campaign.'),
    name: z.string().nullable().meta({ description: 'Its name; null where it has none.' }),
    status: said('Where it is in its life.'),
    kind: said('`scoped` or `contacts`.'),
    created_at: moment('When it was made.'),
    ...figures,
    replies,
    reply_rate,
  })
  .meta({ id: 'CampaignFigures', description: 'A campaign and what came of it, from beginning to end.' })

const analytics = z
  .object({
    period: z.enum(periods).meta({ description: 'The period that was asked for.' }),
    from: momentOrNull('The midnight it begins with; null for `all`.'),
    to: moment('The moment it ends with: now.'),
    messages: z
      .object({ received: count('Written by others.'), sent: count('Written by the accounts.') })
      .meta({ id: 'MessageCounts', description: 'Messages of all accounts of the workspace in the period.' }),
    campaign_sends: z
      .object(figures)
      .meta({ id: 'CampaignSends', description: 'What campaigns sent in the period.' }),
    totals: z
      .object({
        campaigns: count('Campaigns that there are.'),
        sent: figures.sent,
        failed: figures.failed,
        replies,
        opt_outs: count('Of these, recipients who asked to stop.'),
        reply_rate,
      })
      .meta({ id: 'AnalyticsTotals', description: 'All campaigns together.' }),
    campaigns: z.array(campaign).meta({ description: 'The 50 most recent.' }),
  })
  .meta({ id: 'Analytics', description: 'Counts of what is persisted. Nothing is inferred.' })

export const routes: readonly Route[] = [
  route({
    name: 'get_analytics',
    method: 'GET',
    path: '/analytics',
    summary: 'How much was written, and what came of campaigns',
    description:
      'Counts of what is persisted; nothing is inferred. `7d` and `30d` are days of the workspace, today included; `from` is ' +
      'the midnight they begin with, and null for `all`. A message counts on the day it was written, also if it was ' +
      'deleted since. `replies` and `reply_rate` count every reply, `opt_outs` those that asked to stop; `reply_rate` is the recipients who replied over those who were reached. `campaigns` has the 50 most ' +
      'recent, each with its figures from beginning to end.',
    scopes: ['read'],
    gates: ['analytics'],
    effect: 'read',
    query: z.object({
      period: z
        .enum(periods)
        .default('7d')
        .meta({ description: 'Days of the workspace, today included, or everything.' }),
    }),
    response: analytics,
    example: {
      query: { period: '7d' },
      response: {
        period: '7d',
        from: '2026-11-09T00:00:00.000Z',
        to: '2026-11-15T09:30:00.000Z',
        messages: { received: 120, sent: 95 },
        campaign_sends: { sent: 40, failed: 1, ambiguous: 0 },
        totals: { campaigns: 1, sent: 40, failed: 1, replies: 12, opt_outs: 1, reply_rate: 0.3 },
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
    handle: async (app, { caller, query }) => ok(await readAnalytics(app, caller, query.period)),
  }),
]
