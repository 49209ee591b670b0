import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { insertCampaign } from '../../../test/harness/campaigns.ts'
import { openService, type Service } from '../../../test/harness/service.ts'
import { type Asking, openTeam, type Team } from '../../../test/harness/team.ts'
import { sql } from '../../db/sql.ts'
import { addSuppression } from '../suppressions/suppressions.ts'

let service: Service
let team: Team
let serial = 0

beforeAll(async () => {
  service = await openService()
  team = await openTeam(service)
  await service.allow(team)
})
afterAll(() => service.close())

const chat = (name: string) =>
  service.chat({
    account_id: team.account_id,
    workspace_id: team.workspace_id,
    id: `${1_000 + serial++}`,
    name,
  })

describe('POST /campaigns/preview', () => {
  test('200: at the dashboard each excluded recipient has its sentence; keys get the code alone', async () => {
    const { account_id, workspace_id } = team
    const [nameless, listed] = [await chat(''), await chat('Bo')]
    await addSuppression(service.app, 'system', { workspace_id, platform_id: listed.split(':')[2] ?? '' })
    const body = {
      message_text: 'Hi [[name]]',
      recipients: [nameless, listed, 'platform:chat:99'].map((chat_id) => ({ account_id, chat_id })),
    }
    const path = '/campaigns/preview'
    const { body: shown } = await team.ask('POST', path, body)
    const sentences = (shown.excluded as { chat_id: string; sentence: string }[]).map(
      ({ chat_id, sentence }) => [chat_id, sentence],
    )
    expect(Object.fromEntries(sentences)).toEqual({
      [nameless]: 'A placeholder in the text has no value for this person.',
      [listed]: 'The person is on the suppression list.',
      'platform:chat:99': 'Sales has no such chat.',
    })
    const { body: coded } = await service.post(path, { key: team.key, body })
    expect(coded.excluded).toEqual(
      (shown.excluded as object[]).map((one) => {
        const { sentence: _, ...rest } = one as { sentence: string }
        return rest
      }),
    )
  })
})

interface Page {
  readonly created_by: { readonly name: string }
  readonly recipients: readonly {
    readonly name: string
    readonly sentence: string
    readonly status: string
    readonly opted_out: boolean
  }[]
  readonly next_cursor: string | null
}

async function recipients(id: string, query = '', ask: Asking = team.ask): Promise<Page> {
  const { status, body } = await ask('GET', `/campaigns/${id}/recipients${query}`)
  expect([status, body.error]).toEqual([200, undefined])
  return body as unknown as Page
}

