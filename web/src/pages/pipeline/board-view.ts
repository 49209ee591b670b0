/** What the board shows: the fetched stages with the unconfirmed moves applied. */

import type { InboxChat } from '../../data/chats.ts'
import { chatKey } from '../../data/inbox-list.ts'
import type { BoardStage } from '../../data/pipeline.ts'

export interface Move {
  readonly chat: InboxChat
  readonly from: string
  readonly to: string
}

/** By `chatKey`. */
export type Moves = ReadonlyMap<string, Move>

/** The service stops counting here. */
const countMax = 1_000
export const countedText = (count: number) =>
  count >= countMax ? `${countMax.toLocaleString('en')}+` : String(count)

/** Newest first, as the service sorts. */
function compare(a: InboxChat, b: InboxChat): number {
  const left = `${a.last_message_at ?? ''} ${a.id} ${a.account_id}`
  const right = `${b.last_message_at ?? ''} ${b.id} ${b.account_id}`
  return left < right ? 1 : left > right ? -1 : 0
}

/** The stages that have a column: a hidden one only while it still has chats. */
export function shownStages(stages: readonly BoardStage[], moves: Moves): BoardStage[] {
  return stages
    .map((stage) => ({ ...stage, count: countWith(stages, stage, moves) }))
    .filter(({ hidden, count }) => !hidden || count > 0) // guard: hidden stages without chats
}

function countWith(stages: readonly BoardStage[], { key, count }: BoardStage, moves: Moves): number {
  if (count >= countMax) return count
  let shown = count
  for (const [moved, { from, to }] of moves) {
    const isThere = stages.find((stage) => stage.key === to)?.chats.some((chat) => chatKey(chat) === moved)
    if (isThere) continue // guard: a move that was read counts once
    if (to === key) shown++
    if (from === key) shown--
  }
  return Math.max(0, shown)
}

/** The cards of one stage: the first page, further pages that were scrolled to, and cards just moved here. */
export function cardsOf(
  stage: Pick<BoardStage, 'key' | 'chats'>,
  more: readonly InboxChat[],
  { moves, account_id }: { moves: Moves; account_id: string | undefined },
): InboxChat[] {
  const cards = new Map<string, InboxChat>()
  for (const chat of [...stage.chats, ...more]) {
    const key = chatKey(chat)
    const at = moves.get(key)?.to ?? chat.stage_key
    if (at === stage.key && !cards.has(key)) cards.set(key, chat)
  }
  for (const [key, { chat, to }] of moves) {
    const isAsked = account_id === undefined || account_id === chat.account_id // guard: a board of one account
    if (to === stage.key && isAsked && !cards.has(key)) cards.set(key, chat)
  }
  return [...cards.values()].sort(compare)
}
