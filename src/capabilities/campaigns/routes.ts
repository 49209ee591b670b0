import { z } from 'zod'
import { readPaging } from '../../lib/cursor.ts'
import { ApiError } from '../../lib/errors.ts'
import { cursor, limit } from '../../lib/shapes.ts'
import { pageEnd, said } from '../../lib/wire.ts'
import { Json, ok, type Route, route } from '../../route.ts'
import { campaignBody } from './campaign-body.ts'
import {
  describeCampaign,
  listCampaigns,
  readCampaign,
  readListPaging,
  requireCampaign,
} from './campaign-pages.ts'
import { campaignDetail, campaignOut, forecastOut, verifiedOut, warnings } from './campaign-shapes.ts'
import { controlRoutes, mutation, params } from './control-routes.ts'
import { checkRequest, createCampaign, requireCreatable } from './create.ts'
import { example } from './examples.ts'
import { forecastCampaign, previewCampaign } from './preview.ts'
import { verifyCampaign } from './verify.ts'

/** 8 MiB: a valid campaign of 100 recipients can take 1.3 MB, one of 5,000 contacts more. */
const bodyMax = 8 * 1024 * 1024

const created = z
  .object({
    campaign: campaignOut,
    queued: z.literal(true).meta({ description: 'Always true: the worker sends, not this request.' }),
    warnings: z.array(z.enum(warnings)).meta({ description: 'What may not be as it was meant.' }),
  })
  .meta({ id: 'CampaignCreated', description: 'A campaign that waits for the worker.' })

const page = z
  .object({
    campaigns: z.array(campaignOut).meta({ description: 'The newest first.' }),
    coverage: z
      .object({
        scope: z.literal('internal').meta({ description: 'Campaigns that were created here.' }),
        legacy_excluded: z.literal(true).meta({ description: 'Older ones of other systems are left out.' }),
        limitations: z.array(said('One of them.')).meta({ description: 'What the list does not tell.' }),
      })
      .meta({ id: 'CampaignCoverage', description: 'What the list covers.' }),
    ...pageEnd,
  })
  .meta({ id: 'CampaignPage', description: 'A page of campaigns.' })

