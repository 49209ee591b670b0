/** What a person made ends with them: webhooks, campaigns, keys, sessions, links and logins. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { hangMs, until } from '../../../test/harness/process.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { noteDrives, noteHeartbeat } from '../../ledger/workers.ts'
import { newId } from '../../lib/ids.ts'
import type { Mark } from '../../mark.ts'
import { createKey } from '../keys/keys.ts'
import { endMembership } from './members.ts'
import { consumeSetupLink, createUser, makeSetupLink, setUserEnabled } from './users.ts'

let service: Service
let own: Tenant
let boss: string
beforeAll(async () => {
  service = await openService()
  own = await service.tenant()
  boss = await signIn(service, own.user_id)
  await service.allow(own)
  await service.open('extended')
})
afterAll(() => service.close())
afterEach(() =>
  service.app.db.run(sql`update webhooks set deleted_at = now(), active = false where deleted_at is null`),
)

let serial = 0

interface Person {
  readonly id: string
  readonly cookie: string
  readonly key: string
}

/** An admin with a key of their own making. */
async function addAdmin(workspace_id = own.workspace_id): Promise<Person> {
  const email = `leaver${serial++}@acme.example`
  const { id } = await createUser(service.app, 'system', { email, workspace_id, role: 'admin' })
  await service.allow({ workspace_id, user_id: id })
  const wanted = { workspace_id, user_id: id, name: 'own', scopes: ['read', 'write', 'send', 'campaigns'] }
  const { key } = await createKey(service.app, `user:${id}`, wanted)
  return { id, cookie: await signIn(service, id), key }
}

const within = (path: string) => `/w/${own.workspace_id}${path}`
const ask = (method: string, path: string, cookie: string, body?: unknown) =>
  askDashboard(service, method, within(path), { cookie, body })

interface Hook {
  readonly id: string
  readonly active: boolean
  readonly stop_reason: string | null
  readonly created_by: { readonly user_id: string } | null
}

async function makeWebhook({ key }: { key: string }): Promise<string> {
  const { body } = await service.post('/webhooks', { key, body: { url: `https://example.com/${serial++}` } })
  return (body.webhook as Hook).id
}

async function readWebhook(id: string): Promise<Hook> {
  const { body } = await service.get('/webhooks', { key: own.key })
  return (body.webhooks as Hook[]).find((each) => each.id === id) as Hook
}

let account_id: string | undefined
/** An account that waits for a login. */
let unconnected: string | undefined

async function makeCampaign({ key }: { key: string }, { steps = false } = {}): Promise<string> {
  account_id ??= await service.account(own.workspace_id)
  const body = {
    name: `Campaign ${serial}`,
    message_text: 'Hello',
    account_id,
    contacts: [{ identifier: `@person_${serial++}_x` }],
    ...(steps && { steps: [{ branch: 'no_reply', wait_hours: 48, variants: ['Again'] }] }),
  }
  const { status, body: made } = await service.post('/campaigns', { key, body })
  expect([status, made.error]).toEqual([201, undefined])
  return (made.campaign as { id: string }).id
}

const readCampaign = (id: string) =>
  service.app.db.one<{ status: string; user_id: string }>(
    sql`select status, user_id from campaigns where id = ${id}`,
  )

/** A login that this member has begun. Returns its account. */
async function beginLogin(workspace_id: string, { id }: Person): Promise<string> {
  const account = await service.account(workspace_id, 'NEEDS_LOGIN')
  await service.app.db.run(sql`
    insert into account_logins (account_id, workspace_id, actor, way, state, attempt, alive_until)
    values (${account}, ${workspace_id}, ${`user:${id}`}, 'qr', 'qr', ${newId()}, real_now() + interval '1 minute')`)
  return account
}

async function readLogin(account: string): Promise<string> {
  const { state } = await service.app.db.one<{ state: string }>(
    sql`select state from account_logins where account_id = ${account}`,
  )
  return state
}

