/** An endpoint's deliveries, sent or not, and requests to send them again. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { type Db, type Sql, sql, type Tx } from '../../db/sql.ts'
import { type Paging, readPaging } from '../../lib/cursor.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid, newId } from '../../lib/ids.ts'
import type { Traceparent } from '../../lib/traceparent.ts'
import { textOfEvent } from '../events/events.ts'
import type { DueDelivery } from './endpoints.ts'
import type { deliveryStates } from './webhook-shapes.ts'
import { requireWebhook, type WebhookKey } from './webhooks.ts'

type State = (typeof deliveryStates)[number]

/** How many deliveries of one endpoint `resend-failed` queues at a time. */
const resendMax = 10_000

interface Delivery {
  readonly id: string
  readonly event_id: string
  readonly type: string
  readonly sequence: number | null
  readonly state: State
  readonly attempts: number
  readonly next_attempt_at: Date | null
  readonly created_at: Date
  readonly delivered_at: Date | null
  readonly last: { at: Date; status: number | null; ms: number; error: string | null } | null
}

interface DeliveryRow extends Omit<Delivery, 'last'> {
  readonly last_at: Date | null
  readonly last_status: number | null
  readonly last_ms: number | null
  readonly last_error: string | null
}

const columns = sql`d.id, d.event_id, d.type, d.sequence::float8 as sequence, d.state, d.attempts,
  d.due_at as next_attempt_at, d.created_at, d.delivered_at, d.last_at, d.last_status, d.last_ms, d.last_error`

function deliveryOf({ last_at, last_status, last_ms, last_error, ...rest }: DeliveryRow): Delivery {
  const last = last_at && { at: last_at, status: last_status, ms: last_ms ?? 0, error: last_error }
  return { ...rest, last }
}

interface DeliveryQuery {
  readonly state?: State | undefined
  readonly limit: number
  readonly paging: Paging
}

/** A cursor is valid only for its endpoint and state. */
export function readDeliveryPaging(
  { secrets }: App,
  { workspace_id }: Pick<Caller, 'workspace_id'>,
  {
    webhook_id,
    state,
    cursor,
  }: { webhook_id: string; state?: State | undefined; cursor?: string | undefined },
): Paging {
  const filters = { webhook_id, state: state ?? null }
  return readPaging(secrets, { workspace_id, operation: 'list_webhook_deliveries', filters }, cursor)
}

export async function listDeliveries(
  db: Db,
  key: WebhookKey,
  { state, limit, paging }: DeliveryQuery,
): Promise<{ deliveries: Delivery[]; next_cursor: string | null; has_more: boolean }> {
  await requireWebhook(db, key)
  const rows = await db.rows<DeliveryRow & { place: string }>(
    newestFirst(key, { state, limit: limit + 1, paging }),
  )
  const has_more = rows.length > limit
  const page = rows.slice(0, limit).map(({ place, ...row }) => ({ place, delivery: deliveryOf(row) }))
  const last = page.at(-1)
  return {
    deliveries: page.map(({ delivery }) => delivery),
    next_cursor:
      has_more && last ? paging.next([last.place, last.delivery.sequence ?? 0, last.delivery.id]) : null,
    has_more,
  }
}

/** Reads one index range per state, so that a page costs the same however many deliveries there are. */
function newestFirst({ webhook_id }: WebhookKey, { state, limit, paging: { after } }: DeliveryQuery): Sql {
  const [at, sequence, id] = after ?? ['infinity', 0, newest]
  const states: readonly State[] = state ? [state] : ['pending', 'delivered', 'failed']
  return sql`
    select ${columns}, d.created_at::text as place
    from unnest(${states}::text[]) as wanted (state) cross join lateral (
      select * from webhook_deliveries d
      where d.webhook_id = ${webhook_id} and d.state = wanted.state
        and (d.created_at, coalesce(d.sequence, 0), d.id) < (${at}::timestamptz, ${sequence}::bigint, ${id}::uuid)
      order by d.created_at desc, coalesce(d.sequence, 0) desc, d.id desc limit ${limit}) d
    order by d.created_at desc, coalesce(d.sequence, 0) desc, d.id desc limit ${limit}`
}

const newest = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

interface AttemptRow {
  readonly n: number
  readonly at: Date
  readonly status: number | null
  readonly ms: number
  readonly error: string | null
  readonly response: string | null
}

interface DeliveryKey extends WebhookKey {
  readonly delivery_id: string
}

interface DetailedRow extends DeliveryRow, WithBody {}

