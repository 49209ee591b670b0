/** The recipients' side of the boundary: locks and reads the rows, decides on them, and writes the result. */

import type { App } from '../../../app.ts'
import { given } from '../../../db/given.ts'
import { sql, type Tx } from '../../../db/sql.ts'
import type { LockedDay, NewAttempt } from '../../../ledger/direct-crossing.ts'
import type { ChatNumber } from '../../../lib/shapes.ts'
import type { State } from '../../../operation.ts'
import type { Person } from '../../../platform/port.ts'
import {
  aboutCampaigns,
  type FactsRow,
  factColumns,
  factTables,
  knownNames,
  personTables,
  suppressedColumn,
} from '../planning/recipient-facts.ts'
import type { EndReason } from '../planning/why.ts'
import { identityOf } from './message.ts'
import { decide } from './pick.ts'

/** A message that asks to cross: the recipient as it was picked, and for a contact the person the look-up found. */
export interface MessageCrossing {
  readonly row: FactsRow
  readonly found: Person | null
  /** The minimum gap between this message and the account's next. */
  readonly gapMs: number
  /** The id of the new operation, unless an earlier attempt of the same message has one. */
  readonly id: string
  readonly token: string
}

export interface LockedRow extends Omit<FactsRow, 'suppressed'> {
  readonly earlier_id: string | null
  readonly earlier_state: State | null
  /** The stored message with this random id, from any account of the pool. */
  readonly message_id: string | null
  readonly sent_at: Date | null
  readonly sent_by: string | null
  readonly sent_to: ChatNumber | null
  /** What the platform calls the person. */
  readonly told_name: string | null
  /** Another contact of the campaign is the same person. */
  readonly duplicate: boolean
  /** Random ids of messages that the pool sent to this person and that the ledger has lost. */
  readonly forgotten_ids: readonly string[]
  /** What the suppression list says, read in one order with its writers; `busy` while another transaction adds to it. */
  readonly forbidden: string | null
}

/**
 * Two contacts may turn out to be one person at the same time, and only one of them takes the person (`campaign_people`). So
 * before anything is read, each first message to a contact locks its person for this transaction: the other comes back later
 * instead of waiting here. Returns the recipients that did not get the lock.
 */
export async function lockPeople(tx: Tx, wanted: readonly MessageCrossing[]): Promise<Set<string>> {
  const first = wanted.filter(({ row }) => row.kind === 'contacts' && row.step === 0)
  if (first.length === 0) return new Set()
  const rows = await tx.rows<{ id: string }>(sql`
    select id from ${given(first, {
      id: ['uuid', ({ row }) => row.recipient_id],
      name: ['text', ({ row, found }) => `campaign ${row.campaign_id} person ${found?.id ?? row.tied_to}`],
    })} as g
    where not pg_try_advisory_xact_lock(hashtextextended(name, 0))`)
  return new Set(rows.map(({ id }) => id))
}

/** Locks campaigns, then recipients. Skips rows that another transaction holds, and does not return them. */
export async function lockRecipients(
  app: App,
  tx: Tx,
  wanted: readonly MessageCrossing[],
): Promise<LockedRow[]> {
  const rows = await lockRows(app, tx, wanted)
  return Promise.all(
    rows.map(async (row) => ({ ...row, duplicate: row.duplicate || (await isForgotten(app, tx, row)) })),
  )
}

/**
 * Whether this campaign wrote to the person under another name, and the database has lost that message. The other contact is
 * not known to be the same person until its own turn.
 */
async function isForgotten(app: App, tx: Tx, row: LockedRow): Promise<boolean> {
  const { campaign_id, recipient_id: own_id, forgotten_ids } = row
  if (forgotten_ids.length === 0) return false
  const others = await tx.rows<{ recipient_id: string }>(sql`
    select id as recipient_id from campaign_recipients where campaign_id = ${campaign_id} and id <> ${own_id}`)
  const sentAs = others.map(({ recipient_id }) => identityOf(app, { ...row, recipient_id }).random_id)
  return sentAs.some((random_id) => forgotten_ids.includes(random_id)) // guard: a person who was written to under another name
}

