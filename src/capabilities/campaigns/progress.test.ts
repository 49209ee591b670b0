/** Campaigns at the dashboard: their progress in a list, and a team that pauses, resumes and cancels them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { insertCampaign, type NewCampaign } from '../../../test/harness/campaigns.ts'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { openService, type Service } from '../../../test/harness/service.ts'
import { openTeam, type Team } from '../../../test/harness/team.ts'
import type { Role } from '../../contract.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'

let service: Service
let team: Team
let serial = 5_000

beforeAll(async () => {
  service = await openService({ env: { PARLEY_CAMPAIGN_CANCEL_PER_MINUTE: '1000' } })
  team = await openTeam(service)
  await service.allow(team)
})
afterAll(() => service.close())

const db = () => service.app.db
const people = (count: number, account_id = team.account_id) =>
  Array.from({ length: count }, () => ({ account_id, person_id: serial++ }))
const campaign = (given: NewCampaign) => insertCampaign(db(), team, given)

interface Listed {
  readonly id: string
  readonly opt_outs: number
  readonly totals: Readonly<Record<string, number>>
  readonly next: { readonly at: string | null; readonly sentence: string } | null
  readonly created_by: { readonly user_id: string }
}

async function list(query = ''): Promise<{ campaigns: Listed[]; next_cursor: string | null }> {
  const { status, body } = await team.ask('GET', `/campaign_progress${query}`)
  expect([status, body.error]).toEqual([200, undefined])
  return body as unknown as { campaigns: Listed[]; next_cursor: string | null }
}

async function makeLive(account_id: string): Promise<void> {
  await db().run(sql`
    insert into account_hosts (account_id, workspace_id, observed_at) values (${account_id}, ${team.workspace_id}, now())
    on conflict (account_id) do update set observed_at = now()`)
}

describe('GET /campaign_progress', () => {
  test('200 newest first, with totals, who created each and the earliest next message of its accounts', async () => {
    const support = await service.account(team.workspace_id)
    await db().run(sql`update accounts set name = 'Support' where id = ${support}`)
    await makeLive(team.account_id)
    await makeLive(support)
    const first = await campaign({ chats: people(2), scheduled_at: new Date(Date.now() + 3_600_000) })
    const second = await campaign({ chats: [...people(3), ...people(1, support)], quota: 7 })
    // One account has used its day, so the other's message is next.
    await db().run(sql`
      insert into account_days (account_id, workspace_id, day, used)
      values (${team.account_id}, ${team.workspace_id}, now()::date, 7)`)
    const ended = await campaign({ chats: people(1) })
    await db().run(sql`update campaigns set status = 'cancelled', cancelled_at = now() where id = ${ended}`)
    const { campaigns } = await list()
    expect(campaigns.map(({ id }) => id)).toEqual([ended, second, first])
    expect(campaigns.map(({ next }) => next?.sentence)).toEqual([
      undefined,
      'Due now.',
      expect.stringMatching(/^The campaign starts later\. [A-Z]/),
    ])
    expect(campaigns[1]).toMatchObject({ totals: { queued: 4 }, created_by: { user_id: team.user_id } })
    // Of its whole life, counted once: the same reply is in the counts of its quarter.
    await db().run(sql`
      insert into campaign_counts (workspace_id, at, campaign_id, account_id, replied, opted_out)
      select ${team.workspace_id}, at, ${second}, ${team.account_id}, 2, 1
      from unnest(array[date_trunc('hour', now()), '-infinity']::timestamptz[]) at`)
    expect((await list()).campaigns.map(({ opt_outs }) => opt_outs)).toEqual([0, 1, 0])
    await db().run(sql`update accounts set status = 'NEEDS_LOGIN' where id = ${support}`)
    expect((await list()).campaigns[1]?.next?.sentence).toMatch(/^Sales has sent its 7 for today\. /)
    await db().run(sql`delete from account_days where account_id = ${team.account_id}`)
    await db().run(sql`update accounts set status = 'NEEDS_LOGIN' where id = ${team.account_id}`)
    expect((await list()).campaigns[1]?.next).toEqual({
      at: null,
      sentence: expect.stringMatching(/^(Sales|Support) has to log in again\.$/),
    })
    await db().run(sql`update accounts set status = 'READY' where workspace_id = ${team.workspace_id}`)
  })

  test('200 page by page; 400 for a cursor of another list; nothing of another workspace', async () => {
    const { campaigns } = await list()
    const page = await list('?limit=2')
    const rest = await list(`?limit=50&cursor=${page.next_cursor}`)
    expect([...page.campaigns, ...rest.campaigns].map(({ id }) => id)).toEqual(campaigns.map(({ id }) => id))
    expect(rest.next_cursor).toBeNull()
    const foreign = await team.ask('GET', `/campaigns?cursor=${page.next_cursor}`)
    expect([foreign.status, foreign.body.code]).toEqual([400, 'invalid_cursor'])
    const other = await openTeam(service, 'Other')
    await service.allow(other)
    expect((await other.ask('GET', '/campaign_progress')).body.campaigns).toEqual([])
  })
})

type Change = 'pause' | 'resume' | 'cancel'

/** Another user of the workspace, at the dashboard. */
async function colleague(role: Role) {
  const { user_id } = await team.join(role)
  await service.allow({ workspace_id: team.workspace_id, user_id })
  return actor(user_id)
}

