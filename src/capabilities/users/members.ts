/** Who belongs to a workspace, and in which role. An ended membership is kept, because keys refer to it. */
import { requireMaker } from '../../access/makers.ts'
import { isEnough } from '../../access/needs.ts'
import type { App } from '../../app.ts'
import type { Role } from '../../contract.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { notFound } from '../../lib/names.ts'
import { loginsChanged } from '../accounts/accounts.ts'
import { type Actor, record } from '../audit/audit.ts'
import { listOpenCampaigns, stopCampaigns, takeOverCampaigns } from '../campaigns/campaigns.ts'
import { memberName } from '../chats/chats.ts'
import { listWebhooksOf, stopWebhooksOf, takeOverWebhooks, webhookRole } from '../webhooks/webhooks.ts'
import { endSetupLinks } from './identities.ts'

interface Member {
  readonly user_id: string
  readonly email: string
  readonly name: string
  readonly role: Role
  readonly joined_at: Date
  readonly last_seen_at: Date | null
  /** The newest set-up link that still works. */
  readonly setup_link: {
    readonly created_at: string
    readonly expires_at: string
    /** Null: an operator at the terminal, or unknown. */
    readonly created_by: { readonly user_id: string; readonly name: string } | null
  } | null
}

/** Identifies one membership of one user. */
interface MemberKey {
  readonly workspace_id: string
  readonly user_id: string
}

function selectMembers(db: Db, workspace_id: string, user_id: string | null): Promise<Member[]> {
  return db.rows<Member>(sql`
    select m.user_id, u.email, u.name, m.role, m.created_at as joined_at,
      (select max(s.last_seen_at) from sessions s where s.user_id = m.user_id) as last_seen_at,
      (select json_build_object('created_at', wire_time(l.created_at), 'expires_at', wire_time(l.expires_at),
          'created_by', (select json_build_object('user_id', u.id, 'name', ${memberName})
            from users u where u.id = l.made_by))
        from setup_links l where l.user_id = m.user_id and l.used_at is null and l.expires_at > domain_now()
        order by l.created_at desc limit 1) as setup_link
    from memberships m join users u on u.id = m.user_id
    where m.workspace_id = ${workspace_id} and m.ended_at is null
      and (${user_id}::uuid is null or m.user_id = ${user_id})
    order by m.created_at, m.user_id`)
}

export function listMembers(db: Db, workspace_id: string): Promise<Member[]> {
  return selectMembers(db, workspace_id, null)
}

/** A user of another workspace, or a former member, is reported as not found. */
export async function requireMember(db: Db, { workspace_id, user_id }: MemberKey): Promise<Member> {
  const [member] = isUuid(user_id) ? await selectMembers(db, workspace_id, user_id) : []
  if (!member) throw notFound('member', user_id)
  return member
}

/**
 * Counts for the user's keys too, on every process within a second. Webhooks of a member who may have none any more stop, as
 * at the end of their membership.
 */
export async function setRole(
  app: App,
  actor: Actor,
  { role, ...key }: MemberKey & { role: Role },
): Promise<Member> {
  await requireMember(app.db, key)
  const stopped = await app.db.transaction(async (tx) => {
    await lockMembers(tx, key.workspace_id)
    const before = await tx.maybe<{ role: Role }>(sql`
      select role from memberships
      where workspace_id = ${key.workspace_id} and user_id = ${key.user_id} and ended_at is null`)
    if (!before) throw notFound('member', key.user_id)
    if (before.role === role) return []
    if (before.role === 'owner') await requireOtherOwner(app, tx, key)
    // Waits for transactions in which this member makes something, so that what follows sees it.
    await tx.run(sql`
      update memberships set role = ${role}
      where workspace_id = ${key.workspace_id} and user_id = ${key.user_id}`)
    // An admin may have made a link, and must not become an owner by it.
    if (role === 'owner') await endSetupLinks(tx, key.user_id) // guard: links from before an owner
    const mayHave = isEnough(role, { role: webhookRole, scopes: [] }) // guard: webhooks end with the role of their maker
    const webhooks = mayHave ? [] : await stopWebhooksOf(tx, key)
    await record(app, tx, actor, {
      action: 'member.role_changed',
      target: key.user_id,
      workspace_id: key.workspace_id,
      detail: {
        from: before.role,
        to: role,
        ...(webhooks.length > 0 && { webhooks: { stopped: webhooks } }),
      },
    })
    return webhooks
  })
  await app.settings.refresh()
  if (stopped.length > 0) app.wake.mark({ workspace_id: key.workspace_id, kind: 'webhooks' })
  return requireMember(app.db, key)
}

