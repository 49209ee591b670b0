import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service } from '../../../test/harness/service.ts'
import { openTeam, type Team } from '../../../test/harness/team.ts'
import { sql } from '../../db/sql.ts'

let service: Service
let team: Team
beforeAll(async () => {
  service = await openService()
  await service.app.db.run(sql`insert into manual_clock (at) values ('2026-11-15T09:30:00Z')`)
  team = await openTeam(service)
})
afterAll(() => service.close())

const count = (of: Team, at: string, received: number, sent: number, account_id = of.account_id) =>
  service.app.db.run(sql`
    insert into message_counts (workspace_id, span, at, account_id, received, sent)
    values (${of.workspace_id}, 'quarter', ${at}, ${account_id}, ${received}, ${sent})`)

interface Days {
  readonly timezone: string
  readonly from: string
  readonly to: string
  readonly days: readonly { readonly day: string; readonly received: number; readonly sent: number }[]
}

async function days(query = ''): Promise<Days> {
  const { status, body } = await team.ask('GET', `/analytics/days${query}`)
  expect([status, body.error]).toEqual([200, undefined])
  return body as unknown as Days
}

describe('GET /analytics/days', () => {
  test("200 with every day of the range in the workspace's zone, of all accounts or one", async () => {
    const { workspace_id } = team
    await service.app.db.run(sql`
      update workspaces set timezone = 'Asia/Kathmandu' where id = ${workspace_id}`)
    const second = await service.account(workspace_id)
    const other = await openTeam(service, 'Other')
    // In Kathmandu a day begins at 18:15 UTC.
    await count(team, '2026-11-13T18:00Z', 1, 0)
    await count(team, '2026-11-13T18:15Z', 0, 2)
    await count(team, '2026-11-14T18:00Z', 4, 0)
    await count(team, '2026-11-14T18:15Z', 0, 8, second)
    await count(other, '2026-11-14T10:00Z', 100, 100)
    const shown = await days('?from=2026-11-13&to=2026-11-16')
    expect(shown).toEqual({
      timezone: 'Asia/Kathmandu',
      from: '2026-11-13',
      to: '2026-11-16',
      days: [
        { day: '2026-11-13', received: 1, sent: 0 },
        { day: '2026-11-14', received: 4, sent: 2 },
        { day: '2026-11-15', received: 0, sent: 8 },
        { day: '2026-11-16', received: 0, sent: 0 },
      ],
    })
    const one = await days(`?from=2026-11-15&to=2026-11-15&account_id=${second}`)
    expect(one.days).toEqual([{ day: '2026-11-15', received: 0, sent: 8 }])
    const standard = await days()
    expect([standard.from, standard.to, standard.days.length]).toEqual(['2026-10-17', '2026-11-15', 30])
  })

  test.each([
    ['one end', 'from=2026-11-13'],
    ['an end before its beginning', 'from=2026-11-13&to=2026-11-12'],
    ['93 days', 'from=2026-01-01&to=2026-04-03'],
    ['no day', 'from=2026-02-30&to=2026-03-01'],
    ['the year 0', 'from=0000-01-01&to=0000-01-02'],
  ])('400 for %s', async (_, query) => {
    const { status, body } = await team.ask('GET', `/analytics/days?${query}`)
    expect([status, body.code]).toEqual([400, 'invalid_request'])
  })
})
