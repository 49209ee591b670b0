/** Campaigns on the dashboard, besides the contract's routes: what only people read. */
import { z } from 'zod'
import { cursor, limit } from '../../lib/shapes.ts'
import { pageEnd, said } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { creatorOut, recipientOut, recipientStatuses } from './campaign-shapes.ts'
import { params } from './control-routes.ts'
import { example } from './examples.ts'
import { listCampaignRecipients } from './recipient-page.ts'

const explainedOut = z
  .object({
    ...recipientOut.shape,
    sentence: said('Why it gets no message now, or how it ended, with the account and the time.'),
  })
  .meta({ id: 'ExplainedRecipient', description: 'A recipient of a campaign, and why it is where it is.' })

export const workspaceRoutes: readonly Route[] = [
  route({
    scopes: [],
    role: 'admin',
    gates: ['campaigns'],
    allowlists: ['campaign_user'],
    name: 'list_recipients',
    method: 'GET',
    path: '/campaigns/{campaign_id}/recipients',
    summary: 'List the recipients of a campaign, each with why it gets no message now',
    effect: 'read',
    params,
    malformed: 'campaign_not_found',
    query: z.object({
      status: z.enum(recipientStatuses).optional().meta({ description: 'Only recipients with this status.' }),
      name: z
        .string()
        .min(1)
        .max(100)
        .optional()
        .meta({ description: 'Only recipients whose name, username or identifier contains this.' }),
      cursor,
      limit: limit(200, 50),
    }),
    errors: ['campaign_not_found', 'invalid_cursor'],
    response: z.object({
      created_by: creatorOut,
      recipients: z.array(explainedOut).meta({ description: 'In the order of the campaign.' }),
      ...pageEnd,
    }),
    example: {
      params: { campaign_id: example.campaign.id },
      response: {
        created_by: { user_id: '0199a1f0-0000-7000-8000-000000000002', name: 'Ana' },
        recipients: [
          {
            ...example.detail.campaign.recipients[0],
            sentence: 'Sales pauses between two messages. Sun 09:30',
          },
        ],
        next_cursor: null,
        has_more: false,
      },
    },
    handle: async (app, { caller, params: { campaign_id: id }, query }) =>
      ok(await listCampaignRecipients(app, caller, { id, query })),
  }),
]
