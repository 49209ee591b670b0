/**
 * The boundary: the one transaction after which a submission may have happened (T2), what is learnt of it (T3), and
 * what becomes of those whose owner is gone (sweep). Nothing here ever leads back to the queue.
 */
import { type Db, sql, type Tx } from '../../db/sql.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import type { Refusal } from '../../platform/port.ts'
import { liveSeconds } from './hosts.ts'
import { refusalReply } from './submit.ts'

/** How long an attempt may stay without a word from its owner. Expiry means `ambiguous`, never `queued`. */
export const attemptSeconds = { text: 60, file: 150 } as const

export interface Held {
  readonly owner: string
  readonly account_id: string
  readonly workspace_id: string
  readonly epoch: string
}

/** A row as its host executes it. */
export interface Operation {
  readonly id: string
  readonly workspace_id: string
  readonly account_id: string
  readonly kind: string
  readonly idempotency_key: string | null
  readonly fingerprint: Buffer
  readonly chat_id: ChatNumber | null
  readonly payload: unknown
  readonly file_id: string | null
  readonly random_id: string
}

/** Who may still speak for a submission: a later attempt has another token. */
export interface Attempt {
  readonly id: string
  readonly token: string
}

const executable = sql`o.id, o.workspace_id, o.account_id, o.kind, o.idempotency_key, o.fingerprint, o.chat_id::text,
  o.payload, o.file_id, o.random_id::text`

/** What waits for these accounts, the oldest first. */
export function listQueued(db: Db, account_ids: readonly string[]): Promise<Operation[]> {
  return db.rows<Operation>(sql`
    select q.* from unnest(${account_ids}::text[]) as a (id) cross join lateral (
      select ${executable} from operations o where o.account_id = a.id and o.state = 'queued'
      order by o.created_at, o.id limit 32) q`)
}

export interface OpenAttempt extends Operation {
  readonly attempt_token: string
  /** What the operation is called in answers. */
  readonly told_as: string
}

/** Attempts nobody knows the end of, by their tokens: a row that was put back may have another id. */
export function listOpen(db: Db, tokens: readonly string[]): Promise<OpenAttempt[]> {
  return db.rows<OpenAttempt>(sql`
    select ${executable}, o.attempt_token, coalesce(o.told_as, o.id) as told_as from operations o
    where o.attempt_token = any(${tokens}::uuid[]) and o.state in ('submitting', 'ambiguous')`)
}

/**
 * T2, the re-check immediately before every submission, in one statement: sending is switched on, the lease is ours,
 * the session is live, the platform does not ask to wait, the wish is still wanted, and the database is not an older
 * copy of itself. True: from now on it may have happened.
 */
export async function crossBoundary(
  db: Db,
  held: Held,
  { id, token, beat, seconds }: Attempt & { beat: string; seconds: number },
): Promise<boolean> {
  const crossed = await db.run(sql`
    with switch as materialized (
      select 1 from settings where name = 'dispatch' and value = 'true'::jsonb for share),
    host as materialized (
      select 1 from account_hosts
      where account_id = ${held.account_id} and lease_owner = ${held.owner} and lease_epoch = ${held.epoch}
        and lease_until > clock_timestamp()
        and observed_at > clock_timestamp() - make_interval(secs => ${liveSeconds})
        and (flood_until is null or flood_until <= domain_now())
      for no key update)
    update operations set state = 'submitting', attempt_no = attempt_no + 1, attempt_token = ${token},
      owner = ${held.owner}, lease_until = clock_timestamp() + make_interval(secs => ${seconds})
    from switch, host, instance
    where operations.id = ${id} and operations.state = 'queued' and operations.expires_at > clock_timestamp()
      and instance.beat >= ${beat}`)
  return crossed === 1
}

/** Why a wish did not cross: it settles at once instead of waiting, unless it is for another host to take. */
export async function settleUncrossed(db: Db, held: Held, id: string): Promise<boolean> {
  const released = await db.run(sql`
    update operations o set state = 'released', finished_at = domain_now(), reason = coalesce(why.reason, 'expired')
    from (
      select case
          when not exists (select from settings where name = 'dispatch' and value = 'true'::jsonb) then 'dispatch_off'
          when h.flood_until > domain_now() then 'flood_wait'
          when coalesce(h.observed_at <= clock_timestamp() - make_interval(secs => ${liveSeconds}), true) then 'not_live'
        end as reason
      from account_hosts h
      where h.account_id = ${held.account_id} and h.lease_owner = ${held.owner} and h.lease_epoch = ${held.epoch}) why
    where o.id = ${id} and o.state = 'queued' and (why.reason is not null or o.expires_at <= clock_timestamp())`)
  return released === 1
}

