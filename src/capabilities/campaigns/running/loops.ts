/** What the clock alone does to campaigns: starts them, pauses late ones, makes unknown outcomes final, completes them. */

import type { App, Topic } from '../../../app.ts'
import { given } from '../../../db/given.ts'
import { type Db, sql } from '../../../db/sql.ts'
import { emit, emitted } from '../../../events/emit.ts'
import { isConfirmed } from '../../../ledger/runs.ts'
import type { Loop } from '../../../loop.ts'
import { planStart } from '../planning/plan.ts'
import { hasBegun } from './counts.ts'
import { countDecidable, decideNoted } from './hand-messages.ts'
import { decide, listHeads } from './pick.ts'
import { countReplies, type Reply, replyColumns } from './replies.ts'

/** Campaign messages may be due. */
export const messagesDue: Topic = { topic: 'campaigns' }

const restMs = 1_000
const rowsMax = 500

export const loops = (): readonly Loop[] => [
  {
    name: 'campaigns',
    restMs,
    wakeOn: messagesDue,
    step: async (app) => {
      const started = await startSchedules(app)
      const ended = (await endUnknown(app)) + marked(app, await decideNoted(app))
      const changed = ended + (await freeContacts(app.db)) + (await moveOn(app))
      if (started + changed > 0) app.wake.signal(messagesDue)
      const putOff = await putOffAccounts(app)
      return started + changed >= rowsMax || putOff >= rowsMax
    },
    nextDueAt: findNextDue,
    countDue,
  },
]

interface ScheduledCampaign {
  readonly id: string
  readonly scheduled_at: Date
  readonly sequence: boolean
  readonly now: Date
}

/** Marks the campaigns of these rows, after their commit. Returns how many rows there are. */
function marked({ wake }: App, rows: readonly { readonly workspace_id: string }[]): number {
  const workspaces = new Set(rows.map(({ workspace_id }) => workspace_id))
  wake.mark(...[...workspaces].map((workspace_id) => ({ workspace_id, kind: 'campaigns' }) as const))
  return rows.length
}

async function startSchedules(app: App): Promise<number> {
  const started = await app.db.transaction(async (tx) => {
    const due = await tx.rows<ScheduledCampaign>(sql`
      select id, scheduled_at, sequence, domain_now() as now from campaigns
      where status = 'scheduled' and scheduled_at <= domain_now() order by id limit ${rowsMax} for update skip locked`)
    const lateness_seconds = app.config.schedule_lateness_seconds
    const starts = due.map((one) => ({
      id: one.id,
      start: planStart(one, { now: one.now, lateness_seconds }),
    }))
    for (const { id } of starts.filter(({ start }) => start === 'pause')) {
      app.log.warn(
        { campaign_id: id },
        'a campaign missed its scheduled start by too much; it is paused until a user resumes it',
      )
    }
    if (starts.length === 0) return []
    return tx.rows<{ workspace_id: string }>(sql`
      update campaigns k set status = case when g.late then 'paused' else 'queued' end,
        pause_reason = case when g.late then 'late' end
      from ${given(starts, { id: 'uuid', late: ['boolean', ({ start }) => start === 'pause'] })} as g
      where k.id = g.id returning k.workspace_id`)
  })
  return marked(app, started)
}

/**
 * The outcome is still unknown when the next message is due, so it becomes final and no follow-up is sent. Later proof still
 * counts. A recipient that has answered an earlier message meanwhile becomes `replied`, with its event.
 */
async function endUnknown(app: App): Promise<number> {
  const ended = await app.db.transaction(async (tx) => {
    const rows = await tx.rows<Reply & { readonly status: string }>(sql`
      with due as materialized (
        select id from campaign_recipients
        where status = 'submitting' and unknown_since is not null and next_action_at <= domain_now()
        order by id limit ${rowsMax} for update skip locked)
      update campaign_recipients r set next_action_at = null, ended_at = domain_now(),
        status = case when r.reply_step is null then 'ambiguous' else 'replied' end,
        unknown_since = case when r.reply_step is null then r.unknown_since end
      from due where r.id = due.id returning ${replyColumns}`)
    for (const [workspace_id, own] of Map.groupBy(rows, (row) => row.workspace_id)) {
      emit(tx, workspace_id, countReplies(tx, own))
    }
    return rows
  })
  if (ended.length > 0) app.wake.signal(emitted)
  return marked(app, ended)
}

/** Frees contacts that an account was to write to first but no longer can: another account of the pool may take them. */
function freeContacts(db: Db): Promise<number> {
  return db.run(sql`
    with lost as materialized (
      select r.id from campaign_accounts c
      join accounts a on a.id = c.account_id and a.status not in ('CONNECTING', 'READY')
      join account_hosts h on h.account_id = a.id
        and ${isConfirmed(sql`h`)} -- guard: contacts of an unconfirmed account stay its own
      join campaigns k on k.id = c.campaign_id and k.kind = 'contacts' and k.status in ('queued', 'sending')
      join campaign_recipients r on r.account_id = c.account_id and r.campaign_id = c.campaign_id
        and r.status = 'queued' and r.step = 0
      where c.has_open and exists (
        select from campaign_accounts p join accounts b on b.id = p.account_id
        where p.campaign_id = c.campaign_id and p.pool and p.account_id <> c.account_id and b.status = 'READY')
      order by r.id limit ${rowsMax} for update of r skip locked)
    update campaign_recipients r set account_id = null, chat_id = null from lost where r.id = lost.id`)
}