function lockRows(app: App, tx: Tx, wanted: readonly MessageCrossing[]): Promise<LockedRow[]> {
  const ordered = wanted.toSorted((one, other) => (one.row.recipient_id < other.row.recipient_id ? -1 : 1))
  return tx.rows<LockedRow>(sql`
    with given as materialized ${given(ordered, {
      id: ['uuid', ({ row }) => row.recipient_id],
      campaign_id: ['uuid', ({ row }) => row.campaign_id],
      account_id: ['text', ({ row }) => row.account_id],
      version: ['int', ({ row }) => row.version],
      random_id: ['bigint', ({ row }) => identityOf(app, row).random_id],
      chat_id: ['bigint', ({ found }) => found?.id],
      name: ['text', ({ found }) => found?.name],
      username: ['text', ({ found }) => found?.username],
    })},
    running as materialized (
      select * from campaigns k where k.id in (select campaign_id from given) order by k.id
      for share skip locked -- guard: campaign is held
      ),
    waiting as materialized (
      select r.*, g.account_id as acting, g.random_id,
        coalesce(r.chat_id, g.chat_id) as known_chat_id, coalesce(g.name, r.told_name) as known_name,
        case when g.chat_id is null then r.username else g.username end as known_username
      from given g join running on running.id = g.campaign_id
      cross join lateral (
        select * from campaign_recipients r where r.id = g.id
          and r.version = g.version -- guard: decided on this version
        for update skip locked) r),
    recipients as materialized (
      select id, campaign_id, workspace_id, account_id, acting, random_id, status, step, version, known_chat_id as chat_id,
        case when step > 0 then person_id else coalesce(person_id, person_of(workspace_id, acting, known_chat_id)) end
          as person_id,
        contact, name, known_name as told_name, known_username as username, last_sent_at, next_action_at, last_message_id,
        unknown_since, asked_at, unfound_at, must_look_up
      from waiting),
    ${aboutCampaigns(sql`running k`)}
    select ${factColumns}, r.told_name, earlier.id as earlier_id, earlier.state as earlier_state,
      m.id::text as message_id, m.sent_at, m.account_id as sent_by, m.chat_id::text as sent_to,
      k.kind = 'contacts' and r.step = 0 and (exists (
          select from campaign_people taken where taken.campaign_id = k.id and taken.person_id = r.person_id
            and taken.recipient_id <> r.id -- guard: a campaign writes to a person once
          )
        -- Until every recipient of before is tied, some people whom the campaign has written to are not taken.
        or (exists (select from people_backfill where tied_at is null) and exists (
          select from campaign_recipients other where other.campaign_id = k.id and other.chat_id = r.chat_id
            and other.id <> r.id and (other.step > 0 or other.status in ('submitting', 'ambiguous')) -- guard: a person of before
          ))) as duplicate,
      case when k.kind = 'contacts' and r.step = 0 and m.id is null then array(
        select f.random_id::text from campaign_accounts q
        cross join lateral (
          select s.random_id from messages s
          where s.account_id = q.account_id and s.chat_id = r.chat_id and s.is_sender and s.random_id is not null
            and s.deleted_at is null and s.sent_at > k.created_at - interval '1 hour' and not exists (
              select from operations o where o.account_id = s.account_id and o.random_id = s.random_id)
          order by s.sent_at desc limit 10) f
        where q.campaign_id = k.id and q.pool) else '{}' end as forgotten_ids,
      case when exists (
          select from erasures e
          where e.done_at is null -- guard: no campaign writes to a person who is being erased
            and e.workspace_id = r.workspace_id and e.number = r.chat_id
            and e.platform = (select platform from accounts where id = r.acting)) then 'erased'
        when r.chat_id is not null then recipient_forbidden(r.workspace_id, r.acting, r.chat_id, ${knownNames})
        when ${suppressedColumn} then 'identity_suppressed' -- guard: who is on the list and has no chat ends
        end as forbidden
    from recipients r join running k on k.id = r.campaign_id join about on about.campaign_id = k.id
    cross join lateral (select r.acting as account_id) g
    ${factTables}
    ${personTables}
    left join operations earlier on earlier.recipient_id = r.id and earlier.step_no = r.step
    left join lateral (
      select m.* from (
        select r.acting as account_id
        union
        select q.account_id from campaign_accounts q
        where q.campaign_id = r.campaign_id and q.pool and r.step = 0) sender -- guard: any account of the pool may have sent it
      cross join lateral (
        select m.id, m.sent_at, m.account_id, m.chat_id from messages m
        where m.account_id = sender.account_id and m.random_id = r.random_id limit 1) m
      limit 1) m on true`)
}

