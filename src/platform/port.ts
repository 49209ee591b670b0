/**
 * The smallest interface that the capabilities need from a messaging platform. Adapters implement it, the account sessions in
 * `worker/` call it, and `test/platform/conformance.ts` says what every adapter must do.
 *
 * Chat, message and person numbers are int64 and travel as decimal strings, never as JavaScript numbers.
 */
import type { ProxyUrl } from '../lib/proxy-url.ts'
import type { AllowedHosts } from '../lib/public-hosts.ts'
import type { ChatNumber } from '../lib/shapes.ts'
import type { Identifier } from '../rules/identifier.ts'

/**
 * This number and lower ones are channels, on every platform. A channel numbers its own messages, so a deletion there always
 * names its chat. All other chats of an account share one numbering, and a deletion may name the messages only.
 */
export const channelsFrom = '-1000000000000'

export interface Platform {
  /** The value of `platform` on its accounts; `cli/platforms.ts` lists the platforms. */
  readonly name: string
  /** How long to wait between two requests for history. */
  readonly paceMs: number
  /**
   * Lengthens the gap between an account's campaign messages by up to this share of it, at random: a real platform notices an
   * account that writes to the second. 0: exactly the gap, so that what happens is predictable.
   */
  readonly gapJitter: number
  /** A new account may write to only a few strangers a day, and to more from day to day. */
  readonly coldRamp: boolean
  /**
   * A worker claims an expired lease only after this many seconds, unless its holder returned it: a real platform destroys a
   * session that two addresses use at once.
   */
  readonly takeoverSeconds: number
  /**
   * Opens the account's only session. Updates begin after `position`; null means from now on. Of a refusal, `detail` is the
   * account's `status_reason`.
   */
  connect(account: AccountRef, listener: Listener): Promise<Outcome<Session>>
  /** Starts a login. Only a platform whose accounts need one has it. */
  login?(request: LoginRequest, report: (step: LoginStep) => void): Login
  /** Revokes the session that a login stored. Also returns `accepted` if the platform has already revoked it. */
  logout?(request: LogoutRequest): Promise<Outcome<null>>
  /** This process gives the account up. Only a platform that keeps something of it between its sessions has it. */
  forgetAccount?(account_id: string): void
  /** What its sessions in this process do, for metrics. Only a platform that counts it has it. */
  figures?(): PlatformFigures
  /** Releases what the adapter itself holds. The caller closes its sessions first. */
  close(): Promise<void>
}

export interface PlatformFigures {
  /** How often sessions have asked what they missed. Never decreases. */
  readonly differences: number
  /** Batches of updates that wait for the one before them to be stored. */
  readonly batches_waiting: number
  /** Files that are being uploaded. */
  readonly uploads: number
  /** Seconds that the platform's clock is ahead of this machine's, of the account where it is furthest; negative: behind. */
  readonly clock_offset_seconds: number
}

/** The time of a platform on a manual clock. A real platform has none: its time cannot be moved. */
export interface PlatformClock {
  /** Does everything due by then, in order, and returns where the platform stands afterwards. */
  run(to: Date): Promise<Standing>
}

export interface Standing {
  /** RFC 3339, UTC; null if nothing is planned. */
  readonly next_due_at: string | null
  /** Where each account's stream of updates ends, by account id. Positions of such a platform are growing whole numbers. */
  readonly positions: Readonly<Record<string, string>>
}

export interface AccountRef {
  readonly account_id: string
  readonly name: string
  /** Where the stored updates end: the `position` of the last batch that was stored. */
  readonly position: string | null
  /** Whether the lease, as last renewed, still holds. A real platform's session writes no byte once it does not. */
  held(): boolean
  readonly store: AccountStore
  /** Every connection of the account goes through it. Null: none. */
  readonly proxy: AccountProxy | null
}

/** A proxy that the users of a workspace have named. */
export interface AccountProxy extends ProxyUrl {
  /** Private hosts that the operator allows. Any other is refused at every dial. */
  readonly allow: AllowedHosts
}

/** What an adapter stores for an account. A write rejects if another worker holds the lease. */
export interface AccountStore {
  /** The session that a login stored, which gives full control of the account. Null: no login yet. */
  readSession(): Promise<Uint8Array | null>
  /** Replaces the session by the same login with more in it. */
  writeSession(session: Uint8Array): Promise<void>
  /** Those after `after`, in the order of their numbers. */
  listPeers(page: {
    readonly after: ChatNumber | null
    readonly limit: number
  }): Promise<readonly StoredPeer[]>
  /** Adds or replaces. */
  writePeers(peers: readonly StoredPeer[]): Promise<void>
}

