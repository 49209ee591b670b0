/** The records of this browser's store: what is typed, and what is being sent. */

/** Whose it is and where: what one user types is invisible to the next one in the same browser. */
export interface Place {
  readonly user_id: string
  /** Empty for what belongs to the user alone. */
  readonly workspace_id: string
  readonly kind: 'chat' | 'note' | 'column' | 'form' | 'reply' | 'settings'
  /** The chat, the column of a chat, the form. */
  readonly of: string
}

export interface Kept<T = unknown> extends Place {
  readonly value: T
  /** Of a message: each goes as its own, in this order, the first with the text. */
  readonly files: readonly File[]
  readonly key: string
  /** The same from the first letter until it is sent, also after a change. */
  readonly draft: string
  /** Grows with each change, in every tab: the time in ms, or one more than before. The higher one is newer. */
  readonly count: number
  /** When it was started, to notice that another user has answered since. */
  readonly begun_at: string
}

/** A request under way. */
export interface Underway extends Place {
  readonly key: string
  /** The text of a message, or the body of a form's request. */
  readonly body: unknown
  /** Those that have not been sent yet. */
  readonly files: readonly File[]
  /** How many messages of it are over: each file is one. */
  readonly part: number
  /** When it was sent. */
  readonly at: string
  /** What was typed, up to this change. */
  readonly draft: string
  readonly count: number
}

export const idOf = ({ user_id, workspace_id, kind, of }: Place) =>
  [user_id, workspace_id, kind, of].join(' ')

/** Of the message that is sent next: each file of one draft has its own, the same in every tab. */
export const messageKey = ({ key, part }: Underway) => (part === 0 ? key : `${key}-${part}`) // guard: each message of a draft has its own key

/** A message by its key; a form by its place, so that it has one request at a time. */
export const keyOf = (sent: Underway) => (sent.kind === 'chat' ? sent.key : idOf(sent))
