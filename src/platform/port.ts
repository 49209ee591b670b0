/**
 * The smallest interface the capabilities need of a messaging platform. Adapters implement it, the
 * account sessions in `worker/` call it, and `test/platform/conformance.ts` says what every adapter must do.
 *
 * Chat, message and person numbers are int64 and travel as decimal strings, never as JavaScript numbers.
 */
import type { ChatNumber } from '../lib/shapes.ts'

export interface Platform {
  /** What its accounts say under `platform`; `cli/platforms.ts` knows which there are. */
  readonly name: string
  /** How long to wait between two requests for the past. */
  readonly paceMs: number
  /**
   * Chats with this number or a lower one count their messages themselves, so a deletion there always names its chat.
   * All other chats of an account share one count, and a deletion may name the messages alone.
   */
  readonly ownCountUpTo: string
  /**
   * The gap between an account's campaign messages is longer by up to this share of it, at random: a real platform notices
   * who writes by the second. 0: exactly the gap, so that what happens can be foretold.
   */
  readonly gapJitter: number
  /** Opens the account's one session. Updates begin after `position`; null means from now on. */
  connect(account: AccountRef, listener: Listener): Promise<Outcome<Session>>
  /** Releases what the adapter itself holds. Whoever opened sessions closes them before this. */
  close(): Promise<void>
}

/** The time of a platform that goes by a manual clock. A real platform has none: its time cannot be moved. */
export interface PlatformClock {
  /** Does everything that is due by then, in its order, and tells where the platform stands afterwards. */
  run(to: Date): Promise<Standing>
}

export interface Standing {
  /** RFC 3339, UTC; null while nothing is planned. */
  readonly next_due_at: string | null
  /** By account id, where its stream of updates ends. Positions of such a platform are whole numbers that grow. */
  readonly positions: Readonly<Record<string, string>>
}

export interface AccountRef {
  readonly account_id: string
  readonly name: string
  /** Where the stored updates end: the `position` of the last batch that was persisted. */
  readonly position: string | null
}

/** What a session tells whoever opened it. A batch is handed over once the one before it has been taken. */
export interface Listener {
  updates(batch: UpdateBatch): Promise<void>
  /** The session is over and will not come back by itself. Not told after `close` of the session. */
  closed(reason: Closed): void
}

export interface Closed {
  readonly status: 'lost' | 'needs_login' | 'restricted'
  readonly reason: string
}

export interface UpdateBatch {
  /** May be empty: a session hands over a first batch in any case, which tells where it begins. */
  readonly updates: readonly Update[]
  /** Persist it in the transaction that stores the batch: reconnecting there loses and repeats nothing. */
  readonly position: string
  /**
   * Nothing that the platform has told by now comes after it. Until such a batch is stored the account is not live:
   * what was sent before must be known before anything is sent again.
   */
  readonly caught_up: boolean
}

export type Update =
  /**
   * A message of either side after the position, also one from while we were away. `live` is false only where a
   * platform replays older history into its updates, as after a gap that is too long for them. Such a message is not
   * announced, and ends sequences like any other.
   */
  | { readonly kind: 'message'; readonly chat: Chat; readonly message: Message; readonly live: boolean }
  | { readonly kind: 'edited'; readonly chat_id: ChatNumber; readonly message: Message }
  /** `chat_id` is null where the platform names the messages alone; see `ownCountUpTo`. */
  | { readonly kind: 'deleted'; readonly chat_id: ChatNumber | null; readonly message_ids: readonly string[] }
  /** The other side has read our messages up to this one. */
  | {
      readonly kind: 'read_by_them'
      readonly chat_id: ChatNumber
      readonly up_to_message_id: string
      readonly at: string
    }
  /** We (here or on another device) have read, or marked unread. */
  | { readonly kind: 'unread'; readonly chat_id: ChatNumber; readonly unread_count: number }
  /** The proof that a submission with this random id was accepted. */
  | {
      readonly kind: 'sent'
      readonly random_id: string
      readonly chat_id: ChatNumber
      readonly message_id: string
      readonly at: string
    }
  | { readonly kind: 'person'; readonly person: Person }

export interface Person {
  readonly id: string
  readonly name: string
  readonly username: string | null
  readonly phone: string | null
  readonly kind: 'person' | 'bot' | 'deleted' | 'self'
}