/** Whether the set-up link would have let its holder in. Asking uses it. */
async function isOpen(link: string): Promise<boolean> {
  const token = link.split('#')[1] as string
  try {
    await service.app.db.transaction((tx) => consumeSetupLink(tx, token))
    return true
  } catch (error) {
    expect(String(error)).toContain('unknown')
    return false
  }
}

async function readRemoval(user_id: string): Promise<Record<string, unknown>> {
  const { detail } = await service.app.db.one<{ detail: Record<string, unknown> }>(sql`
    select detail::jsonb as detail from audit
    where action = 'member.removed' and target = ${user_id} order by seq desc limit 1`)
  return detail
}

describe('GET /members/{user_id}/made', () => {
  test('200 with the webhooks, campaigns, keys and links of the member, and what stopping does', async () => {
    const admin = await addAdmin()
    const webhook = await makeWebhook(admin)
    const sequence = await makeCampaign(admin, { steps: true })
    const single = await makeCampaign(admin)
    const invited = await createUser(service.app, 'system', {
      email: `invited${serial++}@acme.example`,
      workspace_id: own.workspace_id,
      role: 'member',
    })
    await ask('POST', `/members/${invited.id}/setup-link`, admin.cookie)
    const { status, body } = await ask('GET', `/members/${admin.id}/made`, boss)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      webhooks: [{ id: webhook, active: true }],
      campaigns: [
        { id: single, kind: 'contacts', status: 'queued', stop: 'cancel' },
        { id: sequence, kind: 'contacts', status: 'queued', stop: 'pause' },
      ],
      keys: 1,
      links: 1,
      logins: 0,
      can_take_over: { webhooks: true, campaigns: true },
    })
    const { body: listed } = await ask('GET', '/members', boss)
    const member = (listed.members as { user_id: string }[]).find((each) => each.user_id === invited.id)
    expect(member).toMatchObject({ setup_link: { created_by: { user_id: admin.id } } })
    const { body: ownView } = await ask('GET', `/members/${admin.id}/made`, admin.cookie)
    expect(ownView.can_take_over).toEqual({ webhooks: false, campaigns: false })
  })
})

