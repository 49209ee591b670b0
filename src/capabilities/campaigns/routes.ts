import { z } from 'zod'
import { ApiError } from '../../lib/errors.ts'
import { cursor, limit } from '../../lib/shapes.ts'
import { pageEnd, said, uuid } from '../../lib/wire.ts'
import { Json, ok, type Route, route } from '../../route.ts'
import { campaignBody } from './campaign-body.ts'
import {
  describeCampaign,
  listCampaigns,
  readCampaign,
  readListPaging,
  requireCampaign,
} from './campaign-pages.ts'
import { campaignDetail, campaignOut, controlledOut, verifiedOut } from './campaign-shapes.ts'
import { type Control, controlCampaign } from './control.ts'
import { checkRequest, createCampaign } from './create.ts'
import { example } from './examples.ts'
import { verifyCampaign } from './verify.ts'

const campaign_id = uuid('The campaign.')
const params = z.strictObject({ campaign_id })

/** 8 MiB: a legal campaign of 100 recipients can have 1.3 MB, 5,000 contacts more. */
const bodyMax = 8 * 1024 * 1024

const created = z
  .object({
    campaign: campaignOut,
    queued: z.literal(true).meta({ description: 'Always true: the worker sends, not this request.' }),
    warnings: z
      .array(z.enum(['steps_truncated', 'scheduled_at_adjusted', 'already_in_campaign']))
      .meta({ description: 'What may not be as it was meant.' }),
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

const mutation = {
  scopes: ['campaigns'],
  gates: ['campaigns', 'campaign_mutation'],
  allowlists: ['campaign_user', 'campaign_workspace'],
  idempotency: 'required',
  collision: 409,
  effect: 'local',
} as const

const sequenceTexts = {
  pause:
    'Holds every message that has not crossed the submission boundary. Only campaigns with steps can be paused.',
  resume: 'Lets a paused campaign go on: as scheduled, as sending, or as queued.',
}

/** Pause and resume differ in a word. */
function sequenceRoute(control: 'pause' | 'resume'): Route {
  return route({
    name: `${control}_campaign`,
    method: 'POST',
    path: `/campaigns/{campaign_id}/${control}`,
    summary: control === 'pause' ? 'Pauses a campaign' : 'Resumes a paused campaign',
    description: sequenceTexts[control],
    ...mutation,
    params,
    malformed: 'campaign_not_found',
    errors: [
      'campaign_not_found',
      'not_a_sequence',
      control === 'pause' ? 'invalid_sequence_status' : 'campaign_not_paused',
    ],
    response: controlledOut,
    example: {
      params: { campaign_id: example.campaign.id },
      response: {
        campaign: {
          id: example.campaign.id,
          status: control === 'pause' ? 'paused' : 'sending',
          cancelled_at: null,
        },
        changed: true,
      },
    },
    handle: async (_, tx, { caller, params: { campaign_id: id } }) =>
      ok(await changeOwn(tx, caller, { id, control })),
  })
}

/** Another user's campaign is none to this caller. */
async function changeOwn(
  tx: Parameters<typeof controlCampaign>[0],
  { workspace_id, user_id }: { workspace_id: string; user_id: string },
  wanted: { id: string; control: Control },
) {
  const { campaign, changed } = await controlCampaign(tx, { workspace_id, user_id }, wanted)
  return { campaign, changed }
}

export const routes: readonly Route[] = [
  route({
    name: 'list_campaigns',
    method: 'GET',
    path: '/campaigns',
    summary: 'The campaigns of the workspace',
    description: 'The newest first, with their recipients counted by status. Legacy campaigns are left out.',
    scopes: ['campaigns'],
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
    ...mutation,
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
    handle: async (app, tx, { caller, checked, key }) => {
      const { id, warnings } = await createCampaign(app, tx, caller, { request: checked, key })
      return { status: 201, body: { campaign: await readCampaign(tx, id), queued: true, warnings } }
    },
  }),
  sequenceRoute('pause'),
  sequenceRoute('resume'),
  route({
    name: 'cancel_campaign',
    method: 'POST',
    path: '/campaigns/{campaign_id}/cancel',
    summary: 'Cancels a campaign',
    description:
      'For good. A message that has crossed the submission boundary may still arrive; nothing after it does.',
    ...mutation,
    gates: ['campaigns', 'scoped_routing', 'campaign_mutation'],
    workspace_limit: ({ config }) => ({ limit: config.campaign_cancel_minute, seconds: 60 }),
    params,
    errors: ['campaign_not_found', 'campaign_completed'],
    response: controlledOut,
    example: {
      params: { campaign_id: example.campaign.id },
      response: {
        campaign: { id: example.campaign.id, status: 'cancelled', cancelled_at: '2026-11-15T10:00:00.000Z' },
        changed: true,
      },
    },
    handle: async (_, tx, { caller, params: { campaign_id: id } }) =>
      ok(await changeOwn(tx, caller, { id, control: 'cancel' })),
  }),
  route({
    name: 'verify_campaign',
    method: 'GET',
    path: '/campaigns/{campaign_id}/verify',
    summary: 'Whether the books of a campaign agree',
    description:
      'Counts are held against rows, messages against the ledger, and an account’s day against both.',
    scopes: ['campaigns'],
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

/** What only the extended operations allow is invalid without them, whatever scopes the key has. */
function requireExtended(body: { readonly contacts?: unknown }, gates: ReadonlySet<string>): void {
  if (body.contacts === undefined || gates.has('extended')) return
  throw new ApiError('invalid_request', {
    detail: 'contacts is taken only where the extended operations are switched on.',
  })
}
