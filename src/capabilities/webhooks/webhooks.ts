/** The endpoints of a workspace: created, listed, changed, deleted. The secret is shown once and stored sealed. */
import { requireMaker } from '../../access/makers.ts'
import type { App } from '../../app.ts'
import type { Role } from '../../contract.ts'
import { lockSecretUse } from '../../db/secret-use.ts'
import { type Db, type Sql, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid, newId } from '../../lib/ids.ts'
import { newSecret, sealSecret } from '../../lib/webhook-signatures.ts'
import { type Actor, record } from '../audit/audit.ts'
import { memberName } from '../chats/chats.ts'
import { readAddress, type StoredAddress, storedAddressOf } from './address.ts'
import { readTarget } from './url-rules.ts'
import { allEvents, type StopReason } from './webhook-shapes.ts'

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
  /** Null: from before Parley stored this. */
  readonly created_by: { readonly user_id: string; readonly name: string } | null
  readonly stop_reason: StopReason | null
}

type WebhookRow = Omit<Webhook, 'url'> & StoredAddress

/** An older process activates a webhook without clearing the reason. */
const fieldsOf = (
  w: Sql,
) => sql`${w}.id, ${w}.url, ${w}.url_sealed, ${w}.events, ${w}.active, ${w}.created_at,
  ${w}.consecutive_failures, ${w}.disabled_at, case when not ${w}.active then ${w}.stop_reason end as stop_reason,
  (select json_build_object('user_id', u.id, 'name', ${memberName}) from users u where u.id = ${w}.made_by)
    as created_by`
const fields = fieldsOf(sql`webhooks`)

/** With its address. Empty if that was sealed with another secret. */
function shownWebhook(app: Pick<App, 'secrets'>, { url, url_sealed, ...rest }: WebhookRow): Webhook {
  return { ...rest, url: readAddress(app, rest.id, { url, url_sealed }) ?? '' }
}

/** Identifies an endpoint of a workspace. */
export interface WebhookKey {
  readonly workspace_id: string
  readonly webhook_id: string
}

interface NewWebhook {
  readonly workspace_id: string
  /** Who makes it. Undefined: no member does. */
  readonly user_id?: string
  /** The lowest role that they must still have. */
  readonly role?: Role | undefined
  readonly url: string
  readonly events?: readonly string[] | undefined
}

/** The endpoint gets events from now on: its position starts at the current end of the sequence. */
export async function createWebhook(
  app: App,
  tx: Tx,
  actor: Actor,
  { workspace_id, user_id, role, url, events = [allEvents] }: NewWebhook,
): Promise<{ webhook: Webhook; secret: string }> {
  requireUrl(app, url)
  // The lock makes endpoints of one workspace one after the other, so the count below is exact.
  await tx.one(sql`select id from workspaces where id = ${workspace_id} for no key update`) // guard: webhooks counted under a lock
  const { known } = await tx.one<{ known: number }>(sql`
    select count(*)::int as known from webhooks where workspace_id = ${workspace_id} and deleted_at is null`)
  if (known >= webhooksMax) throw new ApiError('webhook_limit_reached')
  const id = newId()
  const secret = newSecret()
  const address = await storedAddressOf(app, tx, { webhook_id: id, url })
  const webhook = await tx.one<WebhookRow>(sql`
    insert into webhooks (id, workspace_id, made_by, url, url_sealed, events, secret, position)
    values (${id}, ${workspace_id}, ${user_id ?? null}, ${address.url}, ${address.url_sealed}, ${events},
      ${sealSecret(app.secrets, id, secret)},
      coalesce((select sequence from event_sequences where workspace_id = ${workspace_id}), 0))
    returning ${fields}`)
  await record(app, tx, actor, {
    action: 'webhook.created',
    target: id,
    workspace_id,
    detail: { host: hostOf(url), events },
  })
  if (user_id !== undefined) await requireMaker(tx, { workspace_id, user_id, role }) // guard: webhooks of a member who leaves
  return { webhook: shownWebhook(app, webhook), secret }
}