describe('DELETE /members/{user_id}', () => {
  test('200 stops webhooks and campaigns that the caller does not take over, and says why', async () => {
    const admin = await addAdmin()
    const [kept, stopped] = [await makeWebhook(admin), await makeWebhook(admin)]
    const foreign = await makeWebhook(own)
    const [keptCampaign, sequence, single] = [
      await makeCampaign(admin),
      await makeCampaign(admin, { steps: true }),
      await makeCampaign(admin),
    ]
    const take_over = { webhooks: [kept], campaigns: [keptCampaign] }
    expect((await ask('DELETE', `/members/${admin.id}`, boss, { take_over })).status).toBe(200)
    expect(await readWebhook(kept)).toMatchObject({
      active: true,
      stop_reason: null,
      created_by: { user_id: own.user_id },
    })
    expect(await readWebhook(stopped)).toMatchObject({
      active: false,
      stop_reason: 'maker_removed',
      created_by: { user_id: admin.id },
    })
    expect(await readWebhook(foreign)).toMatchObject({ active: true, stop_reason: null })
    expect(await readCampaign(keptCampaign)).toEqual({ status: 'queued', user_id: own.user_id })
    expect(await readCampaign(sequence)).toEqual({ status: 'paused', user_id: admin.id })
    expect(await readCampaign(single)).toEqual({ status: 'cancelled', user_id: admin.id })
    expect(await readRemoval(admin.id)).toMatchObject({
      webhooks: { stopped: [stopped], taken_over: [kept] },
      campaigns: { paused: [sequence], cancelled: [single], taken_over: [keptCampaign], going_on: [] },
    })
    const { body } = await ask('GET', '/workspace', boss)
    expect(body.stopped_webhooks).toBe(1)
  })

  test('200 ends keys, sessions, links that the member made or has, and logins that they began', async () => {
    const admin = await addAdmin()
    const { workspace_id } = own
    const email = `invited${serial++}@acme.example`
    const invited = await createUser(service.app, 'system', { email, workspace_id, role: 'member' })
    const { body } = await ask('POST', `/members/${invited.id}/setup-link`, admin.cookie)
    const { setup_link } = await makeSetupLink(service.app, 'system', admin.id)
    const account = await beginLogin(workspace_id, admin)
    expect((await ask('DELETE', `/members/${admin.id}`, boss, {})).status).toBe(200)
    expect((await service.get('/me', { key: admin.key })).status).toBe(401)
    expect((await askDashboard(service, 'GET', '/session', { cookie: admin.cookie })).status).toBe(401)
    for (const link of [String(body.setup_link), setup_link]) expect(await isOpen(link)).toBe(false)
    expect(await readLogin(account)).toBe('failed')
  })

  test('200 leaves an operator signed in who loses their last workspace', async () => {
    const admin = await addAdmin()
    await service.app.db.run(sql`update users set operator = true where id = ${admin.id}`)
    expect((await ask('DELETE', `/members/${admin.id}`, boss, {})).status).toBe(200)
    expect((await askDashboard(service, 'GET', '/session', { cookie: admin.cookie })).status).toBe(200)
  })

  test('200 leaves a member of another workspace signed in there, with their links and webhooks there', async () => {
    const admin = await addAdmin()
    const other = await service.tenant('Other')
    const { email } = await service.app.db.one<{ email: string }>(
      sql`select email from users where id = ${admin.id}`,
    )
    await createUser(service.app, 'system', { email, workspace_id: other.workspace_id, role: 'admin' })
    const { key } = await service.key({ workspace_id: other.workspace_id, user_id: admin.id })
    const elsewhere = await makeWebhook({ key })
    const invited = await createUser(service.app, 'system', {
      email: `elsewhere${serial++}@acme.example`,
      workspace_id: other.workspace_id,
      role: 'member',
    })
    const path = `/w/${other.workspace_id}/members/${invited.id}/setup-link`
    const { body: made } = await askDashboard(service, 'POST', path, { cookie: admin.cookie })
    const { setup_link } = await makeSetupLink(service.app, 'system', admin.id)
    const account = await beginLogin(other.workspace_id, admin)
    expect((await ask('DELETE', `/members/${admin.id}`, boss, {})).status).toBe(200)
    expect((await askDashboard(service, 'GET', '/session', { cookie: admin.cookie })).status).toBe(200)
    expect((await service.get('/me', { key })).status).toBe(200)
    for (const link of [String(made.setup_link), setup_link]) expect(await isOpen(link)).toBe(true)
    expect(await readLogin(account)).toBe('qr')
    const { body } = await service.get('/webhooks', { key: other.key })
    expect(body.webhooks).toMatchObject([{ id: elsewhere, active: true, stop_reason: null }])
  })

  test('400 for a member who leaves and takes something over, 403 for a taker off the allowlist', async () => {
    const admin = await addAdmin()
    const webhook = await makeWebhook(admin)
    const campaign = await makeCampaign(admin)
    const own_choice = { take_over: { webhooks: [webhook] } }
    expect((await ask('DELETE', `/members/${admin.id}`, admin.cookie, own_choice)).body.code).toBe(
      'invalid_request',
    )
    const other = await addAdmin()
    await service.allow({ workspace_id: own.workspace_id, user_id: other.id }, false)
    await service.allow(own)
    const taking = { take_over: { campaigns: [campaign] } }
    const refused = await ask('DELETE', `/members/${admin.id}`, other.cookie, taking)
    expect([refused.status, refused.body.code]).toEqual([403, 'not_allowlisted'])
    expect((await readWebhook(webhook)).active).toBe(true)
    expect((await readCampaign(campaign)).user_id).toBe(admin.id)
  })

  test('409 for a webhook that is not of this member: nothing is done', async () => {
    const admin = await addAdmin()
    const foreign = await makeWebhook(await addAdmin())
    const answer = await ask('DELETE', `/members/${admin.id}`, boss, { take_over: { webhooks: [foreign] } })
    expect([answer.status, answer.body.code]).toEqual([409, 'conflict'])
    expect((await service.get('/me', { key: admin.key })).status).toBe(200)
    const theirs = await makeCampaign(await addAdmin())
    expect(
      (await ask('DELETE', `/members/${admin.id}`, boss, { take_over: { campaigns: [theirs] } })).status,
    ).toBe(200)
    expect((await readCampaign(theirs)).user_id).not.toBe(own.user_id)
  })

  test('a broadcast that is not taken over sends to nobody else', async () => {
    const admin = await addAdmin()
    const id = newId()
    const { workspace_id } = own
    const account = await service.account(workspace_id)
    const chat_id = await service.chat({ account_id: account, workspace_id, id: '77' })
    expect(chat_id).toBe('platform:chat:77')
    await service.post('/broadcast', {
      key: admin.key,
      body: { account_id: account, audience_type: 'stage', audience_ref: 'new', message_text: 'Hello' },
      headers: { 'idempotency-key': id },
    })
    expect((await ask('DELETE', `/members/${admin.id}`, boss, {})).status).toBe(200)
    const rows = await service.app.db.rows<{ status: string }>(sql`
      select r.status from campaign_recipients r join campaigns k on k.id = r.campaign_id
      where k.user_id = ${admin.id} and k.kind = 'broadcast'`)
    expect(rows).toEqual([{ status: 'cancelled' }])
  })
})

