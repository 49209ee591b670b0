/**
 * The boundary for messages that were never queued: a campaign's recipients are their queue. The transaction has two
 * steps. The first locks and reads: accounts, then what the slice itself locks, then days. The caller decides on the
 * locked rows; the second step inserts the attempts, `submitting` once they commit.
 */
import { given } from '../db/given.ts'
import { type Sql, sql, type Tx } from '../db/sql.ts'
import type { ChatNumber } from '../lib/shapes.ts'
import type { CampaignPlace, State } from '../operation.ts'
import type { Sent } from '../platform/port.ts'
import { accountsHeld, attemptSeconds, type Instance } from './crossing.ts'
import type { HeldLease } from './leases.ts'
import { dayOf } from './workspace-days.ts'

interface LockedAccount {
  readonly account_id: string
  /** As a crossing returns it: only a `held` account may act. */
  readonly status: 'held' | 'busy' | 'behind' | 'no'
}

/** Locks the switch and the accounts. Skips accounts that another transaction has locked, but waits for the switch. */
export function lockAccounts(
  tx: Tx,
  instance: Instance,
  accounts: readonly HeldLease[],
): Promise<LockedAccount[]> {
  return tx.rows<LockedAccount>(sql`
    with given as materialized ${given(accounts, {
      account_id: 'text',
      epoch: 'bigint',
      writes: ['bigint', ({ writes }) => writes.seen],
    })},
    ${accountsHeld(instance)}
    select g.account_id, case
        when held.account_id is not null and exists (
          select from operations o
          where o.account_id = g.account_id and o.campaign_id is not null and o.state = 'submitting' -- guard: one in flight
          ) then 'no'
        when held.account_id is not null then 'held'
        when not fit.current then 'behind'
        when fit.account_id is not null then 'busy'
        else 'no' end as status
    from given g left join fit on fit.account_id = g.account_id left join held on held.account_id = g.account_id`)
}

/** What an account has used of today's quota, and when its next campaign message may go out. */
export interface LockedDay {
  readonly account_id: string
  /** Domain time; every decision of the transaction uses it. */
  readonly now: Date
  readonly day: string
  readonly used: number
  readonly used_cold: number
  readonly lookups: number
  readonly next_campaign_at: Date | null
  /** Another transaction has locked the day. */
  readonly busy: boolean
}

export function lockDays(tx: Tx, account_ids: readonly string[]): Promise<LockedDay[]> {
  return tx.rows<LockedDay>(sql`
    select h.account_id, t.now, t.day::text, coalesce(d.used, 0) as used, coalesce(d.used_cold, 0) as used_cold,
      coalesce(d.lookups, 0) as lookups, h.next_campaign_at, d.account_id is null and exists (
        select from account_days other where other.account_id = h.account_id and other.day = t.day) as busy
    from account_hosts h join workspaces w on w.id = h.workspace_id
    cross join lateral (
      select (select domain_now()) as now, ${dayOf(sql`w`, sql`(select domain_now())`)} as day) t
    left join lateral (
      select * from account_days d where d.account_id = h.account_id and d.day = t.day
      for update skip locked -- guard: locked days are skipped
      ) d on true
    where h.account_id = any(${account_ids})`)
}

/** An operation to insert, or to run again where an earlier attempt was released. */
export interface NewAttempt extends CampaignPlace {
  readonly id: string
  readonly token: string
  readonly kind: string
  readonly workspace_id: string
  readonly user_id: string
  /** The sender: the acting account, or the one whose stored message proves the send. */
  readonly account_id: string
  /** The account under whose lease it crosses. */
  readonly acting_account_id: string
  readonly chat_id: ChatNumber
  readonly payload: unknown
  readonly fingerprint: Buffer
  readonly random_id: string
  /** When the account's next campaign message may go out at the earliest. */
  readonly next_campaign_at: Date
  /** A stored message that carries the random id: the platform accepted it before. */
  readonly proof: Sent | null
}

interface InsertedAttempt {
  /** Not the given id where an earlier attempt at the same message was released. */
  readonly id: string
  readonly recipient_id: string
  /** The account's count of writes as of this commit. */
  readonly writes: string
}