export async function listWebhooks(app: App, workspace_id: string): Promise<Webhook[]> {
  const rows = await app.db.rows<WebhookRow>(sql`
    select ${fields} from webhooks where workspace_id = ${workspace_id} and deleted_at is null
    order by created_at, id`)
  return rows.map((row) => shownWebhook(app, row))
}

/** The endpoints of all workspaces that Parley made inactive after too many failures. */
export function listDisabled(db: Db): Promise<{ id: string; workspace_id: string }[]> {
  return db.rows(sql`
    select id, workspace_id from webhooks
    where disabled_at is not null and not active and deleted_at is null order by disabled_at, id`)
}

/** Webhooks that stopped with their maker, and that no member has activated or deleted since. */
export function listStopped(db: Db): Promise<{ id: string; workspace_id: string }[]> {
  return db.rows(sql`
    select id, workspace_id from webhooks
    where stop_reason is not null and not active and deleted_at is null order by id`)
}

/** Webhooks that stopped when their maker was disabled. */
export function listStoppedWith(db: Db, user_id: string): Promise<{ id: string; workspace_id: string }[]> {
  return db.rows(sql`
    select id, workspace_id from webhooks
    where made_by = ${user_id} and stop_reason = 'maker_disabled' and not active and deleted_at is null order by id`)
}

/** Identifies a member of a workspace. */
interface MakerKey {
  readonly workspace_id: string
  readonly user_id: string
}

/** What a member made, and what stops with them. */
export async function listWebhooksOf(
  app: Pick<App, 'secrets'>,
  db: Db,
  { workspace_id, user_id }: MakerKey,
): Promise<Webhook[]> {
  const rows = await db.rows<WebhookRow>(sql`
    select ${fields} from webhooks
    where workspace_id = ${workspace_id} and made_by = ${user_id} and deleted_at is null order by created_at, id`)
  return rows.map((row) => shownWebhook(app, row))
}

/** The role that webhooks need at the API and at the dashboard. */
export const webhookRole: Role = 'admin'

/** Stops what sends to the address of a member who may have no webhooks any more. Returns their ids. */
export async function stopWebhooksOf(tx: Tx, { workspace_id, user_id }: MakerKey): Promise<string[]> {
  const rows = await tx.rows<{ id: string }>(sql`
    with stopped as materialized (
      select id from webhooks where workspace_id = ${workspace_id} and made_by = ${user_id} and active
      order by id for no key update)
    update webhooks w set active = false, stop_reason = 'maker_removed' from stopped where w.id = stopped.id
    returning w.id`)
  return rows.map(({ id }) => id)
}

/** Gives webhooks of one member to another. Skips what is not the first one's. */
export async function takeOverWebhooks(
  tx: Tx,
  { workspace_id, user_id, to, ids }: MakerKey & { to: string; ids: readonly string[] },
): Promise<string[]> {
  const rows = await tx.rows<{ id: string }>(sql`
    with taken as materialized (
      select id from webhooks
      where workspace_id = ${workspace_id} and made_by = ${user_id} -- guard: only webhooks of the member are taken over
        and id = any(${ids}::uuid[]) and deleted_at is null
      order by id for no key update)
    update webhooks w set made_by = ${to} from taken where w.id = taken.id returning w.id`)
  return rows.map(({ id }) => id)
}

interface WebhookChange {
  readonly url?: string | undefined
  readonly events?: readonly string[] | undefined
  readonly active?: boolean | undefined
}

/** Whether webhook `w` has stopped with its maker, or they no longer belong to the workspace. */
const isOrphaned = sql`w.stop_reason is not null or w.made_by is not null and not exists (
  select from memberships m join users u on u.id = m.user_id
  where m.workspace_id = w.workspace_id and m.user_id = w.made_by and m.ended_at is null and u.disabled_at is null)`

/**
 * Activating it, or a new address, resets the failures and closes the breaker. A user who sets the address becomes its maker,
 * because it ends with the person who gets the messages; so does one who activates it after its maker has left.
 */