describe('without a choice', () => {
  test('the terminal stops webhooks and lets campaigns go on', async () => {
    const admin = await addAdmin()
    const webhook = await makeWebhook(admin)
    const campaign = await makeCampaign(admin)
    const key = { workspace_id: own.workspace_id, user_id: admin.id }
    expect(await endMembership(service.app, 'cli:ops', key)).toMatchObject({
      webhooks: { stopped: [webhook] },
      campaigns: { going_on: [campaign], cancelled: [], paused: [] },
    })
    expect(await readWebhook(webhook)).toMatchObject({ active: false, stop_reason: 'maker_removed' })
    expect((await readCampaign(campaign)).status).toBe('queued')
  })

  test('the terminal notifies open pages of what has ended', async () => {
    const admin = await addAdmin()
    const marks: Mark[] = []
    const stop = service.app.wake.onMarks((some) => marks.push(...some))
    const { workspace_id } = own
    await endMembership(service.app, 'cli:ops', { workspace_id, user_id: admin.id })
    const kinds = ['members', 'assignees', 'webhooks', 'campaigns', 'accounts', 'keys']
    const isMarked = (kind: string) =>
      marks.some((mark) => mark.kind === kind && mark.workspace_id === workspace_id)
    await until('each is marked', hangMs, () => kinds.every(isMarked))
    stop()
  })

  test('disabling a user stops their webhooks for good, in every workspace', async () => {
    const admin = await addAdmin()
    const webhook = await makeWebhook(admin)
    await setUserEnabled(service.app, 'system', { id: admin.id, enabled: false })
    expect(await readWebhook(webhook)).toMatchObject({ active: false, stop_reason: 'maker_disabled' })
    const { detail } = await service.app.db.one<{ detail: unknown }>(sql`
      select detail::jsonb as detail from audit where action = 'user.disabled' and target = ${admin.id}`)
    expect(detail).toEqual({ webhooks: { stopped: [webhook] } })
    await setUserEnabled(service.app, 'system', { id: admin.id, enabled: true })
    expect(await readWebhook(webhook)).toMatchObject({ active: false, stop_reason: 'maker_disabled' })
  })

  test('disabling a user ends their keys, whoever issued them, and their links and logins, for good', async () => {
    const admin = await addAdmin()
    const { workspace_id } = own
    const issued = await service.key({ workspace_id, user_id: admin.id })
    const invited = await createUser(service.app, 'system', {
      email: `invited${serial++}@acme.example`,
      workspace_id,
      role: 'member',
    })
    const { body } = await ask('POST', `/members/${invited.id}/setup-link`, admin.cookie)
    const { setup_link } = await makeSetupLink(service.app, 'system', admin.id)
    const account = await beginLogin(workspace_id, admin)
    await setUserEnabled(service.app, 'system', { id: admin.id, enabled: false })
    await setUserEnabled(service.app, 'system', { id: admin.id, enabled: true })
    for (const { key } of [admin, issued]) expect((await service.get('/me', { key })).status).toBe(401)
    for (const link of [String(body.setup_link), setup_link]) expect(await isOpen(link)).toBe(false)
    expect(await readLogin(account)).toBe('failed')
    expect((await service.get('/me', { key: own.key })).status).toBe(200)
  })

  test('a webhook without a known maker goes on, and says so', async () => {
    const admin = await addAdmin()
    const webhook = await makeWebhook(admin)
    await service.app.db.run(sql`update webhooks set made_by = null where id = ${webhook}`)
    await endMembership(service.app, 'cli:ops', { workspace_id: own.workspace_id, user_id: admin.id })
    expect(await readWebhook(webhook)).toMatchObject({ active: true, stop_reason: null, created_by: null })
  })
})