async function actor(user_id: string) {
  const cookie = await signIn(service, user_id)
  const ask = (method: string, path: string, key?: string) =>
    askDashboard(service, method, `/w/${team.workspace_id}/campaigns/${path}`, {
      cookie,
      ...(key !== undefined && { headers: { 'idempotency-key': key } }),
    })
  return {
    change: (id: string, verb: Change) => ask('POST', `${id}/${verb}`, newId()),
    see: async (id: string) => {
      const { campaign: seen } = (await ask('GET', `${id}?limit=1`)).body
      const { status, can } = seen as { status: string; can: Readonly<Record<string, boolean>> }
      return { status, can }
    },
  }
}

const steps = [{ wait_hours: 24 }]

describe('POST /campaigns/{campaign_id}/pause, resume and cancel at the dashboard', () => {
  test('200 for an admin and a campaign of another user; 403 for a member; 404 in another workspace', async () => {
    const [admin, member] = [await colleague('admin'), await colleague('member')]
    const id = await campaign({ chats: people(2), steps })
    expect((await admin.see(id)).can).toEqual({ create: true, cancel: true, pause: true, resume: false })
    expect((await admin.change(id, 'pause')).body.campaign).toMatchObject({ status: 'paused' })
    expect((await member.change(id, 'resume')).body.code).toBe('missing_role')
    expect((await admin.change(id, 'resume')).body.campaign).toMatchObject({ status: 'queued' })
    expect((await admin.change(id, 'cancel')).body.campaign).toMatchObject({ status: 'cancelled' })
    const other = await openTeam(service, 'Elsewhere')
    await service.allow(other)
    const foreign = await askDashboard(service, 'POST', `/w/${other.workspace_id}/campaigns/${id}/pause`, {
      cookie: await signIn(service, other.user_id),
      headers: { 'idempotency-key': newId() },
    })
    expect([foreign.status, foreign.body.code]).toEqual([404, 'campaign_not_found'])
  })

  test('pause against cancel by two users, 50 times in any order: both see what the database has', async () => {
    const [owner, admin] = [await actor(team.user_id), await colleague('admin')]
    const outcomes = new Set<string>()
    for (let round = 0; round < 50; round++) {
      const id = await campaign({ chats: people(1), steps })
      const changes = [() => owner.change(id, 'pause'), () => admin.change(id, 'cancel')]
      const asked = (round % 2 === 0 ? changes : changes.toReversed()).map((change) => change())
      const answers = await Promise.all(asked)
      for (const { status, body } of answers) {
        outcomes.add(`${status} ${body.code ?? (body.campaign as { status: string }).status}`)
      }
      const { status } = await db().one<{ status: string }>(
        sql`select status from campaigns where id = ${id}`,
      )
      expect(status).toBe('cancelled')
      const ended = { status, can: { create: true, cancel: false, pause: false, resume: false } }
      expect([await owner.see(id), await admin.see(id)]).toEqual([ended, ended])
    }
    expect([...outcomes]).toContain('200 cancelled')
    expect([...outcomes].filter((each) => each !== '200 cancelled' && each !== '200 paused')).toEqual(
      outcomes.has('409 invalid_sequence_status') ? ['409 invalid_sequence_status'] : [],
    )
  })
})
