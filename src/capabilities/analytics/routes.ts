import { z } from 'zod'
import { count, moment, momentOrNull, said, uuid } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { periods, readAnalytics } from './analytics.ts'

const figures = {
  sent: count('Messages that the platform accepted.'),
  failed: count('Messages that the platform refused permanently.'),
  ambiguous: count('Messages whose outcome is unknown.'),
}
const replies = count('Recipients who replied.')
const opt_outs = count('Of these, recipients who asked to stop.')
const reply_rate = z
  .number()
  .min(0)
  .max(1)
  .meta({ description: 'Recipients who replied, divided by those who were reached; 0 if none was.' })

const campaign = z
  .object({
    id: uuid('Id of the campaign.'),
    name: z.string().nullable().meta({ description: 'Name of the campaign; null if it has none.' }),
    status: said('Status of the campaign.'),
    kind: said('`scoped` or `contacts`.'),
    created_at: moment('When the campaign was created.'),
    ...figures,
    replies,
    opt_outs,
    reply_rate,
  })
  .meta({ id: 'CampaignFigures', description: 'A campaign and its totals, from start to end.' })

const analytics = z
  .object({
    period: z.enum(periods).meta({ description: 'The requested period.' }),
    from: momentOrNull('The midnight at which the period begins; null for `all`.'),
    to: moment('The end of the period: now.'),
    messages: z
      .object({
        received: count('Messages that the accounts received.'),
        sent: count('Messages that the accounts sent.'),
      })
      .meta({ id: 'MessageCounts', description: 'Messages of all accounts of the workspace in the period.' }),
    campaign_sends: z
      .object(figures)
      .meta({ id: 'CampaignSends', description: 'Messages that campaigns sent in the period.' }),
    totals: z
      .object({
        campaigns: count('Number of campaigns.'),
        sent: figures.sent,
        failed: figures.failed,
        replies,
        opt_outs,
        reply_rate,
      })
      .meta({ id: 'AnalyticsTotals', description: 'Totals of all campaigns.' }),
    campaigns: z.array(campaign).meta({ description: 'The 50 most recent campaigns.' }),
  })
  .meta({ id: 'Analytics', description: 'Counts of stored rows. Nothing is estimated.' })

export const routes: readonly Route[] = [
  route({
    name: 'get_analytics',
    method: 'GET',
    path: '/analytics',
    summary: 'Get analytics',
    description:
      'Counts messages and campaign results from stored rows; estimates nothing. `7d` and `30d` are days in the time zone of the workspace, including today; `from` is ' +
      'the midnight at which they begin, and null for `all`. A message counts on the day it was written, even if it was ' +
      'deleted later. `replies` and `reply_rate` count every reply, `opt_outs` those that asked to stop; `reply_rate` is the recipients who replied, divided by those who were reached. `campaigns` lists the 50 most ' +
      'recent campaigns, each with its totals from start to end.',
    scopes: ['read'],
    gates: ['analytics'],
    effect: 'read',
    costly: true,
    query: z.object({
      period: z.enum(periods).default('7d').meta({
        description:
          '`7d` and `30d` are days in the time zone of the workspace, including today; `all` is everything.',
      }),
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
            opt_outs: 1,
            reply_rate: 0.3,
          },
        ],
      },
    },
    handle: async (app, { caller, query }) => ok(await readAnalytics(app, caller, query.period)),
  }),
]