describe('GET /campaigns/{campaign_id}/recipients', () => {
  const names = ({ recipients: people }: Page) => people.map(({ name }) => name)
  const people = (count: number) =>
    Array.from({ length: count }, () => ({ account_id: team.account_id, person_id: 5_000 + serial++ }))

  test('200 with the sentence of each and who created the campaign; the contract has no sentence', async () => {
    const { db } = service.app
    const { account_id, workspace_id, user_id } = team
    const id = await insertCampaign(db, team, { chats: people(3), quota: 7 })
    await db.run(sql`update users set name = 'Ana' where id = ${user_id}`)
    await db.run(sql`
      insert into account_hosts (account_id, workspace_id, observed_at) values (${account_id}, ${workspace_id}, now())
      on conflict (account_id) do update set observed_at = now()`)
    await db.run(sql`update accounts set status = 'READY' where id = ${account_id}`)
    await db.run(sql`
      insert into account_days (account_id, workspace_id, day, used) values (${account_id}, ${workspace_id}, now()::date, 7)
      on conflict (account_id, day) do update set used = 7`)
    await db.run(sql`
      update campaign_recipients set status = 'failed', reason = 'blocked_by_person', next_action_at = null, ended_at = now()
      where campaign_id = ${id} and position = 2`)
    const page = await recipients(id)
    expect(page.created_by).toEqual({ user_id, name: 'Ana' })
    const quota = expect.stringMatching(/^Sales has sent its 7 for today\. [A-Z][a-z]{2} 00:00 UTC$/)
    expect(page.recipients.map(({ sentence }) => sentence)).toEqual([
      quota,
      'The person blocked Sales.',
      quota,
    ])
    const { body } = await service.get(`/campaigns/${id}`, { key: team.key })
    const { recipients: coded } = body.campaign as { recipients: object[] }
    expect(coded).toMatchObject([{ blocked_by: 'quota' }, { reason: 'blocked_by_person' }, {}])
    expect(JSON.stringify(body)).not.toMatch(/sentence|created_by/)
    expect(page.recipients.map(({ opted_out }) => opted_out)).toEqual([false, false, false])
    await db.run(
      sql`update campaign_recipients set status = 'submitting' where campaign_id = ${id} and position = 1`,
    )
    await db.run(sql`
      update campaign_recipients set status = 'replied', replied_at = now(), opted_out = true, next_action_at = null, ended_at = now()
      where campaign_id = ${id} and position = 1`)
    const [stopped] = (await recipients(id)).recipients
    expect(stopped).toMatchObject({ status: 'replied', opted_out: true })
  })

  test('200 by status and by part of a name, page by page; 400 for a cursor of another filter', async () => {
    const { db } = service.app
    const id = await insertCampaign(db, team, { chats: people(5) })
    await db.run(sql`
      update campaign_recipients set name = (array['Ada', 'Bo', 'ADAM', 'Cy', '100%_a'])[position],
        username = case position when 4 then 'radar' end where campaign_id = ${id}`)
    await db.run(sql`
      update campaign_recipients set status = 'cancelled', next_action_at = null, ended_at = now()
      where campaign_id = ${id} and position in (1, 4)`)
    expect(names(await recipients(id, '?name=ada'))).toEqual(['Ada', 'ADAM', 'Cy'])
    expect(names(await recipients(id, '?name=%25_'))).toEqual(['100%_a'])
    expect(names(await recipients(id, '?status=cancelled'))).toEqual(['Ada', 'Cy'])
    expect(names(await recipients(id, '?status=queued&name=a'))).toEqual(['ADAM', '100%_a'])
    const first = await recipients(id, '?name=ada&limit=2')
    expect(names(first)).toEqual(['Ada', 'ADAM'])
    const rest = await recipients(id, `?name=ada&limit=2&cursor=${first.next_cursor}`)
    expect([names(rest), rest.next_cursor]).toEqual([['Cy'], null])
    const foreign = await team.ask('GET', `/campaigns/${id}/recipients?name=bo&cursor=${first.next_cursor}`)
    expect([foreign.status, foreign.body.code]).toEqual([400, 'invalid_cursor'])
  })

  test('403 for a member, 404 for a campaign of another workspace and for a broadcast', async () => {
    const other = await openTeam(service, 'Other')
    await service.allow(other)
    const id = await insertCampaign(service.app.db, team, { chats: people(1) })
    const path = `/campaigns/${id}/recipients`
    const { ask } = await team.join('member')
    expect((await ask('GET', path)).body.code).toBe('missing_role')
    expect((await other.ask('GET', path)).body.code).toBe('campaign_not_found')
    const kind = 'broadcast'
    const broadcast = await insertCampaign(service.app.db, team, { kind, chats: people(1) })
    const asked = await team.ask('GET', `/campaigns/${broadcast}/recipients`)
    expect([asked.status, asked.body.code]).toEqual([404, 'campaign_not_found'])
  })
})

test('GET /broadcast/{broadcast_id} 200: at the dashboard each recipient has its sentence; keys get none', async () => {
  const chats = [{ account_id: team.account_id, person_id: 7_000 }]
  const id = await insertCampaign(service.app.db, team, { kind: 'broadcast', chats })
  await service.app.db.run(sql`update accounts set status = 'NEEDS_LOGIN' where id = ${team.account_id}`)
  const { body } = await team.ask('GET', `/broadcast/${id}`)
  expect(body.people).toMatchObject([{ sentence: 'Sales has to log in again.' }])
  const { body: coded } = await service.get(`/broadcast/${id}`, { key: team.key })
  expect(coded.people).toMatchObject([{ blocked_by: 'account_not_ready' }])
  expect(JSON.stringify(coded)).not.toContain('sentence')
})