export async function insertAttempts(
  tx: Tx,
  worker_id: string,
  attempts: readonly NewAttempt[],
): Promise<InsertedAttempt[]> {
  if (attempts.length === 0) return []
  return tx.rows<InsertedAttempt>(attemptsStatement(worker_id, attempts))
}

function attemptsStatement(worker_id: string, attempts: readonly NewAttempt[]): Sql {
  const ordered = attempts.toSorted((one, other) => (one.id < other.id ? -1 : 1))
  return sql`
    with given as materialized ${given(ordered, {
      id: 'uuid',
      token: 'uuid',
      kind: 'text',
      workspace_id: 'uuid',
      user_id: 'uuid',
      account_id: 'text',
      chat_id: 'bigint',
      payload: 'jsonb',
      fingerprint: ['text', ({ fingerprint }) => fingerprint.toString('hex')],
      random_id: 'bigint',
      campaign_id: 'uuid',
      recipient_id: 'uuid',
      step_no: 'int',
      quota_day: 'date',
      cold: 'boolean',
      next_campaign_at: ['timestamptz', ({ next_campaign_at }) => next_campaign_at.toISOString()],
      proof_message_id: ['bigint', ({ proof }) => proof?.message_id],
      proof_at: ['timestamptz', ({ proof }) => proof?.at],
      acting_account_id: 'text',
    })},
    crossed as (
      insert into operations as o (id, attempt_token, kind, effect, workspace_id, user_id, account_id, chat_id, payload,
        fingerprint, random_id, campaign_id, recipient_id, step_no, quota_day, cold, state, attempt_no, owner,
        crossed_at, lease_until, proof_message_id, proof_at)
      select id, token, kind, 'platform', workspace_id, user_id, account_id, chat_id, payload, decode(fingerprint, 'hex'),
        random_id, campaign_id, recipient_id, step_no, quota_day, cold, 'submitting', 1, ${worker_id}::uuid,
        (select domain_now()), (select real_now()) + make_interval(secs => ${attemptSeconds.text}), proof_message_id, proof_at
      from given
      on conflict (recipient_id, step_no) do update set state = 'submitting', attempt_no = o.attempt_no + 1,
        attempt_token = excluded.attempt_token, account_id = excluded.account_id, chat_id = excluded.chat_id,
        payload = excluded.payload, quota_day = excluded.quota_day,
        cold = excluded.cold, owner = excluded.owner,
        crossed_at = excluded.crossed_at, lease_until = excluded.lease_until, reason = null, detail = null,
        finished_at = null, reply_status = null, reply_body = null,
        proof_message_id = excluded.proof_message_id, proof_at = excluded.proof_at
      where o.state = 'released' -- guard: only what was released is taken up again
      returning o.id, o.recipient_id),
    raised as (
      update account_hosts h set next_campaign_at = g.next_campaign_at,
        writes = h.writes + 1 -- guard: messages raise writes
      from given g join crossed on crossed.recipient_id = g.recipient_id where h.account_id = g.acting_account_id
      returning h.account_id, h.writes),
    used as (
      insert into account_days as d (account_id, workspace_id, day, used, used_cold)
      select g.account_id, g.workspace_id, g.quota_day, 1, g.cold::int
      from given g join crossed on crossed.recipient_id = g.recipient_id where g.quota_day is not null
      order by g.account_id
      on conflict (account_id, day) do update set
        used = d.used + 1, -- guard: quota is used with the crossing
        used_cold = d.used_cold + excluded.used_cold -- guard: cold messages add up
      )
    select crossed.id, crossed.recipient_id, raised.writes::text
    from crossed join given g on g.recipient_id = crossed.recipient_id
      join raised on raised.account_id = g.acting_account_id`
}

/** Finds a message whose crossing returned no answer; undefined if it never crossed. */
export function findAttempt(
  tx: Tx,
  { recipient_id, step_no }: { recipient_id: string; step_no: number },
): Promise<{ id: string; attempt_token: string | null; state: State } | undefined> {
  return tx.maybe(sql`
    select id, attempt_token, state from operations where recipient_id = ${recipient_id} and step_no = ${step_no}`)
}
