import { z } from 'zod'
import { readPaging } from '../../lib/cursor.ts'
import { ApiError } from '../../lib/errors.ts'
import { fairQueue } from '../../lib/queue.ts'
import { sha256Beside } from '../../lib/secrets.ts'
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

/** Creating 5,000 recipients takes a connection for a second, and half of that this process. */
const inTurn = fairQueue({
  atOnceMax: 2,
  waitingMax: 100,
  waitMsMax: 20_000,
  refuse: () =>
    new ApiError('rate_limited', {
      detail: 'Too many campaigns are being created right now. Retry in a few seconds.',
      retry_after: 5,
    }),
})

const created = z
  .object({
    campaign: campaignOut,
    queued: z
      .literal(true)
      .meta({ description: 'Always true: the worker sends the messages after this request.' }),
    warnings: z.array(z.enum(warnings)).meta({ description: 'Warnings about the campaign.' }),
  })
  .meta({ id: 'CreatedCampaign', description: 'A queued campaign.' })

const page = z
  .object({
    campaigns: z.array(campaignOut).meta({ description: 'Campaigns, newest first.' }),
    coverage: z
      .object({
        scope: z.literal('internal').meta({ description: 'The list has campaigns created in Parley only.' }),
        legacy_excluded: z.literal(true).meta({ description: 'Campaigns of other systems are not listed.' }),
        limitations: z.array(said('One limit.')).meta({ description: 'Limits of the list, as sentences.' }),
      })
      .meta({ id: 'CampaignCoverage', description: 'What the list covers.' }),
    ...pageEnd,
  })
  .meta({ id: 'CampaignPage', description: 'A page of campaigns.' })

const reading = {
  scopes: ['campaigns'],
  role: 'admin',
  gates: ['campaigns'],
  allowlists: ['campaign_user'],
} as const

export const routes: readonly Route[] = [
  route({
    name: 'list_campaigns',
    method: 'GET',
    path: '/campaigns',
    summary: 'List campaigns',
    description:
      'Returns the campaigns of the workspace, newest first, with their recipients counted by status. Legacy campaigns are not listed.',
    ...reading,
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
    summary: 'Get a campaign',
    description:
      'Returns the campaign and a page of its recipients. `blocked_by` says why a recipient waits, `next_action_at` when it continues. `operations` are ' +
      'the ledger rows of the recipients on this page; `next_cursor` leads to more recipients.',
    ...reading,
    effect: 'read',
    costly: true,
    params,
    malformed: 'campaign_not_found',
    query: z.object({ cursor, limit: limit(1_000, 1_000) }),
    errors: ['campaign_not_found', 'invalid_cursor'],
    response: z
      .object({ campaign: campaignDetail, ...pageEnd })
      .meta({ id: 'CampaignWithRecipients', description: 'A campaign and a page of its recipients.' }),
    example: { params: { campaign_id: example.campaign.id }, response: example.detail },
    handle: async (app, { caller, params: { campaign_id: id }, query }) =>
      ok(await describeCampaign(app, caller, { id, query })),
  }),
  route({
    name: 'create_campaign',
    method: 'POST',
    path: '/campaigns',
    summary: 'Create a campaign',
    description:
      'Queues messages; the worker sends them, one at a time for each account, within `daily_quota_per_account`. ' +
      'With `recipients` (scope `campaigns`, `Idempotency-Key` required) it writes to existing chats. With ' +
      '`contacts` (scope `send`, gate `extended`, `Idempotency-Key` optional) the worker looks people up just before their ' +
      'first message. If one recipient cannot receive messages, the whole request is refused.',
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
    in_turn: inTurn, // guard: creations of a workspace take turns
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
    summary: 'Preview a campaign',
    description:
      'Takes the body of POST /campaigns, and stores and sends nothing. `excluded` lists the recipients that creation would refuse. The timetable ' +
      'includes everything else on these accounts, and assumes that no recipient reads or replies.',
    scopes: ['campaigns', 'send'],
    role: 'admin',
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
      // Signed as a hash: the page's cursor would sign megabytes, on the thread that serves requests.
      const hash = await sha256Beside(JSON.stringify(body))
      const scope = {
        ...{ workspace_id, operation: 'preview_campaign' },
        filters: { body: hash.toString('base64url') },
      }
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
    summary: 'Forecast a campaign',
    description:
      'Returns what a preview returns, for the remaining recipients of an existing campaign, from now on.',
    ...reading,
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
    summary: 'Verify a campaign',
    description:
      'Compares the counts with the rows, the messages with the ledger, and the daily quota of each account with both.',
    ...reading,
    effect: 'read',
    costly: true,
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
    detail: 'contacts needs the gate extended, which is closed on this instance.',
  })
}