/** What another member takes over; everything else that sends stops. */
interface TakeOver {
  /** The member who takes it over. */
  readonly taker_id: string
  readonly webhooks: readonly string[]
  readonly campaigns: readonly string[]
}

/** What became of the things that a member made. Each names ids. */
interface Departure {
  readonly webhooks: { readonly stopped: readonly string[]; readonly taken_over: readonly string[] }
  readonly campaigns: {
    readonly paused: readonly string[]
    readonly cancelled: readonly string[]
    readonly taken_over: readonly string[]
    readonly going_on: readonly string[]
  }
}

/**
 * Removes the user's access, on every process within a second. Triggers revoke their keys, end their sessions, links and
 * logins, and stop their webhooks. Campaigns stop if a person chose: `take_over` names what does not. Without a choice, as at the
 * terminal, they go on, because cancelling one cannot be undone.
 */
export async function endMembership(
  app: App,
  actor: Actor,
  { take_over, ...key }: MemberKey & { readonly take_over?: TakeOver },
): Promise<Departure> {
  await requireMember(app.db, key)
  const departure = await app.db.transaction(async (tx) => {
    await lockMembers(tx, key.workspace_id)
    await requireOtherOwner(app, tx, key)
    // Waits for transactions in which this member makes something, so that what follows sees it.
    await tx.maybe(sql`
      select 1 from memberships
      where workspace_id = ${key.workspace_id} and user_id = ${key.user_id} for no key update -- guard: the end of a membership waits for its makers
      `)
    const made = await settleMade(app, tx, { key, take_over })
    const ended = await tx.maybe<{ role: Role }>(sql`
      update memberships set ended_at = domain_now()
      where workspace_id = ${key.workspace_id} and user_id = ${key.user_id} and ended_at is null
      returning role`)
    if (!ended) throw notFound('member', key.user_id)
    await record(app, tx, actor, {
      action: 'member.removed',
      target: key.user_id,
      workspace_id: key.workspace_id,
      detail: { role: ended.role, ...made },
    })
    return made
  })
  await app.settings.refresh()
  app.wake.signal(loginsChanged)
  const { workspace_id } = key
  app.wake.mark(...changedWith.map((kind) => ({ workspace_id, kind }))) // guard: open pages show the end of a membership
  return departure
}

/** What pages show of a member and of what they made. The terminal has no route that says so. */
const changedWith = ['members', 'assignees', 'webhooks', 'campaigns', 'accounts', 'keys'] as const

async function settleMade(
  app: App,
  tx: Tx,
  { key, take_over }: { key: MemberKey; take_over: TakeOver | undefined },
): Promise<Departure> {
  const { workspace_id, user_id } = key
  if (take_over) await requireMaker(tx, { workspace_id, user_id: take_over.taker_id }) // guard: a former member takes nothing over
  const webhooks = take_over
    ? await takeOverWebhooks(tx, { ...key, to: take_over.taker_id, ids: take_over.webhooks })
    : []
  const campaigns = take_over
    ? await takeOverCampaigns(tx, key, { to: take_over.taker_id, ids: take_over.campaigns })
    : []
  const lost = (take_over?.webhooks.length ?? 0) - webhooks.length
  if (lost > 0) throw changedMeanwhile()
  // The trigger stops these when the membership ends.
  const stopped = (await listWebhooksOf(app, tx, { workspace_id, user_id })).filter(({ active }) => active)
  const halted = take_over ? await stopCampaigns(tx, key) : { paused: [], cancelled: [] } // guard: campaigns that are not taken over stop
  const going_on = take_over ? [] : await listOpenCampaigns(tx, key)
  return {
    webhooks: { stopped: stopped.map(({ id }) => id), taken_over: webhooks },
    campaigns: { ...halted, taken_over: campaigns, going_on: going_on.map(({ id }) => id) },
  }
}