/** A person or group that an account can write to. The text is the adapter's own. */
export interface StoredPeer {
  readonly number: ChatNumber
  readonly text: string
}

/** Receives what a session reports. The next batch arrives once the listener has taken the one before. */
export interface Listener {
  updates(batch: UpdateBatch): Promise<void>
  /** The session is over and will not reconnect by itself. Not called after the session's `close`. */
  closed(reason: Closed): void
}

export interface Closed {
  readonly status: 'lost' | 'needs_login' | 'restricted'
  /** Unless `lost`, the account's `status_reason`: what has happened, and what the operator can do about it. */
  readonly reason: string
  /** If `lost`: how long to wait before the next `connect`. */
  readonly retry_after_seconds?: number
}

export interface UpdateBatch {
  /** May be empty: a session always delivers a first batch, which says where it begins. */
  readonly updates: readonly Update[]
  /** Store it in the transaction that stores the batch: reconnecting there loses and repeats nothing. */
  readonly position: string
  /**
   * Nothing that the platform has reported so far comes after this batch. The account is not live until such a batch is stored:
   * we must know what was sent before we send again.
   */
  readonly caught_up: boolean
  /**
   * The account is restricted for this reason, and the session ends after this batch. Note it before the batch is stored: a
   * worker that dies in between must not leave an account that continues past the gap.
   */
  readonly restricts?: string
}

export type Update =
  /**
   * A message of either side after the position, including those from while we were disconnected. `live` is false only if a
   * platform replays older history into its updates, as after a gap that is too long for them. Such a message emits no event,
   * and ends sequences like any other.
   */
  | { readonly kind: 'message'; readonly chat: Chat; readonly message: Message; readonly live: boolean }
  | { readonly kind: 'edited'; readonly chat_id: ChatNumber; readonly message: Message }
  /** `chat_id` is null if the platform names only the messages; see `channelsFrom`. */
  | {
      readonly kind: 'deleted'
      readonly chat_id: ChatNumber | null
      readonly message_ids: readonly string[]
      /** The platform does not say how many unread messages are left. */
      readonly uncounted?: true
    }
  /** The other side has read our messages up to this one. */
  | {
      readonly kind: 'read_by_them'
      readonly chat_id: ChatNumber
      readonly up_to_message_id: string
      readonly at: string
    }
  /** Our side, here or on another device, has read the chat or marked it unread. */
  | {
      readonly kind: 'unread'
      readonly chat_id: ChatNumber
      readonly unread_count: number
      /** If the platform says: everything up to it is read. The count may be older or newer than messages of the batch. */
      readonly read_up_to?: string
    }
  /** Proof that the platform accepted a submission with this random id. `chat_id` is null if its message was deleted since. */
  | {
      readonly kind: 'sent'
      readonly random_id: string
      readonly chat_id: ChatNumber | null
      readonly message_id: string
      readonly at: string
    }
  | { readonly kind: 'person'; readonly person: Person }
  /** The platform has sent the account a code for a login, or a notice about one. Its text never leaves the adapter. */
  | { readonly kind: 'login_code'; readonly at: string }
  /** Updates of this chat, or of every chat, are missing: its history is unknown and has to be fetched again. */
  | { readonly kind: 'gap'; readonly chat_id: ChatNumber | null }

export interface Person {
  readonly id: string
  readonly name: string
  /** Null: they have none. */
  readonly username: string | null
  /** Null: the platform does not show one, which says nothing. */
  readonly phone: string | null
  readonly kind: 'person' | 'bot' | 'deleted' | 'self'
  /**
   * The platform has not shown their names within the hour. A `username` of null is then unknown, and `name`, which an adapter may
   * have kept, is for show only: nothing is learned of either. A phone number is shown now, as always.
   */
  readonly stale?: true
}

/** A person as the platform shows them at this moment. */
export interface AskedPerson {
  readonly person: Person
  /** The platform shows them under the name that was asked about. By their id, always. */
  readonly has_name: boolean
}

export interface Chat {
  /** Positive: the person of a private chat. Negative: a group or channel. */
  readonly id: ChatNumber
  readonly kind: 'private' | 'group' | 'channel'
  readonly name: string
  readonly username: string | null
  /** Null: unchanged, except that a new incoming message adds one. */
  readonly unread_count: number | null
  /** The people of the chat as far as the platform lists them: both of a private chat, members of a group. Null: unchanged. */
  readonly participants: readonly Person[] | null
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
  /** The random id we submitted it with, if the platform shows it. */
  readonly random_id: string | null
}

