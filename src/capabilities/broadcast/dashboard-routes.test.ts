import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service } from '../../../test/harness/service.ts'
import { openTeam, type Team } from '../../../test/harness/team.ts'
import { sql } from '../../db/sql.ts'
import { addStages } from '../pipeline/pipeline.ts'
import { addSuppression } from '../suppressions/suppressions.ts'

let service: Service
let team: Team
beforeAll(async () => {
  service = await openService()
})
afterAll(() => service.close())

async function fresh(): Promise<void> {
  team = await openTeam(service)
  const stages = [{ key: 'warm', label: 'Warm' }]
  await service.app.db.transaction((tx) => addStages(tx, team.workspace_id, stages))
}

/** Chats in the stage `warm`; the first is the most recent. */
async function warm(names: readonly string[], account_id = team.account_id): Promise<void> {
  await service.app.db.run(sql`
    insert into chats (account_id, chat_id, workspace_id, kind, name, last_message_at, stage_key, participants)
    select ${account_id}, 100 + n, ${team.workspace_id}, case name when 'Group' then 'group' else 'private' end,
      case name when '-' then '' else name end, now() - n * interval '1 minute', 'warm',
      case name when 'Bot' then jsonb_build_array(jsonb_build_object('id', (100 + n)::text, 'kind', 'bot')) else '[]' end
    from unnest(${names}::text[]) with ordinality as given (name, n)`)
}

interface Audience {
  readonly counts: { readonly chats: number; readonly can_receive: number; readonly left_out: object }
  readonly broadcast: { readonly recipients: number; readonly capped: boolean; readonly max: number } | null
  readonly people: readonly { readonly name: string; readonly sentence: string | null }[]
  readonly next_cursor: string | null
}

async function audience(query: Readonly<Record<string, string>>): Promise<Audience> {
  const { status, body } = await team.ask('GET', `/audience?${new URLSearchParams(query)}`)
  expect([status, body.error]).toEqual([200, undefined])
  return body as unknown as Audience
}

const stage = { stage_key: 'warm' }
const ofAccount = () => ({ ...stage, account_id: team.account_id })

describe('GET /audience', () => {
  test('200 with everybody in the stage, those left out with the reason, as a broadcast then takes them', async () => {
    await fresh()
    const { workspace_id } = team
    await warm(['Ada', '-', 'Group', 'Bot', 'Bo', 'Cy'])
    await addSuppression(service.app, 'system', { workspace_id, platform_id: '105' })
    const shown = await audience({ ...ofAccount(), needs_name: 'true' })
    expect(shown.people.map(({ name, sentence }) => [name, sentence])).toEqual([
      ['Ada', null],
      ['', 'A placeholder in the text has no value for this person.'],
      ['Group', 'This is not a person who can receive messages.'],
      ['Bot', 'This is not a person who can receive messages.'],
      ['Bo', 'The person is on the suppression list.'],
      ['Cy', null],
    ])
    expect(shown.counts).toEqual({
      chats: 6,
      can_receive: 2,
      left_out: { not_ready: 0, no_person: 2, suppressed: 1, nameless: 1 },
    })
    expect(shown.broadcast).toEqual({ max: 30, recipients: 2, capped: false })
    const body = { account_id: team.account_id, audience_type: 'stage', audience_ref: 'warm' }
    const sent = await team.ask('POST', '/broadcast', { ...body, message_text: 'Hi {{name}}' })
    expect(sent.body).toMatchObject({ recipients: 2, audience_total: 2 })
    expect((await audience(stage)).broadcast).toBeNull()
    expect((await audience(ofAccount())).counts).toMatchObject({ can_receive: 3 })
  })

  test('200 with the cap of a broadcast, none for a hidden stage, and page by page over two accounts', async () => {
    await fresh()
    await warm(Array.from({ length: 31 }, (_, n) => `Person ${n}`))
    const second = await service.account(team.workspace_id)
    await warm(['Dee', 'Eve'], second)
    expect((await audience(ofAccount())).broadcast).toEqual({ max: 30, recipients: 30, capped: true })
    await service.app.db.run(
      sql`update stages set hidden = true where workspace_id = ${team.workspace_id} and key = 'warm'`,
    )
    expect((await audience(ofAccount())).broadcast).toBeNull()
    await service.app.db.run(sql`update accounts set status = 'DISABLED' where id = ${second}`)
    await service.settle()
    const names: string[] = []
    let cursor: string | null = null
    do {
      const page: Audience = await audience({ ...stage, limit: '10', ...(cursor !== null && { cursor }) })
      names.push(
        ...page.people.map(({ name, sentence }) => (sentence === null ? name : `${name}: ${sentence}`)),
      )
      cursor = page.next_cursor
    } while (cursor !== null)
    expect(names.length).toBe(33)
    expect(new Set(names).size).toBe(33)
    expect(names).toContain('Dee: Sales is not ready.')
    expect((await audience(stage)).counts).toMatchObject({ chats: 33, left_out: { not_ready: 2 } })
  })

  test('404 for an account of another workspace, 400 for an unknown stage, 503 without the gate', async () => {
    await fresh()
    const other = await openTeam(service, 'Other')
    const asked = async (query: string) => {
      const { status, body } = await team.ask('GET', `/audience?${query}`)
      return [status, body.code]
    }
    expect(await asked(`account_id=${other.account_id}`)).toEqual([404, 'not_found'])
    expect(await asked('stage_key=cold')).toEqual([400, 'invalid_stage'])
    expect(await asked('column_id=x')).toEqual([400, 'invalid_request'])
    await service.shut('pipeline')
    expect(await asked('stage_key=warm')).toEqual([503, 'feature_disabled'])
    await service.open('pipeline')
  })
})

describe('GET /broadcasts', () => {
  test('200 newest first with totals and the user who sent it; other workspaces have their own', async () => {
    await fresh()
    await warm(['Ada', 'Bo'])
    const body = { account_id: team.account_id, audience_type: 'stage', audience_ref: 'warm' }
    await team.ask('POST', '/broadcast', { ...body, message_text: 'First' })
    await team.ask('POST', '/broadcast', { ...body, message_text: 'Second' })
    const { body: all } = await team.ask('GET', '/broadcasts')
    const { user_id } = team
    expect(all).toMatchObject({
      broadcasts: [
        { message_text: 'Second', status: 'queued', recipients: 2, capped: false, created_by: { user_id } },
        { message_text: 'First', totals: { queued: 2 }, audience_total: 2 },
      ],
      has_more: false,
    })
    const { body: first } = await team.ask('GET', '/broadcasts?limit=1')
    const { body: rest } = await team.ask('GET', `/broadcasts?limit=1&cursor=${first.next_cursor}`)
    expect([first.broadcasts, rest.broadcasts].flat()).toEqual(all.broadcasts)
    const other = await openTeam(service, 'Other')
    expect((await other.ask('GET', '/broadcasts')).body.broadcasts).toEqual([])
  })
})