function changedMeanwhile(): ApiError {
  return new ApiError('conflict', {
    detail:
      'A webhook to take over is not one of this member any more. Look at the list again. Nothing was done.',
  })
}

/** What a member made and what would happen to it, for the person who removes them. */
export async function describeMade(app: App, key: MemberKey) {
  const { db } = app
  const [webhooks, campaigns, counts] = await Promise.all([
    listWebhooksOf(app, db, key),
    listOpenCampaigns(db, key),
    db.one<{ keys: number; links: number; logins: number }>(sql`
      select
        (select count(*)::int from keys
          where workspace_id = ${key.workspace_id} and user_id = ${key.user_id} and revoked_at is null
            and (expires_at is null or expires_at > domain_now())) as keys,
        (select count(*)::int from setup_links l
          where l.made_by = ${key.user_id} and l.used_at is null and l.expires_at > domain_now() and exists (
            select from memberships m where m.user_id = l.user_id and m.workspace_id = ${key.workspace_id})) as links,
        (select count(*)::int from account_logins
          where workspace_id = ${key.workspace_id} and actor = ${`user:${key.user_id}`} and way <> 'logout'
            and state not in ('done', 'failed') and alive_until > real_now()) as logins`),
  ])
  return {
    webhooks: webhooks.map(({ id, url, active }) => ({ id, url, active })),
    campaigns,
    ...counts,
  }
}

/** The lock makes role changes of a workspace sequential: two owners leaving at once would leave none. */
async function lockMembers(tx: Tx, workspace_id: string): Promise<void> {
  await tx.one(sql`select id from workspaces where id = ${workspace_id} for no key update`) // guard: one owner remains
}

/** Another owner counts only if they can sign in: with a password, or at the configured identity provider. */
async function requireOtherOwner(app: App, tx: Tx, { workspace_id, user_id }: MemberKey): Promise<void> {
  const provider = app.config.oidc?.issuer ?? null
  const { last } = await tx.one<{ last: boolean }>(sql`
    select bool_or(m.user_id = ${user_id}) and not bool_or(m.user_id <> ${user_id} and u.disabled_at is null
      and exists (select from identities i where i.user_id = u.id and i.issuer in ('local', ${provider})) -- guard: another owner can sign in
      ) as last
    from memberships m join users u on u.id = m.user_id
    where m.workspace_id = ${workspace_id} and m.role = 'owner' and m.ended_at is null`)
  if (last) {
    throw new ApiError('conflict', {
      detail: 'A workspace needs at least one owner who can sign in. Make another member an owner first.',
    })
  }
}

/**
 * Whether an admin may have a set-up link for this member. The link's holder can become the user, so it must not give access
 * to anything beyond this workspace, nor replace a way of signing in that the user has chosen.
 */
export async function mayLink(db: Db, { workspace_id, user_id }: MemberKey): Promise<boolean> {
  const { may } = await db.one<{ may: boolean }>(sql`
    select not u.operator -- guard: no link for an operator
      and not exists (select from identities i where i.user_id = u.id) -- guard: no link beside another way in
      and not exists (select from memberships m where m.user_id = u.id and m.ended_at is null
        and m.workspace_id <> ${workspace_id} -- guard: no link into another workspace
      ) as may
    from users u where u.id = ${user_id}`)
  return may
}
