import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { insertCampaign } from '../../../test/harness/campaigns.ts'
import { openService, type Service } from '../../../test/harness/service.ts'
import { openTeam, type Team } from '../../../test/harness/team.ts'
import { sql } from '../../db/sql.ts'

let service: Service
let team: Team
let other: Team
beforeAll(async () => {
  service = await openService()
  team = await openTeam(service)
  other = await openTeam(service, 'Other')
  for (const { account_id, workspace_id } of [team, other]) {
    for (const id of ['42', '43'] as const) await service.chat({ account_id, workspace_id, id })
  }
})
afterAll(() => service.close())

const path = ({ account_id }: Team, chat: string) =>
  `/chats/platform:chat:${chat}/campaigns?account_id=${account_id}`

describe('GET /chats/{chat_id}/campaigns', () => {
  test('200 with every campaign of this chat and no other: those under way first, then the newest', async () => {
    const { db } = service.app
    const to = (of: Team, person_id: number) => ({ chats: [{ account_id: of.account_id, person_id }] })
    const oldest = await insertCampaign(db, team, to(team, 42))
    const queued = await insertCampaign(db, team, to(team, 42))
    const newest = await insertCampaign(db, team, to(team, 42))
    await insertCampaign(db, team, to(team, 43))
    await insertCampaign(db, other, to(other, 42))
    for (const [id, status] of [
      [oldest, 'suppressed'],
      [newest, 'cancelled'],
    ]) {
      await db.run(sql`
        update campaign_recipients set status = ${status}, ended_at = now(), next_action_at = null
        where campaign_id = ${id}`)
    }
    const { ask } = await team.join('member')
    const { status, body } = await ask('GET', path(team, '42'))
    expect([status, body.error]).toEqual([200, undefined])
    expect(body.campaigns).toMatchObject([
      { id: queued, status: 'queued', recipient: { status: 'queued', step: 0 } },
      { id: newest, recipient: { status: 'cancelled', next_action_at: null } },
      { id: oldest, recipient: { status: 'suppressed', next_action_at: null } },
    ])
  })

  test('200 with whether the person asked to stop', async () => {
    const { db } = service.app
    await service.chat({ account_id: team.account_id, workspace_id: team.workspace_id, id: '46' })
    const id = await insertCampaign(db, team, { chats: [{ account_id: team.account_id, person_id: 46 }] })
    const asked = async () => (await team.ask('GET', path(team, '46'))).body.campaigns
    expect(await asked()).toMatchObject([{ recipient: { opted_out: false } }])
    await db.run(sql`update campaign_recipients set status = 'submitting' where campaign_id = ${id}`)
    await db.run(sql`
      update campaign_recipients set status = 'replied', opted_out = true, ended_at = now(), next_action_at = null
      where campaign_id = ${id}`)
    expect(await asked()).toMatchObject([{ recipient: { status: 'replied', opted_out: true } }])
  })

  test("200 with none for a chat without one; 404 for an unknown chat and another workspace's account", async () => {
    await service.chat({ account_id: team.account_id, workspace_id: team.workspace_id, id: '44' })
    expect((await team.ask('GET', path(team, '44'))).body.campaigns).toEqual([])
    expect(await team.ask('GET', path(team, '45'))).toMatchObject({
      status: 404,
      body: { code: 'chat_not_found' },
    })
    expect(await team.ask('GET', path(other, '42'))).toMatchObject({
      status: 404,
      body: { code: 'not_found' },
    })
  })
})
