/** Pausing, resuming and cancelling over HTTP. */
import { z } from 'zod'
import type { Caller } from '../../contract.ts'
import type { Tx } from '../../db/sql.ts'
import { ok, type Route, route } from '../../route.ts'
import { controlledOut } from './campaign-shapes.ts'
import { type Control, controlCampaign, reachOf, requireControl } from './control.ts'
import { example } from './examples.ts'

/**
 * Accepts a UUID of any version: one that was never issued here is unknown, not malformed. Idempotency keys and cursors are
 * bound to the path, so the id is lower-cased: capitals mean the same campaign.
 */
export const params = z.strictObject({
  campaign_id: z.guid().toLowerCase().meta({ description: 'Id of the campaign.' }), // guard: one spelling of a campaign id
})

/** What every change of a campaign requires; creating and cancelling also require `scoped_routing`. */
export const mutation = {
  scopes: ['campaigns'],
  role: 'admin',
  gates: ['campaigns', 'campaign_mutation'],
  allowlists: ['campaign_user', 'campaign_workspace'],
  idempotency: 'required',
  collision: 409,
  effect: 'local',
  touches: ['campaigns'],
} as const

const sequenceTexts = {
  pause:
    'Stops every message that has not crossed the submission boundary. Only campaigns with steps can be paused.',
  resume: 'Continues a paused campaign. Its status becomes `scheduled`, `sending` or `queued`.',
}

/** Pause and resume differ only in words. */
function sequenceRoute(control: 'pause' | 'resume'): Route {
  return route({
    name: `${control}_campaign`,
    method: 'POST',
    path: `/campaigns/{campaign_id}/${control}`,
    summary: control === 'pause' ? 'Pause a campaign' : 'Resume a campaign',
    description: sequenceTexts[control],
    done: control === 'pause' ? 'The campaign was paused.' : 'The campaign was resumed.',
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
      ok(await change(tx, caller, { id, control })),
  })
}

async function change(tx: Tx, caller: Caller, wanted: { id: string; control: Control }) {
  const { campaign, changed } = await controlCampaign(tx, reachOf(caller), wanted)
  return { campaign, changed }
}

export const controlRoutes: readonly Route[] = [
  sequenceRoute('pause'),
  sequenceRoute('resume'),
  route({
    name: 'cancel_campaign',
    method: 'POST',
    path: '/campaigns/{campaign_id}/cancel',
    summary: 'Cancel a campaign',
    description:
      'Cancels permanently. A message that has crossed the submission boundary may still arrive; no later message is sent.',
    done: 'The campaign was cancelled.',
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
    require_resources: ({ db }, { caller, params: { campaign_id: id } }) =>
      requireControl(db, reachOf(caller), { id, control: 'cancel' }),
    handle: async (_, tx, { caller, params: { campaign_id: id } }) =>
      ok(await change(tx, caller, { id, control: 'cancel' })),
  }),
]
