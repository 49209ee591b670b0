/** The keys of the inbox. Those that go through the list follow the rows on screen. */
import { useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { type ChatRef, chatQuery, type InboxChat, type ListFilter, prefetchChat } from '../../data/chats.ts'
import { rowBelow, type StillRows } from '../../data/inbox-list.ts'
import { undoLast } from '../../data/toasts.ts'
import { type KeyActions, useKeys } from '../../ui/shortcuts.ts'
import type { Go } from './inbox-search.ts'

interface KeyPlace {
  filter: ListFilter
  chat: ChatRef | undefined
  still: StillRows
  /** The row of the open chat; -1 if it has none. */
  at: number
  go: Go
}

export function useInboxKeys({ filter, chat, still, at, go }: KeyPlace): void {
  const client = useQueryClient()
  const here = {
    ...(filter.view !== 'all' && { view: filter.view }),
    ...(filter.account_id !== undefined && { account: filter.account_id }),
  }
  const find = (step: number) => rowBelow(still, at, step)
  const open = (row: InboxChat | undefined) => row && go({ ...here, chat: row.id, of: row.account_id })
  const unreadOf = () => (chat ? (client.getQueryData(chatQuery(chat).queryKey)?.chat.unread_count ?? 0) : 0)
  const mark = (marked: ChatRef, unread: boolean) => {
    const before = unreadOf()
    void import('../../data/chat-changes.ts').then(({ markRead }) => markRead(marked, { unread, before }))
  }
  const actions: KeyActions = {
    j: () => open(find(1)),
    k: () => open(find(-1)),
    z: () => undoLast(),
    ...(chat && {
      Escape: () => go(here),
      e: () => {
        const next = find(1)
        mark(chat, false)
        open(next)
      },
      u: () => mark(chat, true),
      r: () => document.querySelector<HTMLElement>('[data-composer]')?.focus(),
      n: () => document.querySelector<HTMLElement>('[data-note]')?.click(),
      m: () => openList(document.querySelector('[data-move]')),
      '/': () => document.querySelector<HTMLElement>('[data-replies]')?.click(),
    }),
  }
  useKeys(actions)
  const next = chat && find(1)
  const [account_id, chat_id] = [next?.account_id, next?.id]
  useEffect(() => {
    if (account_id === undefined || chat_id === undefined) return
    prefetchChat(client, { workspace_id: filter.workspace_id, account_id, chat_id })
  }, [client, filter.workspace_id, account_id, chat_id])
}

/** Some browsers open a list only after a click; then the arrow keys choose. */
function openList(list: HTMLSelectElement | null): void {
  list?.focus()
  try {
    list?.showPicker()
  } catch {
    // The list has the focus.
  }
}