describe('PATCH /members/{user_id}', () => {
  test('200 stops the webhooks of an admin who becomes a member, and of no other; who activates one takes it over', async () => {
    const [admin, other] = [await addAdmin(), await addAdmin()]
    const [webhook, foreign] = [await makeWebhook(admin), await makeWebhook(other)]
    expect((await ask('PATCH', `/members/${admin.id}`, boss, { role: 'owner' })).status).toBe(200)
    expect((await ask('PATCH', `/members/${admin.id}`, boss, { role: 'admin' })).status).toBe(200)
    expect(await readWebhook(webhook)).toMatchObject({ active: true })
    expect((await ask('PATCH', `/members/${admin.id}`, boss, { role: 'member' })).status).toBe(200)
    expect(await readWebhook(webhook)).toMatchObject({ active: false, stop_reason: 'maker_removed' })
    expect(await readWebhook(foreign)).toMatchObject({ active: true, stop_reason: null })
    const { detail } = await service.app.db.one<{ detail: object }>(sql`
      select detail::jsonb as detail from audit
      where action = 'member.role_changed' and target = ${admin.id} order by seq desc limit 1`)
    expect(detail).toEqual({ from: 'admin', to: 'member', webhooks: { stopped: [webhook] } })
    await ask('PATCH', `/members/${admin.id}`, boss, { role: 'admin' })
    expect(await readWebhook(webhook)).toMatchObject({ active: false })
    await service.call('PATCH', `/webhooks/${webhook}`, { key: own.key, body: { active: true } })
    expect(await readWebhook(webhook)).toMatchObject({ active: true, created_by: { user_id: own.user_id } })
  })

  test('200 for a webhook of a member with a key that an operator issued', async () => {
    const admin = await addAdmin()
    await ask('PATCH', `/members/${admin.id}`, boss, { role: 'member' })
    const { key } = await service.key({ workspace_id: own.workspace_id, user_id: admin.id })
    const webhook = await makeWebhook({ key })
    expect(await readWebhook(webhook)).toMatchObject({ active: true, created_by: { user_id: admin.id } })
  })
})

