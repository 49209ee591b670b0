/** Moves that the service has not confirmed yet: shown immediately, on top of whatever is read meanwhile. */
import { useSyncExternalStore } from 'react'
import { ask } from '../../api.ts'
import { codeOf, splitHidden } from '../../hidden-characters.ts'
import { newKey } from '../../outbox.ts'
import { queryClient } from '../../queries.ts'
import { type NamedStage, perform } from '../inbox/chat-changes.ts'
import { chatKey } from '../inbox/inbox-list.ts'
import type { InboxChat } from '../inbox/inbox-queries.ts'
import type { Move, Moves } from './board-view.ts'

let moves: Moves = new Map()
const listeners = new Set<() => void>()

function change(act: (next: Map<string, Move>) => void): void {
  const next = new Map(moves)
  act(next)
  moves = next
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function useMoves(): Moves {
  return useSyncExternalStore(subscribe, () => moves)
}

interface MoveOrder {
  readonly workspace_id: string
  readonly chat: InboxChat
  readonly from: NamedStage
  readonly to: NamedStage
}

export async function moveCard({ workspace_id, chat, from, to }: MoveOrder): Promise<void> {
  if (from.key === to.key) return
  const key = chatKey(chat)
  const { account_id, id: chat_id } = chat
  const move: Move = { chat: { ...chat, stage_key: to.key }, from: from.key, to: to.key }
  const show = () => change((next) => next.set(key, move))
  // Of two moves of a chat, the earlier one must not remove the later.
  const unshow = () => change((next) => next.get(key) === move && next.delete(key))
  // Before anything waits: the card must not return to its old place for a moment.
  show()
  await perform({
    chat: { workspace_id, account_id, chat_id },
    words: `Moved ${nameIn(chat.name)} to ${to.label}`,
    show,
    unshow,
    request: () =>
      ask(
        'POST /w/{workspace_id}/pipeline/move',
        { params: { workspace_id }, body: { account_id, chat_id, stage_key: to.key } },
        { key: newKey() },
      ),
    undo: () => void moveCard({ workspace_id, chat: move.chat, from: to, to: from }),
  })
  await Promise.all([
    queryClient.invalidateQueries({ queryKey: ['board', workspace_id] }),
    // `perform` reads these already.
    queryClient.invalidateQueries({ queryKey: ['inbox', workspace_id] }, { cancelRefetch: false }),
  ])
  unshow()
}

const nameMax = 40

/** A name within a sentence: one line, truncated, and without effect on the text around it. */
export function nameIn(name: string): string {
  const flat = name.replaceAll(/\s+/g, ' ').trim()
  const cut = flat.length > nameMax ? `${flat.slice(0, nameMax).toWellFormed()}…` : flat
  const shown = splitHidden(cut).map((part, at) => (at % 2 === 1 ? codeOf(part) : part))
  return cut === '' ? 'the chat' : `\u2068${shown.join('')}\u2069`
}
