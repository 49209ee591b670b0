import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service } from '../../../test/harness/service.ts'
import { openTeam, type Team } from '../../../test/harness/team.ts'
import { sql } from '../../db/sql.ts'
import { createStage } from '../pipeline/pipeline.ts'

let service: Service
let team: Team
let other: Team
beforeAll(async () => {
  service = await openService()
  team = await openTeam(service)
  other = await openTeam(service, 'Other')
})
afterAll(() => service.close())

interface Stage {
  readonly key: string
  readonly count: number
  readonly chats: readonly { id: string; account_id: string; stage_key: string }[]
}

async function board(query = '', ask = team.ask): Promise<Stage[]> {
  const { status, body } = await ask('GET', `/board${query}`)
  expect([status, body.error]).toEqual([200, undefined])
  return body.stages as Stage[]
}

const fill = ({ workspace_id }: Team, account_id: string, [first, last]: [number, number], stage = 'new') =>
  service.app.db.run(sql`
    insert into chats (account_id, chat_id, workspace_id, kind, stage_key, last_message_at)
    select ${account_id}, n, ${workspace_id}, 'private', ${stage}, now() - n * interval '1 minute'
    from generate_series(${first}::int, ${last}::int) n`)

describe('GET /board', () => {
  test('200 with every stage, its count and its newest 20 chats, over all accounts', async () => {
    const { workspace_id } = team
    const second = await service.account(workspace_id, 'NEEDS_LOGIN')
    await createStage(service.app, 'system', { workspace_id, key: 'won', label: 'Won', terminal: true })
    await fill(team, team.account_id, [1, 15])
    await fill(team, second, [16, 40])
    await fill(team, second, [41, 42], 'won')
    await fill(other, other.account_id, [1, 3])
    const stages = await board()
    expect(stages).toMatchObject([
      { key: 'new', label: 'New', terminal: false, hidden: false, count: 40 },
      { key: 'won', label: 'Won', terminal: true, hidden: false, count: 2 },
    ])
    const [fresh, won] = stages
    expect(fresh?.chats.map(({ id }) => Number(id.split(':')[2]))).toEqual(
      Array.from({ length: 20 }, (_, at) => at + 1),
    )
    expect(won?.chats).toMatchObject([{ account_id: second, stage_key: 'won' }, { account_id: second }])
    // The same rows as in the inbox, which has the rest.
    const { body } = await team.ask('GET', '/inbox?stage_key=new&limit=20')
    expect(fresh?.chats).toEqual(body.chats)
    expect((await board(`?account_id=${second}`)).map(({ count }) => count)).toEqual([25, 2])
    expect((await board('', other.ask)).map(({ key, count }) => [key, count])).toEqual([['new', 3]])
  })

  test('200 with the chats that have a column value, for each stage', async () => {
    const own = await openTeam(service, 'Plans')
    const { workspace_id, account_id } = own
    await createStage(service.app, 'system', { workspace_id, key: 'won', label: 'Won', terminal: true })
    await fill(own, account_id, [1, 30])
    await fill(own, account_id, [31, 35], 'won')
    const { body } = await own.ask('POST', '/columns', {
      name: 'Plan',
      type: 'select',
      options: [{ value: 'Studio' }, { value: 'Home' }],
    })
    const { id: column_id } = body.column as { id: string }
    for (const [chat, plan] of [
      [2, 'Studio'],
      [29, 'Studio'],
      [31, 'Studio'],
      [3, 'Home'],
    ] as const) {
      const chat_id = `platform:chat:${chat}`
      const set = { account_id, chat_id, column_id, value: [plan] }
      expect(await own.ask('POST', '/columns/set', set)).toMatchObject({ status: 200 })
    }
    const filter = `column_id=${column_id}&column_value=Studio`
    const stages = await board(`?${filter}`, own.ask)
    expect(stages.map(({ key, count, chats }) => [key, count, chats.map(({ id }) => id)])).toEqual([
      ['new', 2, ['platform:chat:2', 'platform:chat:29']],
      ['won', 1, ['platform:chat:31']],
    ])
    expect((await board(`?${filter}&account_id=${account_id}`, own.ask)).map(({ count }) => count)).toEqual([
      2, 1,
    ])
    expect(await team.ask('GET', `/board?${filter}`)).toMatchObject({
      status: 404,
      body: { code: 'column_not_found' },
    })
    expect(await own.ask('GET', `/board?column_id=${column_id}`)).toMatchObject({ status: 400 })
    await service.shut('crm')
    expect(await own.ask('GET', `/board?${filter}`)).toMatchObject({
      status: 503,
      body: { code: 'feature_disabled' },
    })
    expect(await own.ask('GET', '/board')).toMatchObject({ status: 200 })
    await service.open('crm')
  })

  test('200 with counts up to 1,000', async () => {
    const own = await openTeam(service, 'Many')
    const second = await service.account(own.workspace_id)
    await fill(own, own.account_id, [1, 700])
    await fill(own, second, [1, 700])
    expect((await board('', own.ask)).map(({ count }) => count)).toEqual([1_000])
    expect((await own.ask('GET', '/inbox/counts')).body).toMatchObject({ all: 1_000 })
  })

  test("404 for another workspace's account, 503 while the gate pipeline is closed", async () => {
    expect(await team.ask('GET', `/board?account_id=${other.account_id}`)).toMatchObject({ status: 404 })
    await service.shut('pipeline')
    expect(await team.ask('GET', '/board')).toMatchObject({ status: 503, body: { code: 'feature_disabled' } })
    await service.open('pipeline')
  })
})
