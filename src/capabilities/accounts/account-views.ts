/** Accounts as the members of a workspace see them: state, today's usage, the platform's strikes, what is waiting. */

import { hasRole } from '../../access/needs.ts'
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { type Db, type Sql, sql } from '../../db/sql.ts'
import { isLive } from '../../ledger/liveness.ts'
import { hasWorker, listDrivenPlatforms } from '../../ledger/workers.ts'
import { dayOf } from '../../ledger/workspace-days.ts'
import { notFound } from '../../lib/names.ts'
import { coldLimitOf } from '../campaigns/campaigns.ts'
import { type Status, statusReason } from './account-row.ts'

/** Days of `sent_per_day`, and how far back strikes and login codes go. */
const daysShown = 30
const strikesMax = 20

interface AccountRecord {
  readonly id: string
  readonly status: Status
  readonly status_reason: string | null
}

interface OfAccount {
  readonly account_id: string
}

/** Three statements, however many accounts there are. Only admins and owners see when a login code came. */
export async function listAccountViews(
  { db, config }: Pick<App, 'db' | 'config'>,
  caller: Caller,
  id: string | null = null,
) {
  const { workspace_id } = caller
  const isAdmin = hasRole(caller, 'admin') // guard: only admins see that a code came
  const accounts = await db.rows<AccountRecord>(sql`
    with today as (select ${dayOf(sql`w`, sql`domain_now()`)} as day from workspaces w where w.id = ${workspace_id})
    select a.id, a.platform, a.name, a.status, ${statusReason} as status_reason, a.created_at, ${platformUser} as platform_user,
      ${loginStored} as login_stored, ${live} as live, case when not ${live} then coalesce(h.observed_at, h.heard_at) end as not_live_since,
      ${sync} as sync, h.gap_since, ${loginCode(isAdmin)} as login_code_at,
      json_build_object(
        'campaign_messages', json_build_object('used', coalesce(d.used, 0), 'limit', ${quota}),
        'first_messages', json_build_object(
          'used', coalesce(d.used_cold, 0), 'limit', ${coldLimitOf(sql`a`, sql`h`, sql`t.day`)}),
        'lookups', json_build_object('used', coalesce(d.lookups, 0), 'limit', ${config.start_chat_day}::int)) as today,
      ${waitEnd(sql`h.flood_until`)} as sends_wait_until, ${waitEnd(sql`h.lookup_flood_until`)} as lookups_wait_until,
      ${waitEnd(sql`h.reading_flood_until`)} as reading_waits_until, h.cold_stopped_at as first_messages_stopped_at,
      h.campaigns_held_at, a.cold_per_day, a.proxy,
      array(
        select coalesce(past.sent, 0) from generate_series(0, ${daysShown - 1}) as ago
        left join account_days past on past.account_id = a.id and past.day = t.day - ago
        order by ago desc) as sent_per_day
    from accounts a cross join today t
      left join account_hosts h on h.account_id = a.id
      left join account_sync s on s.account_id = a.id
      left join account_days d on d.account_id = a.id and d.day = t.day
    where a.workspace_id = ${workspace_id} and (${id}::text is null or a.id = ${id})
    order by a.created_at, a.id`)
  const ids = accounts.map((account) => account.id)
  const strikes = Map.groupBy(await listStrikes(db, ids), byAccount)
  const waiting = Map.groupBy(await listWaiting(db, ids), byAccount)
  return accounts.map((account) => ({
    ...account,
    status_reason: withoutCommands(account.status_reason),
    strikes: (strikes.get(account.id) ?? []).map(withoutAccount),
    waiting: (waiting.get(account.id) ?? []).map(withoutAccount),
  }))
}

export async function requireAccountView(app: App, caller: Caller, id: string) {
  const [account] = await listAccountViews(app, caller, id)
  if (!account) throw notFound('account', id)
  return account
}

interface TroubledAccount {
  readonly id: string
  readonly workspace_id: string
  readonly workspace_name: string
  readonly platform: string
  readonly name: string
  readonly status: Status
  readonly status_reason: string | null
  /** The platform stopped its first messages at this time; null if not. */
  readonly first_messages_stopped_at: Date | null
  /** Its campaign messages hold since then, because of this error; null if they do not. */
  readonly campaigns_held_at: Date | null
  readonly campaigns_held_by: string | null
}

/** The accounts of all workspaces that work again only once a person acts: every one, or the first `max`. */
export async function listTroubled(db: Db, max: number | null = null): Promise<TroubledAccount[]> {
  const accounts = await db.rows<TroubledAccount>(sql`
    select a.id, a.workspace_id, w.name as workspace_name, a.platform, a.name, a.status, ${statusReason} as status_reason,
      h.cold_stopped_at as first_messages_stopped_at, h.campaigns_held_at, h.campaigns_held_by
    from accounts a join workspaces w on w.id = a.workspace_id left join account_hosts h on h.account_id = a.id
    where w.disabled_at is null and (a.status in ('NEEDS_LOGIN', 'RESTRICTED')
      or a.status in ('CONNECTING', 'READY') and (
        h.cold_stopped_at is not null or h.campaigns_held_at is not null or not ${hasWorker}))
    order by w.name, a.name, a.id limit ${max}`)
  return accounts.map((account) => ({ ...account, status_reason: withoutCommands(account.status_reason) }))
}

