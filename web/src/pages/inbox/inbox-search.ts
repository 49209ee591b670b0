/** What the address of the inbox says. */
export interface InboxSearch {
  view?: 'unread' | 'unanswered' | 'mine'
  /** Only chats of this account. */
  account?: string
  /** The open chat, and the account it belongs to. */
  chat?: string
  of?: string
  /** The message to show first. */
  message?: string
}

export type Go = (search: InboxSearch) => void
