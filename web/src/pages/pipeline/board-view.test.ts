/** The board in memory: what was read, with moves that are not confirmed yet. */
import { expect, test } from 'vitest'
import { inTurn, isAsking } from '../../data/in-turn.ts'
import type { BoardStage } from '../../data/pipeline.ts'
import { cardsOf, countedText, type Move, shownStages } from './board-view.ts'

type Chat = BoardStage['chats'][number]

/** A chat whose newest message is this many minutes after noon. */
function chat(id: number, minute: number, stage_key = 'new', account_id = 'acc_a'): Chat {
  return {
    account_id,
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
    stage_key,
    assignee: null,
    columns: [],
  }
}

const stage = (key: string, chats: Chat[], rest: Partial<BoardStage> = {}): BoardStage => ({
  key,
  label: key,
  color: null,
  terminal: false,
  hidden: false,
  count: chats.length,
  chats,
  ...rest,
})
const move = (moved: Chat, to: string): [string, Move] => [
  `${moved.account_id} ${moved.id}`,
  { chat: { ...moved, stage_key: to }, from: moved.stage_key ?? '', to },
]
const none = new Map<string, Move>()
const all = { moves: none, account_id: undefined }
const ids = (chats: readonly Chat[]) => chats.map(({ id }) => Number(id.split(':')[2]))
const counts = (stages: readonly BoardStage[]) => stages.map(({ key, count }) => [key, count])

const read = [stage('new', [chat(3, 30), chat(1, 10)]), stage('won', [chat(2, 20, 'won')])]

test('a move shows at once in both stages and their counts, and once it is read nothing is counted twice', () => {
  const moves = new Map([move(chat(3, 30), 'won')])
  expect(counts(shownStages(read, moves))).toEqual([
    ['new', 1],
    ['won', 2],
  ])
  const [first, won] = read.map((each) => cardsOf(each, [], { ...all, moves }))
  expect([ids(first ?? []), ids(won ?? [])]).toEqual([[1], [3, 2]])
  const after = [stage('new', [chat(1, 10)]), stage('won', [chat(3, 30, 'won'), chat(2, 20, 'won')])]
  expect(counts(shownStages(after, moves))).toEqual([
    ['new', 1],
    ['won', 2],
  ])
  expect(ids(cardsOf(after[1] ?? stage('won', []), [], { ...all, moves }))).toEqual([3, 2])
})

test('cards that were scrolled to follow the first ones, each once; a chat that left the stage meanwhile is not shown', () => {
  const more = [chat(3, 30), chat(1, 10), chat(5, 5), chat(6, 4, 'won')]
  expect(ids(cardsOf(read[0] ?? stage('new', []), more, all))).toEqual([3, 1, 5])
})

test('a move of another account does not appear on a board of one account', () => {
  const moves = new Map([move(chat(9, 50, 'new', 'acc_b'), 'won')])
  expect(ids(cardsOf(read[1] ?? stage('won', []), [], { moves, account_id: 'acc_a' }))).toEqual([2])
})

test('a hidden stage has a column while it has chats, and 1,000 stay 1,000+', () => {
  const stages = [
    stage('new', [chat(3, 30)], { count: 1_000 }),
    stage('old', [chat(4, 1, 'old')], { hidden: true }),
    stage('gone', [], { hidden: true }),
  ]
  expect(shownStages(stages, none).map(({ key }) => key)).toEqual(['new', 'old'])
  const moves = new Map([move(chat(4, 1, 'old'), 'new')])
  expect(counts(shownStages(stages, moves))).toEqual([['new', 1_000]])
  expect([countedText(999), countedText(1_000)]).toEqual(['999', '1,000+'])
})

test('a move and its undo are asked one after the other, also if the first fails; another chat does not wait', async () => {
  const asked: string[] = []
  const { promise, reject } = Promise.withResolvers<string>()
  const first = inTurn('a', () => {
    asked.push('move')
    return promise
  })
  const { promise: undone, resolve } = Promise.withResolvers<void>()
  const undo = inTurn('a', () => {
    asked.push('undo')
    return undone
  })
  await inTurn('b', async () => asked.push('other'))
  expect(asked).toEqual(['move', 'other'])
  reject(new Error('refused'))
  await expect(first).rejects.toThrow('refused')
  expect(isAsking('a')).toBe(true)
  resolve()
  await undo
  expect(isAsking('a')).toBe(false)
  expect(asked).toEqual(['move', 'other', 'undo'])
})
