/** What a change of one chat shows in the lists that are in memory. */
import { afterEach, expect, test } from 'vitest'
import { keys } from './keys.ts'
import { queryClient } from './queries.ts'

afterEach(() => queryClient.clear())

test('a change of a chat shows in each list that has it, and an audience in memory is no list', async () => {
  // By a name that the compiler does not follow: the service's own types know no browser.
  const path = './chats.ts'
  const { inboxQuery, patchRow } = await import(path)
  const at = { workspace_id: 'workspace', account_id: 'acc_a' }
  const row = { account_id: 'acc_a', id: 'platform:chat:1', stage_key: 'new' }
  const list = { chats: [row], next_cursor: null, pages: {} }
  const audience = { counts: { chats: 1 }, people: [] }
  const lists = [at, { ...at, view: 'unread' }, { ...at, stage_key: 'new' }].map(
    (filter) => inboxQuery(filter).queryKey,
  )
  for (const key of lists) queryClient.setQueryData(key, list)
  queryClient.setQueryData(keys.inbox('workspace', 'audience', {}), audience)
  patchRow({ ...at, chat_id: row.id }, { stage_key: 'won' })
  for (const key of lists) {
    expect(queryClient.getQueryData(key)).toMatchObject({ chats: [{ ...row, stage_key: 'won' }] })
  }
  expect(queryClient.getQueryData(keys.inbox('workspace', 'audience', {}))).toBe(audience)
})