describe('PATCH /webhooks/{webhook_id}', () => {
  test('200: a user who sets the address becomes its maker, so it stops with them', async () => {
    const admin = await addAdmin()
    const webhook = await makeWebhook(own)
    const url = 'https://example.com/redirected'
    await service.call('PATCH', `/webhooks/${webhook}`, { key: admin.key, body: { url } })
    expect((await readWebhook(webhook)).created_by).toMatchObject({ user_id: admin.id })
    await ask('DELETE', `/members/${admin.id}`, boss, {})
    expect(await readWebhook(webhook)).toMatchObject({ active: false, stop_reason: 'maker_removed' })
  })

  test('200: activating one whose maker has left takes it over; other changes do not', async () => {
    const admin = await addAdmin()
    const webhook = await makeWebhook(admin)
    await service.call('PATCH', `/webhooks/${webhook}`, {
      key: own.key,
      body: { events: ['message.received'] },
    })
    await service.call('PATCH', `/webhooks/${webhook}`, { key: own.key, body: { active: true } })
    expect((await readWebhook(webhook)).created_by).toMatchObject({ user_id: admin.id })
    await ask('DELETE', `/members/${admin.id}`, boss, {})
    await service.call('PATCH', `/webhooks/${webhook}`, { key: own.key, body: { active: true } })
    expect(await readWebhook(webhook)).toMatchObject({
      active: true,
      stop_reason: null,
      created_by: { user_id: own.user_id },
    })
  })
})

describe('resuming', () => {
  test('a campaign of a former member makes it the campaign of the admin who resumes it', async () => {
    const admin = await addAdmin()
    const campaign = await makeCampaign(admin, { steps: true })
    await ask('DELETE', `/members/${admin.id}`, boss, {})
    const { status } = await askDashboard(service, 'POST', within(`/campaigns/${campaign}/resume`), {
      cookie: boss,
      headers: { 'idempotency-key': newId() },
    })
    expect(status).toBe(200)
    expect(await readCampaign(campaign)).toEqual({ status: 'queued', user_id: own.user_id })
  })
})