export type Crossable =
  | { readonly do: 'send'; readonly attempt: NewAttempt }
  | { readonly do: 'end'; readonly status: string; readonly reason: EndReason | null }
  /** The ledger knows more about this message than the recipient does. */
  | { readonly do: 'adopt'; readonly operation_id: string }
  | { readonly do: 'nothing' }

/** Decides on the locked rows and on what the account has used today. */
export function decideCrossing(
  app: App,
  wanted: MessageCrossing,
  locked: LockedRow,
  day: LockedDay,
): Crossable {
  const { now, used, used_cold, lookups, next_campaign_at } = day
  const listed = locked.forbidden !== null // guard: suppression list is read under its lock
  // A message that was already sent is recorded without asking whether it may be sent.
  const proven = locked.message_id === null ? null : { chat_id: locked.sent_to, known_until: null }
  const suppressed = listed && proven === null // guard: a proven message is recorded
  const today = { now, used, used_cold, lookups, next_campaign_at }
  const row = { ...locked, ...proven, ...today, suppressed }
  const decision = decide(app, row)
  if (decision.do === 'end') return decision
  if (decision.do !== 'send') return { do: 'nothing' }
  if (row.duplicate) return { do: 'end', status: 'failed', reason: 'duplicate' }
  if (row.earlier_id !== null && row.earlier_state !== 'released') {
    return { do: 'adopt', operation_id: row.earlier_id }
  }
  return { do: 'send', attempt: attemptOf(app, wanted, { row, day, decision }) }
}

interface SendDecision {
  readonly row: LockedRow
  readonly day: LockedDay
  readonly decision: Extract<ReturnType<typeof decide>, { do: 'send' }>
}

function attemptOf(app: App, wanted: MessageCrossing, { row, day, decision }: SendDecision): NewAttempt {
  const { text, branch, variant, cold } = decision
  const { message_id, sent_at, sent_by, sent_to } = row
  return {
    ...identityOf(app, row),
    id: row.earlier_id ?? wanted.id,
    token: wanted.token,
    workspace_id: row.workspace_id,
    user_id: row.user_id,
    // The message belongs to the account that sent it: another account of the pool may have found the contact again.
    account_id: sent_by ?? row.account_id,
    acting_account_id: row.account_id,
    chat_id: sent_to ?? (row.chat_id as ChatNumber),
    payload: { text, branch, variant, found: wanted.found !== null },
    campaign_id: row.campaign_id,
    recipient_id: row.recipient_id,
    step_no: row.step,
    quota_day: row.kind === 'broadcast' ? null : day.day,
    cold,
    next_campaign_at: new Date(day.now.getTime() + wanted.gapMs),
    proof: message_id === null ? null : { message_id, at: (sent_at ?? day.now).toISOString() },
  }
}