export async function readDelivery(
  db: Db,
  key: DeliveryKey,
): Promise<Delivery & { body: string; tries: AttemptRow[] }> {
  await requireWebhook(db, key)
  const { workspace_id, webhook_id, delivery_id } = key
  const found =
    isUuid(delivery_id) &&
    (await db.maybe<DetailedRow>(sql`
      select ${columns}, d.workspace_id, d.body, e.occurred_at, e.data::text as data
      from webhook_deliveries d
      left join events e on e.workspace_id = d.workspace_id and e.sequence = d.sequence
      where d.id = ${delivery_id} and d.webhook_id = ${webhook_id} and d.workspace_id = ${workspace_id}`))
  if (!found) throw missing()
  const { workspace_id: _, body, occurred_at, data, ...row } = found
  const delivery = deliveryOf(row)
  const tries = await db.rows<AttemptRow>(sql`
    select n, at, status, ms, error, response from webhook_attempts where delivery_id = ${delivery.id} order by n`)
  const { state, attempts, last } = delivery
  const success = state === 'delivered' && last ? [{ n: attempts, ...last, response: null }] : []
  return { ...delivery, body: bodyOf(found), tries: [...tries, ...success] }
}

type WithBody = Omit<DueDelivery, 'id' | 'attempts' | 'series_attempts'>

/** The body to send: the event's text, or a test's own body. Empty once the event has expired. */
export function bodyOf({ event_id: id, body, occurred_at, data, ...rest }: WithBody): string {
  if (body !== null) return body
  return data === null || occurred_at === null ? '' : textOfEvent({ ...rest, id, occurred_at, data })
}

/** Starts a new series of attempts, due at once. For an inactive endpoint: once it is active. */
export async function resendDelivery(tx: Tx, key: DeliveryKey): Promise<Delivery> {
  await requireWebhook(tx, key)
  const { workspace_id, webhook_id, delivery_id } = key
  const row =
    isUuid(delivery_id) &&
    (await tx.maybe<DeliveryRow>(sql`
      update webhook_deliveries d set ${queuedAnew}
      where d.id = ${delivery_id} and d.webhook_id = ${webhook_id} and d.workspace_id = ${workspace_id}
      returning ${columns}`))
  if (!row) throw missing()
  return deliveryOf(row)
}

const queuedAnew = sql`state = 'pending', due_at = domain_now(), series_attempts = 0, delivered_at = null`

/** Throws on a time from which no delivery can be. */
export async function requireSince({ settings }: App, since: Date): Promise<void> {
  const now = (await settings.current()).now()
  if (since > now) throw new ApiError('invalid_request', { detail: 'since must not be in the future.' })
  if (since.getTime() < now.getTime() - retentionMs) {
    throw new ApiError('invalid_request', { detail: 'since must be within the last 30 days.' })
  }
}

const retentionMs = 30 * 24 * 3_600_000

/** Queues failed deliveries of events since then. Not tests: the person who asked for a test is watching it. */
export async function resendFailed(tx: Tx, key: WebhookKey, since: Date): Promise<number> {
  const { id: webhook_id } = await requireWebhook(tx, key)
  return tx.run(sql`
    update webhook_deliveries d set ${queuedAnew}
    where d.id in (
      select id from webhook_deliveries
      where webhook_id = ${webhook_id} and state = 'failed' and created_at >= ${since} and sequence is not null
      order by created_at, id limit ${resendMax})`)
}

/** Queues one attempt of an event that only this endpoint gets, even while it is inactive. */
export async function queueTest(
  tx: Tx,
  { traceparent = null, ...key }: WebhookKey & { traceparent?: Traceparent | null | undefined },
): Promise<Delivery> {
  const { id: webhook_id } = await requireWebhook(tx, key)
  const { workspace_id } = key
  const { now } = await tx.one<{ now: Date }>(sql`select date_trunc('milliseconds', domain_now()) as now`)
  const event_id = `evt_${newId().replaceAll('-', '')}`
  const event = {
    id: event_id,
    type: testType,
    workspace_id,
    sequence: null,
    occurred_at: now,
    created_at: now,
  }
  const body = textOfEvent({ ...event, data: JSON.stringify({ webhook_id }) })
  const row = await tx.one<DeliveryRow>(sql`
    insert into webhook_deliveries as d (id, workspace_id, webhook_id, event_id, type, body, due_at, created_at,
      traceparent)
    values (${newId()}, ${workspace_id}, ${webhook_id}, ${event_id}, ${testType}, ${body}, domain_now(), ${now},
      ${traceparent})
    returning ${columns}`)
  return deliveryOf(row)
}

const testType = 'webhook.test'

function missing(): ApiError {
  return new ApiError('not_found', { detail: 'This webhook has no such delivery.' })
}
