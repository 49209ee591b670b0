/**
 * Changes that show before the service has answered, each with Undo: stage, columns, assignee, read state, and nothing
 * else. If one fails, the screen returns to the old value, and a toast says why.
 */

import { ask, Refused } from './api.ts'
import { type ChatDetail, type ChatRef, chatQuery, type InboxChat, patchRow, refreshChat } from './chats.ts'
import { inTurn, isAsking } from './in-turn.ts'
import { newKey } from './kept.ts'
import { keys } from './keys.ts'
import { endSession, queryClient } from './queries.ts'
import { showToast } from './toasts.ts'

interface Change {
  readonly chat: ChatRef
  readonly words: string
  /** What the screen shows immediately, and what it returns to if the request fails. */
  readonly show: () => void
  readonly unshow: () => void
  readonly request: () => Promise<unknown>
  /** Undefined: no toast, because the change is part of another one. */
  readonly undo?: () => void
  /** What shows the change also says why it failed, and keeps it. */
  readonly keeps?: boolean
}

/** Why it failed; undefined if it did not. */
export async function perform(change: Change): Promise<unknown> {
  const { chat, words, show, unshow, request, undo, keeps = false } = change
  // A response that is on its way would show the old value again.
  await queryClient.cancelQueries({ queryKey: keys.chat(chat.workspace_id) })
  await queryClient.cancelQueries({ queryKey: keys.inbox(chat.workspace_id) })
  show()
  const key = `${chat.account_id} ${chat.chat_id}`
  if (undo) showToast({ text: words, undo })
  let failure: unknown
  try {
    await inTurn(key, request)
  } catch (error) {
    failure = error
    unshow() // guard: a refused change is not shown
    if (error instanceof Refused && error.code === 'not_signed_in') {
      endSession()
      return error
    }
    if (!undo) return error
    const said = error instanceof Refused ? error.message : 'The page itself failed.'
    const wait = error instanceof Refused && error.retry_after !== undefined
    const text = `${said}${wait ? ` Try again in ${error.retry_after} s.` : ''}`
    showToast(keeps ? undefined : { text, tone: 'danger' })
  }
  // With its undo on the way, the service has the value that the screen no longer shows.
  if (!isAsking(key)) void refreshChat(queryClient, chat)
  return failure
}

function patchChat(chat: ChatRef, patch: (before: ChatDetail) => ChatDetail): void {
  queryClient.setQueryData(chatQuery(chat).queryKey, (before) => before && { chat: patch(before.chat) })
}

export interface NamedStage {
  readonly key: string
  readonly label: string
}

export function moveChat(
  chat: ChatRef,
  { from, to }: { from: NamedStage; to: NamedStage },
): Promise<unknown> {
  const { workspace_id, account_id, chat_id } = chat
  const show = (stage: NamedStage) => () => {
    patchChat(chat, (before) => ({ ...before, stage_key: stage.key }))
    patchRow(chat, { stage_key: stage.key })
  }
  return perform({
    chat,
    words: `Moved to ${to.label}`,
    show: show(to),
    unshow: show(from),
    request: () =>
      ask(
        'POST /w/{workspace_id}/pipeline/move',
        { params: { workspace_id }, body: { account_id, chat_id, stage_key: to.key } },
        { key: newKey() },
      ),
    undo: () => void moveChat(chat, { from: to, to: from }),
  })
}

interface ColumnChange {
  readonly column: { readonly id: string; readonly name: string }
  readonly from: readonly string[]
  readonly to: readonly string[]
  /** The field keeps a value that is refused. */
  readonly keeps?: boolean
}

export function setColumn(
  chat: ChatRef,
  { column, from, to, keeps = false }: ColumnChange,
): Promise<unknown> {
  const { workspace_id, account_id, chat_id } = chat
  const show = (value: readonly string[]) => () =>
    patchChat(chat, (before) => {
      const rest = before.columns.filter(({ column_id }) => column_id !== column.id)
      const own = value.length === 0 ? [] : [{ column_id: column.id, value: [...value] }]
      return { ...before, columns: [...rest, ...own] }
    })
  return perform({
    chat,
    words: `${column.name} changed`,
    show: show(to),
    unshow: show(from),
    request: () =>
      ask(
        'POST /w/{workspace_id}/columns/set',
        { params: { workspace_id }, body: { account_id, chat_id, column_id: column.id, value: [...to] } },
        { key: newKey() },
      ),
    undo: () => void setColumn(chat, { column, from: to, to: from }),
    keeps,
  })
}

type Assignee = InboxChat['assignee']

export function assignChat(chat: ChatRef, { from, to }: { from: Assignee; to: Assignee }): Promise<unknown> {
  const { workspace_id, account_id, chat_id } = chat
  const show = (assignee: Assignee) => () => {
    patchRow(chat, { assignee })
    queryClient.setQueryData(assigneeKey(chat), assignee)
  }
  return perform({
    chat,
    words: to ? `Assigned to ${to.name}` : 'Assigned to nobody',
    show: show(to),
    unshow: show(from),
    request: () =>
      ask('PUT /w/{workspace_id}/chats/{chat_id}/assignee', {
        params: { workspace_id, chat_id },
        body: { account_id, user_id: to?.user_id ?? null },
      }),
    undo: () => void assignChat(chat, { from: to, to: from }),
  })
}

export const assigneeKey = ({ workspace_id, account_id, chat_id }: ChatRef) =>
  keys.assignee(workspace_id, account_id, chat_id)

/** Also marks it on the platform, where the other person may see it. `quiet`: no toast, because it is part of another change. */
export function markRead(
  chat: ChatRef,
  { unread, before, quiet = false }: { unread: boolean; before: number; quiet?: boolean },
): Promise<unknown> {
  const { workspace_id, account_id, chat_id } = chat
  const show = (unread_count: number) => () => {
    patchChat(chat, (detail) => ({ ...detail, unread_count }))
    patchRow(chat, { unread_count })
  }
  const after = unread ? Math.max(1, before) : 0
  return perform({
    chat,
    words: unread ? 'Marked unread' : 'Marked read',
    show: show(after),
    unshow: show(before),
    request: () =>
      ask(
        'POST /w/{workspace_id}/chats/{chat_id}/read-state',
        { params: { workspace_id, chat_id }, body: { account_id, unread } },
        { key: newKey() },
      ),
    ...(!quiet && { undo: () => void markRead(chat, { unread: !unread, before: after }) }),
  })
}
