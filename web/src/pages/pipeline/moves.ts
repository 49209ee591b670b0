/** Moves that the service has not confirmed yet: shown immediately, on top of whatever is read meanwhile. */
import { ask } from '../../data/api.ts'
import { type NamedStage, perform } from '../../data/chat-changes.ts'
import type { InboxChat } from '../../data/chats.ts'
import { codeOf, splitHidden } from '../../data/hidden-characters.ts'
import { chatKey } from '../../data/inbox-list.ts'
import { newKey } from '../../data/kept.ts'
import { keys } from '../../data/keys.ts'
import { queryClient } from '../../data/queries.ts'
import { SharedState, useShared } from '../../data/shared-state.ts'
import type { Move, Moves } from './board-view.ts'

const moves = new SharedState<Moves>(new Map())

function change(act: (next: Map<string, Move>) => void): void {
  const next = new Map(moves.get())
  act(next)
  moves.set(next)
}

export function useMoves(): Moves {
  return useShared(moves)
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
    queryClient.invalidateQueries({ queryKey: keys.board(workspace_id) }),
    // `perform` reads these already.
    queryClient.invalidateQueries({ queryKey: keys.inbox(workspace_id) }, { cancelRefetch: false }),
  ])
  unshow()
}

const nameMax = 40

/** A name within a sentence: one line, truncated, and without effect on the text around it. */
export function nameIn(name: string): string {
  const flat = name.replaceAll(/\s+/g, ' ').trim()
  const cut = flat.length > nameMax ? `${flat.slice(0, nameMax).toWellFormed()}…` : flat
  const shown = splitHidden(cut).map((part, at) => (at % 2 === 1 ? codeOf(part) : part))
  return cut === '' ? 'the chat' : `\u2068${shown.join('')}\u2069` // guard: a name turns no sentence around it
}