/** Before the boundary nothing has happened: the wish ends here. */
export async function settleQueued(
  db: Db,
  id: string,
  { refused, reason, detail }: { refused?: Refusal; reason?: string; detail?: string },
): Promise<void> {
  const reply = refused === undefined ? undefined : refusalReply(refused)
  await db.run(sql`
    update operations set state = ${reply ? 'refused' : 'released'}, finished_at = domain_now(),
      reason = ${reply ? 'platform_refused' : (reason ?? 'not_prepared')}, detail = ${refused ?? detail ?? null},
      reply_status = ${reply?.status ?? null}::int, reply_body = ${reply ? JSON.stringify(reply.body) : null}::json
    where id = ${id} and state = 'queued'`)
}

/** T3: it was accepted. False: the row is another attempt's, or knew already. */
export async function completeAttempt(tx: Tx, { id, token }: Attempt, body: unknown): Promise<boolean> {
  const completed = await tx.run(sql`
    update operations set state = 'completed', reason = null, detail = null, finished_at = domain_now(),
      lease_until = null, reply_status = 200, reply_body = ${JSON.stringify(body)}
    where id = ${id} and attempt_token = ${token} and state in ('submitting', 'ambiguous')`)
  return completed === 1
}

/** What else an attempt can have come to. */
export type Ending =
  /** The platform said no for good; the same answer for every repeat. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** Provably nothing happened: refused for now, or never written. */
  | {
      readonly kind: 'released'
      readonly reason: 'platform_refused' | 'never_written'
      readonly detail: string
    }
  | { readonly kind: 'ambiguous'; readonly reason: string; readonly detail: string }

/** T3 for everything but success. Fenced by the token: an attempt that is no longer the row's changes nothing. */
export async function settleAttempt(db: Db, { id, token }: Attempt, ending: Ending): Promise<boolean> {
  const settled = await db.run(statementOf({ id, token }, ending))
  return settled === 1
}

function statementOf({ id, token }: Attempt, ending: Ending) {
  switch (ending.kind) {
    case 'refused': {
      const { status, body } = refusalReply(ending.refusal)
      // A row that was given up meanwhile is free again: the platform will say the same to the next attempt.
      return sql`
        update operations set state = case when state = 'ambiguous' then 'released' else 'refused' end,
          reason = 'platform_refused', detail = ${ending.refusal}, finished_at = domain_now(), lease_until = null,
          reply_status = ${status}, reply_body = ${JSON.stringify(body)}
        where id = ${id} and attempt_token = ${token} and state in ('submitting', 'ambiguous')`
    }
    case 'released':
      return sql`
        update operations set state = 'released', reason = ${ending.reason}, detail = ${ending.detail},
          finished_at = domain_now(), lease_until = null
        where id = ${id} and attempt_token = ${token} and state in ('submitting', 'ambiguous')`
    case 'ambiguous':
      return sql`
        update operations set state = 'ambiguous', reason = ${ending.reason}, detail = ${ending.detail},
          finished_at = domain_now(), lease_until = null
        where id = ${id} and attempt_token = ${token} and state = 'submitting'`
  }
}

/** An answer to the boundary's COMMIT was lost: nothing was sent, and only its owner knows. */
export function forswear(db: Db, { id, token }: Attempt): Promise<boolean> {
  return settleAttempt(
    db,
    { id, token },
    { kind: 'released', reason: 'never_written', detail: 'lost_commit' },
  )
}

/** Attempts whose owner is gone or has fallen silent: nobody can know. Wishes that nobody took in time are over. */
export async function sweep(db: Db): Promise<number> {
  const lost = await db.run(sql`
    update operations set state = 'ambiguous', reason = 'lease', finished_at = domain_now(), lease_until = null
    where effect = 'platform' and state = 'submitting' and (lease_until < clock_timestamp()
      or exists (select from workers w where w.id = operations.owner and w.stopped_at is not null))`)
  const expired = await db.run(sql`
    update operations set state = 'released', reason = 'expired', finished_at = domain_now()
    where state = 'queued' and effect = 'platform' and expires_at < clock_timestamp()`)
  return lost + expired
}

/** Keys of read marks and opened chats are kept for 30 days after the end. */
export function forgetOperations(db: Db): Promise<number> {
  return db.run(sql`
    delete from operations where id in (
      select id from operations where kind in ('start_chat', 'set_read_state')
        and state in ('completed', 'refused', 'released') and finished_at < domain_now() - interval '30 days'
      limit 1000)`)
}