/** What applies to every account of the workspace. */
export async function describeDay(db: Db, workspace_id: string) {
  const { timezone, today } = await db.one<{ timezone: string; today: string }>(sql`
    select w.timezone, ${dayOf(sql`w`, sql`domain_now()`)}::text as today from workspaces w where w.id = ${workspace_id}`)
  return { timezone, today, platforms: await listDrivenPlatforms(db) }
}

/** Refuses an account of another workspace as if it did not exist. */
export async function requireOwnAccount(db: Db, workspace_id: string, id: string): Promise<void> {
  const own = await db.maybe(sql`select 1 from accounts where id = ${id} and workspace_id = ${workspace_id}`)
  if (!own) throw notFound('account', id) // guard: accounts of another workspace
}

const live: Sql = sql`(a.status = 'READY' and ${isLive})`

/** Null before the first login. The phone number is masked; people still recognise their own. */
const platformUser: Sql = sql`case when a.platform_user_id is not null then json_build_object(
  'id', a.platform_user_id::text, 'username', a.username,
  'phone', case when length(a.phone) > 8
    then '+' || left(ltrim(a.phone, '+'), 2) || ' … ' || right(a.phone, 3) end) end`

const loginStored: Sql = sql`exists (select 1 from platform_sessions p where p.account_id = a.id)`

const sync: Sql = sql`json_build_object('phase', coalesce(s.phase, 'not_begun'),
  'done', case s.phase when 'chats' then s.chats_total
    when 'history' then least(s.chats_synced, coalesce(s.history_total, s.chats_total)) end,
  'total', case s.phase when 'chats' then greatest(s.chats_total, s.chats_expected)
    when 'history' then coalesce(s.history_total, s.chats_total) end)`

/** A campaign sends from an account until the day's usage reaches the campaign's own quota, so the highest quota counts. */
const quota: Sql = sql`(
  select max(c.daily_quota_per_account) from campaign_accounts ca join campaigns c on c.id = ca.campaign_id
  where ca.account_id = a.id and (ca.has_open or ca.pool) and c.status in ('scheduled', 'queued', 'sending', 'paused'))`

const loginCode = (isShown: boolean): Sql => sql`
  case when ${isShown} and h.login_code_at > (select domain_now()) - make_interval(days => ${daysShown}) then h.login_code_at end`

const waitEnd = (end: Sql): Sql => sql`case when ${end} > (select domain_now()) then ${end} end`

function listStrikes(db: Db, ids: readonly string[]): Promise<OfAccount[]> {
  return db.rows<OfAccount>(sql`
    select s.account_id, s.kind, s.at, s.seconds from unnest(${ids}::text[]) as a (id)
    cross join lateral (
      select account_id, kind, at, seconds from account_strikes
      where account_id = a.id and at > domain_now() - make_interval(days => ${daysShown})
      order by at desc limit ${strikesMax}) s
    order by s.at desc`)
}

/** The recipients that only this account may write to. A pool's contacts that no account has written to are not among them. */
function listWaiting(db: Db, ids: readonly string[]): Promise<OfAccount[]> {
  return db.rows<OfAccount>(sql`
    select ca.account_id, c.id as campaign_id, c.name, ca.queued + ca.waiting as recipients
    from campaign_accounts ca join campaigns c on c.id = ca.campaign_id
    where ca.account_id = any(${ids}) and ca.has_open and ca.queued + ca.waiting > 0
      and c.status in ('scheduled', 'queued', 'sending', 'paused')
    order by c.created_at desc, c.id`)
}

const byAccount = ({ account_id }: OfAccount) => account_id

function withoutAccount({ account_id: _, ...rest }: OfAccount) {
  return rest
}

const words: Readonly<Record<string, string>> = {
  login: 'log it in',
  logout: 'log it out',
  enable: 'enable it',
}

/** `status_reason` names the command that helps at the terminal. At the dashboard there is a button. */
export function withoutCommands(reason: string | null): string | null {
  const text = reason
    ?.replaceAll(/\b(Run|run) parley account (\w+) acc_\w+/g, (_, run: string, verb: string) => {
      const said = words[verb] ?? verb
      return run === 'Run' ? said.charAt(0).toUpperCase() + said.slice(1) : said
    })
    .replaceAll(/\bparley account (\w+) acc_\w+/g, (_, verb: string) => words[verb] ?? verb)
  return text ?? null
}