export interface FileInfo {
  readonly file_name: string
  readonly media_type: string
  readonly size: number
}

export const attachmentKinds = ['photo', 'voice', 'video', 'sticker', 'file'] as const
export type AttachmentKind = (typeof attachmentKinds)[number]

export interface Attachment extends FileInfo {
  /** Its index among the message's files, from 0. */
  readonly index: number
  readonly kind: AttachmentKind
  /** In pixels, if the platform says. */
  readonly width?: number
  readonly height?: number
  /** Its duration, if the platform says. */
  readonly seconds?: number
}

/** Every possible result of a platform call. What is not proven is `unknown`. */
export type Outcome<T> =
  | { readonly kind: 'accepted'; readonly value: T }
  /** The platform refused, permanently. `detail` is the platform's own name for it, if it has one. */
  | { readonly kind: 'refused'; readonly reason: PlatformRefusal; readonly detail?: string }
  /** The platform refused for now; the same call may succeed after this many seconds. */
  | { readonly kind: 'flood_wait'; readonly retry_after_seconds: number; readonly stops: FloodScope }
  /** Proven: no byte of the call was written, or the platform did not know whose call it is, which can pass. */
  | {
      readonly kind: 'not_written'
      readonly reason: string
      /** Of `connect`, where it is known: the reason is then the account's `status_reason` until it connects. */
      readonly cause?: ConnectFailure
      /** Of `connect`: how long to wait before the next one. */
      readonly retry_after_seconds?: number
    }
  /** No answer, a lost connection, a 5xx, an unreadable answer. The call may have taken effect. */
  | {
      readonly kind: 'unknown'
      readonly reason: string
      /** The platform's own name of an error that the adapter does not list, as it came. */
      readonly error?: string
    }

/**
 * Why an account is not connected, though nothing is wrong with it: its proxy, the platform's refusal, a variable, this machine's
 * clock; or the platform may not know the login, which can pass.
 */
const connectFailures = ['proxy', 'refused', 'misconfigured', 'clock', 'doubtful'] as const
type ConnectFailure = (typeof connectFailures)[number]

/** What a flood wait stops: the platform counts sends, look-ups and reading (history, sync, read state) separately. */
export const floodScopes = ['sends', 'lookups', 'reading'] as const
export type FloodScope = (typeof floodScopes)[number]

/** The allowlist of refusals that are proven to mean "nothing happened, and never will". */
export const platformRefusals = [
  'username_not_found',
  'identity_ineligible',
  'chat_unavailable',
  'blocked_by_person',
  /** The person accepts messages only from some accounts, or requires Premium or a payment. */
  'privacy_restricted',
  /** The platform blocks this account's first messages, not its answers. The strike is called `peer_flood`. */
  'cold_stopped',
  'message_invalid',
  /** The message or its file was deleted, or the file shows only once. */
  'file_unavailable',
  'needs_login',
  'restricted',
] as const
export type PlatformRefusal = (typeof platformRefusals)[number]

/** One open connection of one account. Calls after `close` return `not_written`. */
export interface Session {
  readonly self: Person
  /** True only if the platform answered: a silent socket is not a live session. */
  ping(): Promise<boolean>
  /**
   * Looks up a public username (without `@`) or a phone number: platforms limit this more strictly than anything else. The answer
   * is as old as the call, because an adapter keeps no names to answer from. Nobody is found by an id. Opens nothing and notifies
   * no one.
   */
  resolve(identifier: Identifier): Promise<Outcome<Person>>
  /**
   * Asks about a person whom the account can reach already, which is no look-up: who they are at this moment, and whether the
   * platform shows them under this name. Null: the account cannot ask about them. Of a phone number that
   * is not shown, `has_name` is false, and it may still be theirs.
   */
  askPerson(person_id: string, identifier: Identifier): Promise<Outcome<AskedPerson | null>>
  /** Opens the private chat with a person that `resolve` returned. */
  openChat(person_id: string): Promise<Outcome<Chat>>
  /** Uploads before the boundary; the handle is valid for one `send` of this session. */
  upload(file: Upload): Promise<Outcome<UploadedFile>>
  /** Submits once. Whatever it awaits happens after the first byte may have left. */
  send(message: Submission): Promise<Outcome<Sent>>
  /** Newest first, strictly older than `before` when given. Never marks anything read. */
  history(page: HistoryPage): Promise<Outcome<readonly Message[]>>
  /** Every chat the account knows, most recent first, in pages. */
  chats(page: { readonly after: string | null; readonly limit: number }): Promise<Outcome<ChatPage>>
  contacts(): Promise<Outcome<readonly Person[]>>
  setReadState(chat_id: ChatNumber, unread: boolean): Promise<Outcome<{ readonly unread_count: number }>>
  /** Finds a file of a message. Its bytes are fetched as the caller reads them. */
  download(file: FilePlace): Promise<Outcome<Download>>
  close(): Promise<void>
}