describe('at the same moment', () => {
  /** A request has passed its checks once it waits for a lock of the test's own transaction. */
  const untilBlocked = () =>
    until('a request waits', hangMs, async () => {
      const { blocked } = await service.app.db.one<{ blocked: boolean }>(sql`
        select exists (select from pg_stat_activity where cardinality(pg_blocking_pids(pid)) > 0
          and datname = current_database()) as blocked`)
      return blocked
    })

  /** Begins the end of a membership in another transaction, and lets `act` run against it before it commits. */
  async function whileLeaving(
    admin: Person,
    act: () => Promise<unknown>,
    change = sql`ended_at = domain_now()`,
  ): Promise<unknown> {
    let acting: Promise<unknown> = Promise.resolve()
    await service.app.db.transaction(async (tx) => {
      await tx.run(sql`
        update memberships set ${change}
        where workspace_id = ${own.workspace_id} and user_id = ${admin.id}`)
      acting = act()
      await untilBlocked()
    })
    return acting
  }

  test.each([
    [
      'a webhook',
      (admin: Person) =>
        service.post('/webhooks', { key: admin.key, body: { url: 'https://example.com/x' } }),
    ],
    [
      'a campaign',
      (admin: Person) =>
        service.post('/campaigns', {
          key: admin.key,
          body: { message_text: 'Hello', account_id, contacts: [{ identifier: '@nobody_yet' }] },
        }),
    ],
    [
      'a broadcast',
      (admin: Person) =>
        service.post('/broadcast', {
          key: admin.key,
          body: { account_id, audience_type: 'stage', audience_ref: 'new', message_text: 'Hello' },
        }),
    ],
    [
      'a set-up link',
      (admin: Person, invited: string) => ask('POST', `/members/${invited}/setup-link`, admin.cookie),
    ],
    [
      'the address of a webhook',
      async (admin: Person, _: string, webhook: string) =>
        service.call('PATCH', `/webhooks/${webhook}`, {
          key: admin.key,
          body: { url: 'https://example.com/mine' },
        }),
    ],
    ['a key', (admin: Person) => ask('POST', '/keys', admin.cookie, { name: 'late', scopes: ['read'] })],
    ['a login', (admin: Person) => ask('POST', `/accounts/${unconnected}/login`, admin.cookie, {})],
  ] as const)('403 for %s that a member makes while they are removed: nothing stays', async (_, act) => {
    const admin = await addAdmin()
    const { workspace_id } = own
    account_id ??= await service.account(workspace_id)
    const email = `late${serial++}@acme.example`
    const invited = await createUser(service.app, 'system', { email, workspace_id, role: 'member' })
    const webhook = await makeWebhook(own)
    const worker_id = newId()
    await noteHeartbeat(service.app.db, { worker_id, platforms: ['sandbox'] })
    await noteDrives(service.app.db, worker_id, true)
    unconnected ??= await service.account(workspace_id, 'NEEDS_LOGIN')
    const answer = await whileLeaving(admin, () => act(admin, invited.id, webhook))
    expect(answer).toMatchObject({ status: 403, body: { code: 'missing_role' } })
    const { made } = await service.app.db.one<{ made: number }>(sql`
      select ((select count(*) from webhooks where made_by = ${admin.id})
        + (select count(*) from campaigns where user_id = ${admin.id})
        + (select count(*) from setup_links where made_by = ${admin.id})
        + (select count(*) from keys where user_id = ${admin.id} and name = 'late'))::int as made`)
    expect(made).toBe(0)
    const logins = await service.app.db.rows(
      sql`select from account_logins where actor = ${`user:${admin.id}`}`,
    )
    expect(logins).toEqual([])
  })

  test.each([
    [
      'a webhook',
      (key: string) => service.post('/webhooks', { key, body: { url: 'https://example.com/late' } }),
    ],
    [
      'the address of a webhook',
      (key: string, webhook: string) =>
        service.call('PATCH', `/webhooks/${webhook}`, { key, body: { url: 'https://example.com/later' } }),
    ],
  ] as const)('403 for %s that an admin makes while they become a member: nothing stays', async (_, act) => {
    const admin = await addAdmin()
    const webhook = await makeWebhook(own)
    const answer = await whileLeaving(admin, () => act(admin.key, webhook), sql`role = 'member'`)
    expect(answer).toMatchObject({ status: 403, body: { code: 'missing_role' } })
    expect(await service.app.db.rows(sql`select from webhooks where made_by = ${admin.id}`)).toEqual([])
  })

  test('what a member is just making stops too: the removal waits for it', async () => {
    const admin = await addAdmin()
    const { workspace_id } = own
    const removing = await service.app.db.transaction(async (tx) => {
      // As a creation holds it before its commit.
      await tx.one(sql`
        select 1 from memberships where workspace_id = ${workspace_id} and user_id = ${admin.id} for share`)
      await tx.run(sql`
        insert into campaigns (id, workspace_id, user_id, kind, status, message_text)
        values (${newId()}, ${workspace_id}, ${admin.id}, 'contacts', 'queued', 'Hello')`)
      const removal = ask('DELETE', `/members/${admin.id}`, boss, {})
      await untilBlocked()
      return { removal }
    })
    expect((await removing.removal).status).toBe(200)
    const rows = await service.app.db.rows<{ status: string }>(
      sql`select status from campaigns where user_id = ${admin.id}`,
    )
    expect(rows).toEqual([{ status: 'cancelled' }])
  })

  test('403 for a taker who is removed while they take over: nothing is done', async () => {
    const [admin, taker] = [await addAdmin(), await addAdmin()]
    const webhook = await makeWebhook(admin)
    const answer = await whileLeaving(taker, () =>
      ask('DELETE', `/members/${admin.id}`, taker.cookie, { take_over: { webhooks: [webhook] } }),
    )
    expect(answer).toMatchObject({ status: 403, body: { code: 'missing_role' } })
    expect(await readWebhook(webhook)).toMatchObject({ active: true, created_by: { user_id: admin.id } })
  })
})