export async function updateWebhook(
  app: App,
  tx: Tx,
  actor: Actor,
  {
    workspace_id,
    webhook_id,
    user_id,
    role,
    url,
    events,
    active,
  }: WebhookKey & WebhookChange & { user_id: string; role?: Role | undefined },
): Promise<Webhook> {
  if (url === undefined && events === undefined && active === undefined) {
    throw new ApiError('invalid_request', {
      detail: 'Give at least one field to change: url, events or active.',
    })
  }
  if (url !== undefined) requireUrl(app, url)
  const before = await lockWebhook(tx, { workspace_id, webhook_id })
  const moved = url !== undefined && url !== readAddress(app, before.id, before)
  const address = moved ? await storedAddressOf(app, tx, { webhook_id: before.id, url }) : before
  const anew = moved || active === true
  const takenOver =
    moved || // guard: a new address has a new maker
    (active === true && before.orphaned)
  const webhook = await tx.one<WebhookRow>(sql`
    update webhooks w set
      url = ${address.url},
      url_sealed = ${address.url_sealed},
      url_no = url_no + ${moved ? 1 : 0},
      events = coalesce(${events ?? null}::text[], events),
      active = coalesce(${active ?? null}, active),
      made_by = case when ${takenOver} then ${user_id}::uuid else made_by end,
      stop_reason = case when ${active ?? null} then null else stop_reason end,
      consecutive_failures = case when ${anew} then 0 else consecutive_failures end,
      probe_at = case when ${anew} then null else probe_at end,
      probe_gap_seconds = case when ${anew} then null else probe_gap_seconds end,
      disabled_at = case when ${active ?? null} then null else disabled_at end
    where id = ${before.id} returning ${fieldsOf(sql`w`)}`)
  await requireMaker(tx, { workspace_id, user_id, role }) // guard: a webhook that a leaving member redirects
  await record(app, tx, actor, {
    action: 'webhook.updated',
    target: webhook_id,
    workspace_id,
    detail: { ...(url !== undefined && { host: hostOf(url) }), ...(events && { events }), active },
  })
  return shownWebhook(app, webhook)
}

interface LockedWebhook extends StoredAddress {
  readonly id: string
  readonly orphaned: boolean
}

async function lockWebhook(tx: Tx, { workspace_id, webhook_id }: WebhookKey): Promise<LockedWebhook> {
  const webhook =
    isUuid(webhook_id) &&
    (await tx.maybe<LockedWebhook>(sql`
      select w.id, w.url, w.url_sealed, ${isOrphaned} as orphaned from webhooks w
      where w.id = ${webhook_id} and w.workspace_id = ${workspace_id} and w.deleted_at is null for no key update`))
  if (!webhook) throw new ApiError('webhook_not_found')
  return webhook
}

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
  await lockSecretUse(tx, app.secrets) // guard: a secret of a webhook is sealed with the secret in use
  const webhook =
    isUuid(webhook_id) &&
    (await tx.maybe<WebhookRow>(sql`
      update webhooks set previous_secret = secret,
        previous_until = domain_now() + make_interval(hours => ${rotationHours}),
        secret = ${sealSecret(app.secrets, webhook_id, secret)}
      where id = ${webhook_id} and workspace_id = ${workspace_id} and deleted_at is null
      returning ${fields}`))
  if (!webhook) throw new ApiError('webhook_not_found')
  await record(app, tx, actor, { action: 'webhook.secret_rotated', target: webhook_id, workspace_id })
  return { webhook: shownWebhook(app, webhook), secret }
}

export async function requireWebhook(
  db: Db,
  { workspace_id, webhook_id }: WebhookKey,
): Promise<{ id: string }> {
  const webhook =
    isUuid(webhook_id) &&
    (await db.maybe<{ id: string }>(sql`
      select id from webhooks
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

/** What receivers answered to deliveries of these events: an answer may repeat what it got. */
export async function eraseResponses(
  tx: Tx,
  workspace_id: string,
  sequences: readonly string[],
): Promise<void> {
  if (sequences.length === 0) return
  await tx.run(sql`
    update webhook_attempts a set response = null
    from webhooks w join webhook_deliveries d on d.webhook_id = w.id and d.sequence = any(${sequences}::bigint[])
    where w.workspace_id = ${workspace_id} and a.delivery_id = d.id and a.response is not null`)
}