export interface FilePlace {
  readonly chat_id: ChatNumber
  readonly message_id: string
  readonly index: number
}

/** Every chunk but the last has this length. */
export const downloadChunkBytes = 256 * 1024

export interface Download {
  readonly size: number
  /** Each chunk is the reader's. Ends after `size` bytes, or after the first outcome that is not `accepted`. A reader that stops ends the download. */
  readonly chunks: AsyncIterable<Outcome<Uint8Array>>
}

export interface Upload extends FileInfo {
  /** Each chunk is valid until the caller asks for the next. */
  readonly chunks: AsyncIterable<Uint8Array>
}

export interface UploadedFile extends FileInfo {
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
  readonly chats: readonly ListedChat[]
  readonly next: string | null
  /** The total number of chats; null if the platform does not say. */
  readonly total: number | null
}

export interface ListedChat {
  readonly chat: Chat
  /** Its newest message; null if it has none, or the platform does not show it. */
  readonly last: Message | null
}

export interface LoginRequest {
  /** International, with `+`. Null: by a QR code. */
  readonly phone: string | null
  /** The session of another program, as it exports it, instead of a new login. */
  readonly session_string?: string | undefined
  readonly proxy: AccountProxy | null
}

export interface LogoutRequest {
  /** What the login stored. */
  readonly session: Uint8Array
  readonly proxy: AccountProxy | null
}

/** What a login reports on every change. `done` or `failed` is the last report. */
export type LoginStep =
  /** The address to show as a QR code. The next report replaces it before it expires. */
  | { readonly kind: 'qr'; readonly url: string; readonly expires_at: string }
  /** Asks for the code that the platform has sent. `wrong`: the previous answer was wrong. */
  | {
      readonly kind: 'code'
      readonly sent_by: LoginCodeWay
      readonly wrong: boolean
      /** Where the code is, if the platform says: an address to open, or part of an e-mail address. */
      readonly place: string | null
      /** How an empty answer has it sent again, and from when on; null: it cannot be. */
      readonly again: { readonly by: LoginCodeWay; readonly at: string } | null
    }
  | { readonly kind: 'password'; readonly hint: string | null; readonly wrong: boolean }
  /** `session` is what `AccountStore.readSession` returns from now on; the caller stores it. */
  | { readonly kind: 'done'; readonly self: Person; readonly session: Uint8Array }
  | {
      readonly kind: 'failed'
      readonly reason: LoginFailure
      /** The platform's own name for it, or how long to wait. Never what a person typed. */
      readonly detail: string | null
      readonly retry_after_seconds: number | null
    }

/** `word` and `phrase`: by SMS, as text. `fragment`: on a page of the platform, for numbers that were bought there. */
export const loginCodeWays = [
  'app',
  'sms',
  'word',
  'phrase',
  'call',
  'missed_call',
  'email',
  'fragment',
  'other',
] as const
export type LoginCodeWay = (typeof loginCodeWays)[number]

const loginFailures = [
  'phone_invalid',
  'phone_banned',
  'sign_up_required',
  'email_set_up_required',
  /** The platform wants to be paid for sending the code. */
  'payment_required',
  'code_expired',
  'too_many_attempts',
  'timed_out',
  'flood_wait',
  'connection_lost',
  /** `detail` is the sentence. */
  'proxy_failed',
  /** A variable of the platform is wrong. `detail` is the sentence. */
  'misconfigured',
  /** The text is no session string, or one of other servers. */
  'session_string_invalid',
  /** The platform no longer accepts the session. `detail` is its own name for that. */
  'session_ended',
  /** Two programs have used the session at once, so the platform has destroyed it. */
  'session_duplicated',
  'refused',
] as const
export type LoginFailure = (typeof loginFailures)[number]

export interface Login {
  /** Answers the latest request for a code or a password; an empty answer to the former has the code sent again, if it can be. Ignored if there is none. */
  answer(text: string): void
  /** Ends the login without a report. */
  close(): Promise<void>
}
