/** The endpoints of a workspace: created, listed, changed, deleted. The secret is shown once and stored sealed. */
import type { App } from '../../app.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid, newId } from '../../lib/ids.ts'
import { newSecret, sealSecret } from '../../lib/webhook-signatures.ts'
import { type Actor, record } from '../audit/audit.ts'
import { readTarget } from './url-rules.ts'
import { allEvents } from './webhook-shapes.ts'

export { type CallOutcome, HttpCaller, isSuccess } from './call.ts'
export { nextDelay } from './schedule.ts'
export { readTarget } from './url-rules.ts'

const webhooksMax = 10
/** How long the previous secret also signs after a rotation. */
const rotationHours = 24

interface Webhook {
  readonly id: string
  readonly url: string
  readonly events: readonly string[]
  readonly active: boolean
  readonly created_at: Date
  readonly consecutive_failures: number
  readonly disabled_at: Date | null
}

const fields = sql`id, url, events, active, created_at, consecutive_failures, disabled_at`

/** Identifies an endpoint of a workspace. */
export interface WebhookKey {
  readonly workspace_id: string
  readonly webhook_id: string
}

interface NewWebhook {
  readonly workspace_id: string
  readonly url: string
  readonly events?: readonly string[] | undefined
}

/** The endpoint gets events from now on: its position starts at the current end of the sequence. */
export async function createWebhook(
  app: App,
  tx: Tx,
  actor: Actor,
  { workspace_id, url, events = [allEvents] }: NewWebhook,
): Promise<{ webhook: Webhook; secret: string }> {
  requireUrl(app, url)
  // The lock makes endpoints of one workspace one after the other, so the count below is exact.
  await tx.one(sql`select id from workspaces where id = ${workspace_id} for no key update`) // guard: webhooks counted under a lock
  const { known } = await tx.one<{ known: number }>(sql`
    select count(*)::int as known from webhooks where workspace_id = ${workspace_id} and deleted_at is null`)
  if (known >= webhooksMax) throw new ApiError('webhook_limit_reached')
  const id = newId()
  const secret = newSecret()
  const webhook = await tx.one<Webhook>(sql`
    insert into webhooks (id, workspace_id, url, events, secret, position)
    values (${id}, ${workspace_id}, ${url}, ${events}, ${sealSecret(app.secrets, id, secret)},
      coalesce((select sequence from event_sequences where workspace_id = ${workspace_id}), 0))
    returning ${fields}`)
  await record(app, tx, actor, {
    action: 'webhook.created',
    target: id,
    workspace_id,
    detail: { host: hostOf(url), events },
  })
  return { webhook, secret }
}

export function listWebhooks(db: Db, workspace_id: string): Promise<Webhook[]> {
  return db.rows<Webhook>(sql`
    select ${fields} from webhooks where workspace_id = ${workspace_id} and deleted_at is null
    order by created_at, id`)
}

/** The endpoints of all workspaces that Parley made inactive after too many failures. */
export function listDisabled(db: Db): Promise<{ id: string; workspace_id: string }[]> {
  return db.rows(sql`
    select id, workspace_id from webhooks
    where disabled_at is not null and not active and deleted_at is null order by disabled_at, id`)
}

interface WebhookChange {
  readonly url?: string | undefined
  readonly events?: readonly string[] | undefined
  readonly active?: boolean | undefined
}

/** Activating it, or a new address, resets the failures and closes the breaker. */
export async function updateWebhook(
  app: App,
  tx: Tx,
  actor: Actor,
  { workspace_id, webhook_id, url, events, active }: WebhookKey & WebhookChange,
): Promise<Webhook> {
  if (url === undefined && events === undefined && active === undefined) {
    throw new ApiError('invalid_request', {
      detail: 'Give at least one field to change: url, events or active.',
    })
  }
  if (url !== undefined) requireUrl(app, url)
  const webhook =
    isUuid(webhook_id) &&
    (await tx.maybe<Webhook>(sql`
      with before as (
        select id, coalesce(${active ?? null}, false) or url is distinct from coalesce(${url ?? null}, url) as anew
        from webhooks
        where id = ${webhook_id} and workspace_id = ${workspace_id} and deleted_at is null for no key update)
      update webhooks w set
        url = coalesce(${url ?? null}, url),
        events = coalesce(${events ?? null}::text[], events),
        active = coalesce(${active ?? null}, active),
        consecutive_failures = case when b.anew then 0 else consecutive_failures end,
        probe_at = case when b.anew then null else probe_at end,
        probe_gap_seconds = case when b.anew then null else probe_gap_seconds end,
        disabled_at = case when ${active ?? null} then null else disabled_at end
      from before b where w.id = b.id
      returning ${qualified}`))
  if (!webhook) throw new ApiError('webhook_not_found')
  await record(app, tx, actor, {
    action: 'webhook.updated',
    target: webhook_id,
    workspace_id,
    detail: { ...(url !== undefined && { host: hostOf(url) }), ...(events && { events }), active },
  })
  return webhook
}

const qualified = sql`w.id, w.url, w.events, w.active, w.created_at, w.consecutive_failures, w.disabled_at`

/** Deletes the endpoint immediately; the loop `forget-deliveries` removes its deliveries in batches. */
export async function deleteWebhook(
  app: App,
  tx: Tx,
  actor: Actor,
  { workspace_id, webhook_id }: WebhookKey,
): Promise<void> {
  const gone =
    isUuid(webhook_id) &&
    (await tx.run(sql`
      update webhooks set deleted_at = domain_now(), active = false
      where id = ${webhook_id} and workspace_id = ${workspace_id} and deleted_at is null`))
  if (!gone) throw new ApiError('webhook_not_found')
  await record(app, tx, actor, { action: 'webhook.deleted', target: webhook_id, workspace_id })
}

/** Makes a new secret. The previous one also signs for a day, so that receivers can switch without a gap. */
export async function rotateSecret(
  app: App,
  tx: Tx,
  actor: Actor,
  { workspace_id, webhook_id }: WebhookKey,
): Promise<{ webhook: Webhook; secret: string }> {
  const secret = newSecret()
  const webhook =
    isUuid(webhook_id) &&
    (await tx.maybe<Webhook>(sql`
      update webhooks set previous_secret = secret,
        previous_until = domain_now() + make_interval(hours => ${rotationHours}),
        secret = ${sealSecret(app.secrets, webhook_id, secret)}
      where id = ${webhook_id} and workspace_id = ${workspace_id} and deleted_at is null
      returning ${fields}`))
  if (!webhook) throw new ApiError('webhook_not_found')
  await record(app, tx, actor, { action: 'webhook.secret_rotated', target: webhook_id, workspace_id })
  return { webhook, secret }
}

export async function requireWebhook(db: Db, { workspace_id, webhook_id }: WebhookKey): Promise<Webhook> {
  const webhook =
    isUuid(webhook_id) &&
    (await db.maybe<Webhook>(sql`
      select ${fields} from webhooks
      where id = ${webhook_id} and workspace_id = ${workspace_id} and deleted_at is null`))
  if (!webhook) throw new ApiError('webhook_not_found')
  return webhook
}

function requireUrl(app: App, url: string): void {
  const target = readTarget(url, app.config.webhook_allow)
  if (typeof target === 'string') throw new ApiError('invalid_request', { detail: `url ${target}.` })
}

/** The part of a URL for the audit log: paths and queries may contain the receiver's tokens. */
function hostOf(url: string): string {
  return new URL(url).host
}
