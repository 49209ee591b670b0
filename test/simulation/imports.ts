/** Campaigns as `POST /campaigns` makes them, for stories that erase people: whom the suppression list refuses is left out, as a caller does. */
import { campaignBody } from '../../src/capabilities/campaigns/campaign-body.ts'
import { type CampaignRequest, readRequest } from '../../src/capabilities/campaigns/campaign-request.ts'
import { createCampaign } from '../../src/capabilities/campaigns/create.ts'
import { findRecipients } from '../../src/capabilities/campaigns/recipients.ts'
import { ApiError } from '../../src/lib/errors.ts'
import { chatIdOf } from '../../src/lib/shapes.ts'
import type { NewCampaign } from '../harness/campaigns.ts'
import type { Place } from './place.ts'

interface Imported {
  /** Undefined: there was nobody left to write to. */
  readonly id: string | undefined
  /** Contacts that were taken, and those that the list refused, as `kind:value`. */
  readonly taken: readonly string[]
  readonly refused: readonly string[]
}

/** An error code where the service refuses the whole request. */
export async function importCampaign(place: Place, given: NewCampaign): Promise<Imported | string> {
  const { app, db, tenant, newId } = place
  const request = readRequest(campaignBody.parse(bodyOf(given)))
  try {
    const { found, excluded } = await findRecipients(app, tenant.workspace_id, request)
    const taken = found.map(({ contact }) => contact)
    const refused = excluded.flatMap((one) => (one.reason === 'suppressed' ? one.wanted.contact : []))
    if (found.length === 0) return { id: undefined, taken, refused }
    const left: CampaignRequest = { ...request, wanted: found }
    const own = { ...app, sources: { ...app.sources, newId } }
    const { id } = await db.transaction((tx) =>
      createCampaign(own, tx, tenant, { request: left, key: undefined }),
    )
    return { id, taken, refused }
  } catch (error) {
    if (error instanceof ApiError) return error.code
    throw error
  }
}

function bodyOf(given: NewCampaign): object {
  const { chats = [], contacts = [], pool, steps = [], scheduled_at } = given
  const whom =
    given.kind === 'contacts'
      ? {
          contacts: contacts.map(({ contact }) => ({ identifier: identifierOf(contact) })),
          account_pool: pool,
          stop_on_own_message: given.stop_on_own_message,
        }
      : {
          recipients: chats.map(({ account_id, person_id }) => ({
            account_id,
            chat_id: chatIdOf(`${person_id}`),
          })),
        }
  return {
    message_text: 'First message',
    ...whom,
    steps: steps.map(({ branch = 'no_reply', wait_hours, variants = ['Step'] }) => ({
      ...{ branch, wait_hours, variants },
    })),
    branching_enabled: given.branching,
    daily_quota_per_account: given.quota,
    max_followups: given.max_followups,
    ...(scheduled_at && { scheduled_at: scheduled_at.toISOString() }),
  }
}

/** As a caller writes it. */
function identifierOf(contact: string): string {
  const [kind = '', value = ''] = contact.split(':')
  if (kind === 'username') return `@${value}`
  return kind === 'phone' ? `+${value}` : value
}