export const routes: readonly Route[] = [
  route({
    name: 'list_campaigns',
    method: 'GET',
    path: '/campaigns',
    summary: 'The campaigns of the workspace',
    description: 'The newest first, with their recipients counted by status. Legacy campaigns are left out.',
    scopes: ['campaigns'],
    dashboard_role: 'admin',
    gates: ['campaigns'],
    allowlists: ['campaign_user'],
    effect: 'read',
    query: z.object({ cursor, limit: limit(100, 50) }),
    check: (app, caller, { query }) => readListPaging(app, caller, query),
    errors: ['invalid_cursor'],
    response: page,
    example: { response: example.page },
    handle: async (app, { caller, query, checked }) =>
      ok(new Json(await listCampaigns(app, caller, { limit: query.limit, paging: checked }))),
  }),
  route({
    name: 'get_campaign',
    method: 'GET',
    path: '/campaigns/{campaign_id}',
    summary: 'One campaign with its recipients',
    description:
      'Every recipient says why it has not moved (`blocked_by`) and when it will (`next_action_at`). `operations` are ' +
      'the ledger rows of the recipients shown; `next_cursor` leads to more recipients.',
    scopes: ['campaigns'],
    dashboard_role: 'admin',
    gates: ['campaigns'],
    allowlists: ['campaign_user'],
    effect: 'read',
    params,
    malformed: 'campaign_not_found',
    query: z.object({ cursor, limit: limit(1_000, 1_000) }),
    errors: ['campaign_not_found', 'invalid_cursor'],
    response: z
      .object({ campaign: campaignDetail, ...pageEnd })
      .meta({ id: 'CampaignAnswer', description: 'A campaign, and a page of its recipients.' }),
    example: { params: { campaign_id: example.campaign.id }, response: example.detail },
    handle: async (app, { caller, params: { campaign_id: id }, query }) =>
      ok(await describeCampaign(app, caller, { id, query })),
  }),
  route({
    name: 'create_campaign',
    method: 'POST',
    path: '/campaigns',
    summary: 'Creates a campaign',
    description:
      'Queues messages; the worker sends them, one at a time for each account, within `daily_quota_per_account`. ' +
      'With `recipients` (scope `campaigns`, `Idempotency-Key` required) it writes to chats that are there. With ' +
      '`contacts` (scope `send`, gate `extended`, `Idempotency-Key` optional) people are looked up just before their ' +
      'first message. One recipient that cannot be written to refuses the whole request.',
    done: 'The campaign was created.',
    ...mutation,
    // Optional with contacts, required with recipients. The document calls it optional, and the service enforces the rest.
    idempotency: 'optional',
    scopes: ['campaigns', 'send'],
    gates: ['campaigns', 'scoped_routing', 'campaign_mutation'],
    variant: ({ body }, gates) => {
      requireExtended(body, gates)
      return body.contacts
        ? { scopes: ['send'], idempotency: 'optional' }
        : { scopes: ['campaigns'], idempotency: 'required' }
    },
    workspace_limit: ({ config }) => ({ limit: config.campaign_create_minute, seconds: 60 }),
    body: campaignBody,
    body_limit: bodyMax,
    check: checkRequest,
    statuses: [201],
    errors: [
      'idempotency_key_required',
      'branching_disabled',
      'suppressed_recipient',
      'unresolved_personalization',
      'invalid_username',
      'unsupported_identifier',
      'account_unavailable',
      'account_not_ready',
      'chat_not_found',
      'suppression_unavailable',
    ],
    response: created,
    example: { body: example.body, response: example.created },
    require_resources: (app, { caller, checked }) => requireCreatable(app, caller, checked),
    handle: async (app, tx, { caller, checked, key }) => {
      const { id, warnings } = await createCampaign(app, tx, caller, { request: checked, key })
      return { status: 201, body: { campaign: await readCampaign(tx, id), queued: true, warnings } }
    },
  }),
  route({
    name: 'preview_campaign',
    method: 'POST',
    path: '/campaigns/preview',
    summary: 'What a campaign would do',
    description:
      "Takes creation's body, and stores and sends nothing. Whom creation would refuse is in `excluded`. The timetable " +
      'is played through beside everything else on these accounts, while nobody reads or answers.',
    scopes: ['campaigns', 'send'],
    dashboard_role: 'admin',
    gates: ['campaigns'],
    allowlists: ['campaign_user'],
    variant: ({ body }, gates) => {
      requireExtended(body, gates)
      return { scopes: body.contacts ? ['send'] : ['campaigns'] }
    },
    effect: 'read',
    query: z.object({ cursor, limit: limit(1_000, 1_000) }),
    body: campaignBody,
    body_limit: bodyMax,
    check: async (app, caller, { query, body }) => {
      const { workspace_id } = caller
      const scope = { workspace_id, operation: 'preview_campaign', filters: { body: JSON.stringify(body) } }
      const paging = readPaging(app.secrets, scope, query.cursor)
      return { request: await checkRequest(app, caller, { body }), paging }
    },
    errors: [
      'invalid_cursor',
      'branching_disabled',
      'unresolved_personalization',
      'invalid_username',
      'unsupported_identifier',
      'account_unavailable',
      'account_not_ready',
      'suppression_unavailable',
    ],
    response: forecastOut,
    example: { body: example.body, response: example.forecast },
    handle: async (app, { caller, query, checked: { request, paging }, left }) =>
      ok(await previewCampaign(app, caller, request, { limit: query.limit, paging, left: left?.() })),
  }),
  route({
    name: 'forecast_campaign',
    method: 'GET',
    path: '/campaigns/{campaign_id}/forecast',
    summary: 'What a campaign will do',
    description: 'The answer of a preview, for a campaign that is there: whoever still waits, from now on.',
    scopes: ['campaigns'],
    dashboard_role: 'admin',
    gates: ['campaigns'],
    allowlists: ['campaign_user'],
    effect: 'read',
    params,
    malformed: 'campaign_not_found',
    query: z.object({ cursor, limit: limit(1_000, 1_000) }),
    errors: ['campaign_not_found', 'invalid_cursor'],
    response: forecastOut,
    example: { params: { campaign_id: example.campaign.id }, response: example.forecast },
    handle: async (app, { caller, params: { campaign_id: id }, query, left }) => {
      const { workspace_id } = caller
      const scope = {
        workspace_id,
        operation: 'forecast_campaign',
        filters: { campaign_id: id },
      }
      const paging = readPaging(app.secrets, scope, query.cursor)
      const row = await requireCampaign(app.db, workspace_id, id)
      return ok(await forecastCampaign(app, row, { limit: query.limit, paging, left: left?.() }))
    },
  }),
  ...controlRoutes,
  route({
    name: 'verify_campaign',
    method: 'GET',
    path: '/campaigns/{campaign_id}/verify',
    summary: 'Whether the books of a campaign agree',
    description:
      'Counts are held against rows, messages against the ledger, and an account’s day against both.',
    scopes: ['campaigns'],
    dashboard_role: 'admin',
    gates: ['campaigns'],
    allowlists: ['campaign_user'],
    effect: 'read',
    params,
    malformed: 'campaign_not_found',
    errors: ['campaign_not_found'],
    response: verifiedOut,
    example: {
      params: { campaign_id: example.campaign.id },
      response: {
        ok: true,
        checks: [
          { name: 'totals', ok: true, detail: 'The totals equal the recipients, by account and status.' },
        ],
      },
    },
    handle: async (app, { caller, params: { campaign_id: id } }) => {
      await requireCampaign(app.db, caller.workspace_id, id)
      return ok(await app.db.snapshot((db) => verifyCampaign(db, id)))
    },
  }),
]

/** Fields that only the extended operations allow are invalid without that gate, whatever scopes the key has. */
function requireExtended(body: { readonly contacts?: unknown }, gates: ReadonlySet<string>): void {
  if (body.contacts === undefined || gates.has('extended')) return
  throw new ApiError('invalid_request', {
    detail: 'contacts is taken only where the extended operations are switched on.',
  })
}