/** Campaigns that have sent a message become `sending`; those with no open recipient become `completed`. */
async function moveOn(app: App): Promise<number> {
  const moved = await app.db.rows<{ workspace_id: string }>(sql`
    with totals as materialized (
      select k.id, bool_or(c.has_open) as has_open,
        sum(c.submitting + c.waiting + c.completed + c.replied + c.ambiguous) > 0 as begun
      from campaigns k join campaign_accounts c on c.campaign_id = k.id
      where k.status in ('queued', 'sending') group by k.id),
    moved as materialized (
      select k.id, t.has_open from totals t join campaigns k on k.id = t.id
      where k.status in ('queued', 'sending') and (not t.has_open or (t.begun and k.status = 'queued'))
      order by k.id limit ${rowsMax} for update of k skip locked)
    update campaigns k set status = case when m.has_open then 'sending' else 'completed' end,
      started_at = coalesce(k.started_at, domain_now()),
      completed_at = case when not m.has_open then domain_now() end
    from moved m where k.id = m.id returning k.workspace_id`)
  return marked(app, moved)
}

/**
 * Skips an account in a campaign until one of its recipients is due. It locks the account's row before it reads who is due
 * next, and every transaction that makes a recipient due takes the same lock, so none is missed.
 */
function putOffAccounts({ db }: App): Promise<number> {
  return db.transaction(async (tx) => {
    const idle = await tx.rows<{ campaign_id: string; account_id: string }>(sql`
      select c.campaign_id, c.account_id from campaign_accounts c
      join campaigns k on k.id = c.campaign_id and k.status in ('queued', 'sending')
      where c.has_open and c.account_id <> '' and c.due_at <= (select domain_now()) and not exists (
        select from campaign_recipients r where r.account_id = c.account_id and r.campaign_id = c.campaign_id
          and r.status in ('queued', 'waiting') and r.next_action_at <= (select domain_now()))
      order by 1, 2 limit ${rowsMax} for no key update of c skip locked`)
    if (idle.length === 0) return 0
    return tx.run(sql`
      update campaign_accounts c set due_at = coalesce((
        select min(r.next_action_at) from campaign_recipients r
        where r.account_id = c.account_id and r.campaign_id = c.campaign_id and r.status in ('queued', 'waiting')), 'infinity')
      from ${given(idle, { campaign_id: 'uuid', account_id: 'text' })} as g
      where c.campaign_id = g.campaign_id and c.account_id = g.account_id`)
  })
}

/** The heads of all accounts that a worker drives. */
async function listAllHeads(app: App, db: Db, { due }: { due: boolean }) {
  const accounts = await db.rows<{ account_id: string }>(sql`
    select h.account_id from account_hosts h join accounts a on a.id = h.account_id
    where a.status = 'READY' and h.lease_until > real_now() and h.observed_at is not null and exists (
      select from campaign_accounts c where c.account_id = h.account_id and (c.has_open or c.pool))
    order by 1`)
  if (accounts.length === 0) return []
  return listHeads(app, db, { account_ids: accounts.map(({ account_id }) => account_id), avoid: [], due })
}

/** The earliest time at which the clock changes anything here. */
async function findNextDue(app: App): Promise<Date | null> {
  const [{ at }, heads] = await Promise.all([
    app.db.one<{ at: Date | null }>(sql`
      select least(
        (select min(scheduled_at) from campaigns where status = 'scheduled'),
        (select min(next_action_at) from campaign_recipients where status = 'submitting')) as at`),
    listAllHeads(app, app.db, { due: false }),
  ])
  const waits = heads.map((row) => decide(app, row))
  const times = waits.flatMap((one) => (one.do === 'wait' && one.until ? [one.until] : []))
  const all = [...times, ...(at ? [at] : [])]
  return all.length === 0 ? null : new Date(Math.min(...all.map((time) => time.getTime())))
}

/** Counts what is due and not done: by the clock, for an account to send, or in flight. The caller waits for 0. */
async function countDue(app: App): Promise<number> {
  // One snapshot: two reads would both miss a message that crosses between them, and the clock would leave it behind.
  const [{ count }, heads] = await app.db.snapshot((db) =>
    Promise.all([
      db.one<{ count: number }>(sql`
      select (
        (select count(*) from campaigns where status = 'scheduled' and scheduled_at <= domain_now())
        + (select count(*) from campaign_recipients where status = 'submitting' and next_action_at <= domain_now())
        + (select count(*) from operations where state = 'submitting' and campaign_id is not null)
        -- The platform has shown these, and they are about to be settled: the next step depends on that.
        + (select count(*) from operations
          where state = 'ambiguous' and campaign_id is not null and proof_message_id is not null)
        + (select count(*) from campaigns k where k.status in ('queued', 'sending') and not exists (
          select from campaign_accounts c where c.campaign_id = k.id and c.has_open))
        + (select count(*) from campaigns k where k.status = 'queued' and ${hasBegun})
        + ${countDecidable(app)})::int as count`),
      listAllHeads(app, db, { due: true }),
    ]),
  )
  const due = heads.filter((row) => isDue(decide(app, row).do)).length
  if (count + due > 0) app.wake.signal(messagesDue)
  return count + due
}

function isDue(what: string): boolean {
  return what === 'send' || what === 'look_up' || what === 'end'
}
