/** What the palette finds. */
import { afterEach, expect, test } from 'vitest'

// By a name that the compiler does not follow: the service's own types know no browser.
const load = (path: string) => import(path)

interface Item {
  readonly group: string
  readonly label: string
  readonly to?: string
}

afterEach(async () => (await load('../../data/queries.ts')).queryClient.clear())

async function placesOf(role: string, operator: boolean): Promise<Item[]> {
  const { placesAndActions } = await load('./palette-items.ts')
  const workspace = { id: 'w', name: 'Acme', role }
  const session = { user: { operator }, workspaces: [workspace, { id: 'v', name: 'Other', role: 'member' }] }
  return placesAndActions(session, workspace)
}

test('a member is led to no page of admins or operators, and an operator to theirs', async () => {
  const pathsOf = async (role: string, operator: boolean) =>
    (await placesOf(role, operator)).flatMap(({ to }) => to ?? [])
  const member = await pathsOf('member', false)
  expect(member).toContain('/w/w/inbox')
  expect(member).toContain('/w/v/inbox')
  expect(member.filter((path) => /campaigns|broadcast|webhooks|operator|edit=/.test(path))).toEqual([])
  const admin = await pathsOf('admin', false)
  expect(admin).toEqual(
    expect.arrayContaining(['/w/w/campaigns', '/w/w/webhooks', '/w/w/pipeline?edit=stages']),
  )
  expect(admin.filter((path) => path.startsWith('/operator'))).toEqual([])
  expect(await pathsOf('member', true)).toContain('/operator?view=audit')
})

test('each chat is found once: by the lists in memory, by the service, and not again as a contact', async () => {
  const { itemsFor } = await load('./palette-items.ts')
  const { queryClient } = await load('../../data/queries.ts')
  const { keys } = await load('../../data/keys.ts')
  const row = { account_id: 'a', id: 'platform:chat:1', name: 'Ines Maier' }
  queryClient.setQueryData(keys.inbox('w', 'list', 'all'), { chats: [row] })
  queryClient.setQueryData(keys.inbox('another', 'list', 'all'), {
    chats: [{ ...row, id: 'platform:chat:9' }],
  })
  const found = {
    people: { chats: [{ account_id: 'a', chat_id: row.id, chat_name: row.name }] },
    words: { chats: [], matches: [] },
    contacts: [1, 2].map((number) => ({
      ...{ account_id: 'a', provider_id: String(number), name: 'Ines Maier', username: null },
    })),
    persons: [],
  }
  const fixed = await placesOf('member', false)
  const items: Item[] = itemsFor('maier INES', { workspace_id: 'w', fixed, found })
  expect(items.map(({ group, to }) => [group, to])).toEqual([
    ['Chats', '/w/w/inbox?chat=platform%3Achat%3A1&of=a'],
    ['Contacts', '/w/w/contacts?contact=2&of=a'],
  ])
  expect(itemsFor('', { workspace_id: 'w', fixed, found })).toEqual(fixed)
})