/** Marks them in flight. The account and the chat now belong to the recipient. */
export async function markSubmitting(
  tx: Tx,
  attempts: readonly NewAttempt[],
  rows: ReadonlyMap<string, LockedRow>,
): Promise<void> {
  if (attempts.length === 0) return
  const marked = attempts.map((attempt) => ({ attempt, row: rows.get(attempt.recipient_id ?? '') }))
  await tx.run(sql`
    update campaign_recipients r set status = 'submitting', account_id = g.account_id, chat_id = g.chat_id,
      person_id = coalesce(g.person_id, r.person_id), told_name = g.told_name, username = g.username, next_action_at = null, unknown_since = null
    from ${given(marked, {
      id: ['uuid', ({ attempt }) => attempt.recipient_id],
      account_id: ['text', ({ attempt }) => attempt.account_id],
      chat_id: ['bigint', ({ attempt }) => attempt.chat_id],
      person_id: ['uuid', ({ row }) => row?.person_id],
      told_name: ['text', ({ row }) => row?.told_name],
      username: ['text', ({ row }) => row?.username],
    })} as g
    where r.id = g.id`)
}

interface EndedRecipient {
  readonly recipient_id: string
  readonly status: string
  readonly reason: EndReason | null
}

/** Ends recipients that still wait: they get no more messages. */
export async function markEnded(tx: Tx, ended: readonly EndedRecipient[]): Promise<void> {
  if (ended.length === 0) return
  await tx.run(sql`
    update campaign_recipients r set status = g.status, reason = g.reason, next_action_at = null,
      ended_at = (select domain_now())
    from ${given(ended, { id: ['uuid', ({ recipient_id }) => recipient_id], status: 'text', reason: 'text' })} as g
    where r.id = g.id and r.status in ('queued', 'waiting')`)
}

/** Ends a recipient whose contact cannot be written to at all, unless it has changed since it was picked. */
export async function endRecipient(
  app: App,
  { recipient_id, version }: FactsRow,
  ended: Omit<EndedRecipient, 'recipient_id'>,
): Promise<void> {
  await app.db.transaction(async (tx) => {
    const held = await tx.maybe(sql`
      select 1 from campaign_recipients where id = ${recipient_id}
        and version = ${version} -- guard: ends as it was picked
      for update`)
    if (held) await markEnded(tx, [{ recipient_id, ...ended }])
  })
}

/**
 * Ties a recipient to the person whom the platform has named, unless it has changed since it was picked. Returns its new version. The
 * tie stands whether or not the message crosses.
 */
export function tieRecipient(
  { db }: App,
  { recipient_id, workspace_id, account_id, version }: FactsRow,
  { id, name, username }: Person,
): Promise<{ readonly version: number } | undefined> {
  return db.maybe(sql`
    update campaign_recipients r set
      person_id = person_of(${workspace_id}, ${account_id}, ${id}::bigint), -- guard: a look up ties at once
      told_name = ${name}, username = ${username}, asked_at = domain_now()
    where r.id = ${recipient_id}
      and r.version = ${version} -- guard: ties as it was picked
      and r.status in ('queued', 'waiting')
    returning r.version`)
}

/** Asking about the person known did not show whose name it is: the recipient waits until the account has a look-up. */
export async function requireLookUp({ db }: App, { recipient_id, version }: FactsRow): Promise<void> {
  await db.run(sql`
    update campaign_recipients set must_look_up = true where id = ${recipient_id} and version = ${version}
      and status in ('queued', 'waiting')`)
}

/** The platform has said for the first time that nobody has the name: the first message waits until then. */
export async function putOffUnfound(
  { db }: App,
  { recipient_id, version }: FactsRow,
  until: Date,
): Promise<void> {
  await db.run(sql`
    update campaign_recipients set unfound_at = domain_now(), next_action_at = ${until}
    where id = ${recipient_id} and version = ${version} and status = 'queued'`)
}

/** Waits until no transaction holds the recipient: by then a crossing without an answer has committed or rolled back. */
export async function waitForRecipient(app: App, recipient_id: string): Promise<void> {
  await app.db.transaction((tx) =>
    tx.run(sql`select 1 from campaign_recipients where id = ${recipient_id} for update`),
  )
}
