/** Asking for an approval. Repeating a request returns the first one. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { newId } from '../../lib/ids.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import { toWellFormed } from '../../lib/text.ts'
import type { Reply } from '../../route.ts'
import { record } from '../audit/audit.ts'

/** How long a request waits for a person, and for how long a denial answers the same request. */
const waitingMinutes = 30
/** How many requests of one key may wait. A person who finds more than this has stopped reading them. */
const waitingMax = 20

export interface Request {
  readonly operation: string
  readonly account_id: string
  readonly chat_id: ChatNumber
  /** The payload exactly as it will run. */
  readonly payload: Readonly<Record<string, unknown>>
  readonly fingerprint: Buffer
}

interface PendingRequest {
  readonly id: string
  readonly payload: unknown
  readonly expires_at: Date
}

export async function requestApproval(
  app: App,
  caller: Caller,
  request: Request,
  { client_name, base_url }: { readonly client_name: string | undefined; readonly base_url: string },
): Promise<Reply> {
  const key_id = keyIdOf(caller)
  const { id, payload, expires_at } = await app.db.transaction(async (tx) => {
    // The lock makes requests of one key sequential, so that two identical ones become one and the count is exact.
    await tx.one(sql`select id from keys where id = ${key_id} for no key update`)
    return (
      (await findEarlier(tx, key_id, request)) ??
      makeRequest(app, tx, caller, { ...request, key_id, client_name: cleanName(client_name) })
    )
  })
  app.wake.mark({ workspace_id: null, kind: 'approvals', user_id: caller.user_id }) // guard: a request is marked for its user
  return {
    status: 403,
    body: {
      error:
        'A person must approve this first; nothing was done. Stop here and ask the user to open approval_url, which shows exactly this payload. ' +
        'Then call again with the same input and the token they get there as approval_token.',
      code: 'approval_required',
      request_id: id,
      approval_url: `${base_url}/dashboard/mcp-approvals?request=${id}`,
      payload,
      expires_at: expires_at.toISOString(),
    },
  }
}

export function keyIdOf({ via }: Caller): string {
  if (via.kind !== 'key') throw new Error('Approvals are for keys.')
  return via.id
}

/** A name that the client chose. It is only displayed, and must not break the page that displays it. */
function cleanName(name: string | undefined): string | null {
  const printable = toWellFormed(name ?? '').replaceAll(/[\p{Cc}\p{Cf}]/gu, ' ')
  return [...printable.trim()].slice(0, 200).join('').trim() || null
}

interface EarlierRequest extends PendingRequest {
  readonly state: 'waiting' | 'approved' | 'denied' | 'used'
  readonly minutes: number
}

/** The same request while it waits, while its token is valid, or while its denial is recent. */
async function findEarlier(tx: Tx, key_id: string, request: Request): Promise<PendingRequest | undefined> {
  const last = await tx.maybe<EarlierRequest>(sql`
    select a.id, a.payload, a.state, coalesce(a.token_expires_at, a.expires_at) as expires_at,
      ceil(extract(epoch from a.decided_at + make_interval(mins => ${waitingMinutes}) - domain_now()) / 60)::int as minutes
    from approvals a join accounts c on c.id = a.account_id
    where a.key_id = ${key_id} and a.fingerprint = ${request.fingerprint}
      and a.platform_user_id is not distinct from c.platform_user_id
      and case a.state
        when 'waiting' then a.expires_at > domain_now()
        when 'approved' then a.token_expires_at > domain_now()
        when 'denied' then a.decided_at > domain_now() - make_interval(mins => ${waitingMinutes})
        else false end
    order by a.created_at desc, a.id desc limit 1`)
  if (last?.state !== 'denied') return last
  throw new ApiError('approval_denied', {
    detail: `The user denied this request. Do not repeat it unless they ask you to; Parley accepts it again in ${last.minutes} minutes.`,
  })
}

interface NewRequest extends Request {
  readonly key_id: string
  readonly client_name: string | null
}

async function makeRequest(app: App, tx: Tx, caller: Caller, request: NewRequest): Promise<PendingRequest> {
  const { key_id, operation, account_id, chat_id, payload, fingerprint, client_name } = request
  const { workspace_id, user_id } = caller
  const { waiting, next } = await tx.one<{ waiting: number; next: number | null }>(sql`
    select count(*)::int as waiting, ceil(extract(epoch from min(expires_at) - domain_now()))::int as next
    from approvals where key_id = ${key_id} and state = 'waiting' and expires_at > domain_now()`)
  if (waiting >= waitingMax) {
    throw new ApiError('rate_limited', {
      detail: `${waitingMax} requests of this key wait for a decision. Ask the user to decide on them first.`,
      retry_after: next ?? 1,
    })
  }
  const made = await tx.one<PendingRequest>(sql`
    insert into approvals (id, workspace_id, user_id, key_id, client_name, operation, account_id, platform_user_id,
      chat_id, payload, fingerprint, expires_at)
    select ${newId()}::uuid, ${workspace_id}::uuid, ${user_id}::uuid, ${key_id}::uuid, ${client_name}, ${operation}, id,
      platform_user_id, ${chat_id}::bigint, ${JSON.stringify(payload)}::json, ${fingerprint}::bytea,
      domain_now() + make_interval(mins => ${waitingMinutes})
    from accounts where id = ${account_id} and workspace_id = ${workspace_id}
    returning id, payload, expires_at`)
  await record(app, tx, `key:${key_id}`, {
    action: 'approval.requested',
    target: made.id,
    workspace_id,
    detail: { operation, account_id, chat_id, payload_sha256: fingerprint.toString('hex') },
  })
  return made
}