export interface Chat {
  /** Positive: the person of a private chat. Negative: a group or channel. */
  readonly id: ChatNumber
  readonly kind: 'private' | 'group' | 'channel'
  readonly name: string
  readonly username: string | null
  readonly unread_count: number
  /** The people of the chat as far as the platform says: both of a private chat, members of a group. */
  readonly participants: readonly Person[]
}

export interface Message {
  readonly id: string
  readonly text: string
  readonly is_sender: boolean
  readonly sender_id: string | null
  /** RFC 3339, UTC. */
  readonly timestamp: string
  readonly edited_at: string | null
  readonly attachments: readonly Attachment[]
  /** The random id we submitted it with, where the platform shows it. */
  readonly random_id: string | null
}

export interface Attachment {
  readonly file_name: string
  readonly media_type: string
  readonly size: number
}

/** Everything a platform call can end in. There is no other: what is not proven is `unknown`. */
export type Outcome<T> =
  | { readonly kind: 'accepted'; readonly value: T }
  /** The platform said no, for good. */
  | { readonly kind: 'refused'; readonly reason: PlatformRefusal }
  /** The platform said no, for now; the same call may succeed after this many seconds. */
  | { readonly kind: 'flood_wait'; readonly retry_after_seconds: number }
  /** Proven: no byte of the call was written. */
  | { readonly kind: 'not_written'; readonly reason: string }
  /** No answer, a lost connection, a 5xx, an answer nobody can read. It may have happened. */
  | { readonly kind: 'unknown'; readonly reason: string }

/** The allowlist of refusals that are proven to mean "nothing happened, and never will". */
export const platformRefusals = [
  'username_not_found',
  'identity_ineligible',
  'chat_unavailable',
  'blocked_by_person',
  'message_invalid',
  'needs_login',
  'restricted',
] as const
export type PlatformRefusal = (typeof platformRefusals)[number]

/** One open connection of one account. Calls after `close` answer `not_written`. */
export interface Session {
  readonly self: Person
  /** Answers only if the platform answered: a silent socket is not a live session. */
  ping(): Promise<boolean>
  /** Looks a public username (without `@`) up. Nothing is opened and nobody is told. */
  resolve(identifier: Identifier): Promise<Outcome<Person>>
  /** Opens the private chat with a person that `resolve` gave. */
  openChat(person_id: string): Promise<Outcome<Chat>>
  /** Uploads before the boundary; the handle is good for one `send` of this session. */
  upload(file: Upload): Promise<Outcome<UploadedFile>>
  /** Submits once. Everything awaited inside happens after the first byte may have left. */
  send(message: Submission): Promise<Outcome<Sent>>
  /** Newest first, strictly older than `before` when given. Never marks anything read. */
  history(page: HistoryPage): Promise<Outcome<readonly Message[]>>
  /** Every chat the account knows, most recent first, in pages. */
  chats(page: { readonly after: string | null; readonly limit: number }): Promise<Outcome<ChatPage>>
  contacts(): Promise<Outcome<readonly Person[]>>
  setReadState(chat_id: ChatNumber, unread: boolean): Promise<Outcome<{ readonly unread_count: number }>>
  close(): Promise<void>
}

export type Identifier =
  | { readonly kind: 'username'; readonly value: string }
  | { readonly kind: 'phone'; readonly value: string }
  | { readonly kind: 'id'; readonly value: string }

export interface Upload extends Attachment {
  /** Each is valid until the next one is asked for. */
  readonly chunks: AsyncIterable<Uint8Array>
}

export interface UploadedFile extends Attachment {
  readonly handle: string
}

export interface Submission {
  readonly chat_id: ChatNumber
  readonly text: string
  readonly file: UploadedFile | null
  /** Signed int64 as a decimal string, chosen by the caller and stored before the call. */
  readonly random_id: string
}

export interface Sent {
  readonly message_id: string
  readonly at: string
}

export interface HistoryPage {
  readonly chat_id: ChatNumber
  readonly before: { readonly message_id: string } | null
  readonly limit: number
}

export interface ChatPage {
  readonly chats: readonly Chat[]
  readonly next: string | null
}
