import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service } from '../../../test/harness/service.ts'
import { openTeam, type Team } from '../../../test/harness/team.ts'
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
