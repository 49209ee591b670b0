/** The inbox's list in memory: pages read at different times, and rows that stay where they are while the user scrolls. */
import { expect, test } from 'vitest'
import { chatKey, followChats, type InboxList, mergePage, noRows, rowBelow } from './inbox-list.ts'

type Chat = InboxList['chats'][number]

/** A chat whose newest message is this many minutes after noon. */
function chat(id: number, minute: number): Chat {
  return {
    account_id: 'acc_a',
    id: `platform:chat:${id}`,
    name: `Chat ${id}`,
    username: null,
    provider: 'sandbox',
    kind: 'private',
    last_message_text: 'Hello',
    last_message_at: new Date(Date.UTC(2026, 10, 17, 12, minute)).toISOString(),
    last_is_sender: false,
    last_attempt: null,
    suppressed: false,
    asked_to_stop: false,
    unread_count: 0,
    stage_key: 'new',
    assignee: null,
    columns: [],
  }
}

const page = (chats: Chat[], next_cursor: string | null, cursor?: string) => ({
  chats,
  next_cursor,
  has_more: next_cursor !== null,
  cursor,
})
const ids = ({ chats }: InboxList) => chats.map(({ id }) => Number(id.split(':')[2]))

const two = mergePage(
  mergePage(undefined, page([chat(4, 40), chat(3, 30)], 'b')),
  page([chat(2, 20), chat(1, 10)], 'c', 'b'),
)

test('pages follow each other, and each chat remembers the cursor that leads to it', () => {
  expect(ids(two)).toEqual([4, 3, 2, 1])
  expect(two.next_cursor).toBe('c')
  expect(two.pages).toEqual({ 'acc_a platform:chat:2': 'b', 'acc_a platform:chat:1': 'b' })
})

test('a chat that gets a message moves up and stays one row; the one that it pushes out of the page is kept', () => {
  const after = mergePage(two, page([chat(1, 50), chat(4, 40)], 'd'))
  expect(ids(after)).toEqual([1, 4, 3, 2])
  expect(after.next_cursor).toBe('c')
})

test('a chat that has left the view goes with the next reading of its page', () => {
  expect(ids(mergePage(two, page([chat(4, 40), chat(2, 20)], 'e')))).toEqual([4, 2, 1])
  expect(ids(mergePage(two, page([chat(1, 10)], null, 'b')))).toEqual([4, 3, 1])
  expect(ids(mergePage(two, page([], null)))).toEqual([])
})

test('a chat that did not change is the same object after its page was read again', () => {
  const again = mergePage(two, page([chat(9, 60), chat(4, 40), { ...chat(3, 30), name: 'Other' }], 'b'))
  expect(ids(again)).toEqual([9, 4, 3, 2, 1])
  expect(again.chats.map((each) => two.chats.includes(each))).toEqual([false, true, false, true, true])
})

test('two accounts can have the same chat', () => {
  const other = { ...chat(4, 41), account_id: 'acc_b' }
  const both = mergePage(undefined, page([other, chat(4, 40)], null))
  expect(both.chats.map(chatKey)).toEqual(['acc_b platform:chat:4', 'acc_a platform:chat:4'])
})

const shown = followChats(noRows, two.chats, true)
const keysOf = (chats: readonly Chat[]) => chats.map(chatKey)

test('while the user scrolls, new and moved chats wait, and older ones follow', () => {
  const later = [chat(9, 60), chat(1, 50), ...two.chats.slice(0, 3), chat(0, 5)]
  const still = followChats(shown, later, false)
  expect(still.waiting).toBe(2)
  expect(keysOf(still.rows)).toEqual([...keysOf(shown.rows), 'acc_a platform:chat:0'])
  expect([...still.changed.values()]).toEqual([chat(1, 50)])
})

test('the keys go through the rows on screen, also while chats that moved up wait at the top', () => {
  const still = followChats(shown, [chat(9, 60), chat(2, 50), ...two.chats.slice(0, 2), chat(1, 10)], false)
  const at = still.rows.findIndex(({ id }) => id === 'platform:chat:2')
  const beside = [rowBelow(still, at, -1), rowBelow(still, at, 1), rowBelow(still, -1, 1)]
  expect(beside.map((each) => each?.id)).toEqual(['platform:chat:3', 'platform:chat:1', 'platform:chat:4'])
})

test('back at the top, what waited is shown', () => {
  const later = [chat(9, 60), ...two.chats]
  const still = followChats(shown, later, false)
  expect(followChats(still, later, true)).toEqual({
    chats: later,
    rows: later,
    changed: new Map(),
    waiting: 0,
  })
})

test('a list that did not change is the same object, so that nothing is rendered', () => {
  expect(followChats(shown, two.chats, false)).toBe(shown)
  expect(followChats(shown, two.chats, true)).toBe(shown)
  expect(followChats(shown, undefined, true)).toBe(shown)
})

test('a chat that has left the list while the user scrolls stays as it was last', () => {
  const changed = { ...chat(4, 40), name: 'Renamed' }
  const renamed = followChats(shown, [changed, ...two.chats.slice(1)], false)
  const gone = followChats(renamed, two.chats.slice(1), false)
  expect(keysOf(gone.rows)).toEqual(keysOf(shown.rows))
  expect(gone.changed.get(chatKey(changed))).toBe(changed)
})

test('a message in the chat that is first already moves nothing', () => {
  expect(followChats(shown, [chat(4, 55), ...two.chats.slice(1)], false).waiting).toBe(0)
})
