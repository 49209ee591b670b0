/**
 * What an error of Telegram proves. Outcomes go by the error's name, with its numbers cut off, because codes differ from
 * one version of the documentation to the next. A name that is not listed here proves nothing.
 */
import { tl } from '@mtcute/core'
import type { FloodScope, Outcome, PlatformRefusal } from '../port.ts'

/** A call that got no answer in time. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
}

/** A call that was never passed to mtcute: no byte of it was written. */
export class NotWritten extends Error {
  override readonly name = 'NotWritten'
}

/**
 * Telegram refused the connection itself, or its key exchange. Of a call that waited for an answer this proves nothing:
 * its outcome is unknown.
 */
export class ConnectionRefused extends Error {
  override readonly name = 'ConnectionRefused'
}

/** How long an account stays away after that. */
export const refusedSeconds = 60

/** A call that the adapter can refuse without asking Telegram. */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly reason: PlatformRefusal

  constructor(reason: PlatformRefusal) {
    super(reason)
    this.reason = reason
  }
}

/** `unknown` is listed where the name is known and does not mean that nothing happened. */
type Meaning = PlatformRefusal | 'flood_wait' | 'unknown'

const names: Readonly<Record<Meaning, string>> = {
  flood_wait: 'FLOOD_WAIT FLOOD_PREMIUM_WAIT SLOWMODE_WAIT',
  cold_stopped: 'PEER_FLOOD',
  blocked_by_person: 'USER_IS_BLOCKED',
  privacy_restricted: `USER_PRIVACY_RESTRICTED PRIVACY_PREMIUM_REQUIRED ALLOW_PAYMENT_REQUIRED VOICE_MESSAGES_FORBIDDEN
    PREMIUM_ACCOUNT_REQUIRED PAYMENT_UNSUPPORTED`,
  identity_ineligible: 'INPUT_USER_DEACTIVATED USER_IS_BOT',
  username_not_found: 'USERNAME_NOT_OCCUPIED USERNAME_INVALID PHONE_NOT_OCCUPIED',
  chat_unavailable: `PEER_ID_INVALID CHAT_ID_INVALID CHANNEL_PRIVATE CHANNEL_INVALID CHAT_WRITE_FORBIDDEN
    USER_BANNED_IN_CHANNEL CHAT_ADMIN_REQUIRED CHAT_RESTRICTED CHAT_FORWARDS_RESTRICTED CHAT_GUEST_SEND_FORBIDDEN
    ENCRYPTION_DECLINED SEND_AS_PEER_INVALID USER_NOT_PARTICIPANT TOPIC_CLOSED TOPIC_DELETED`,
  message_invalid: `MESSAGE_EMPTY MESSAGE_TOO_LONG MEDIA_CAPTION_TOO_LONG MEDIA_EMPTY MEDIA_INVALID DOCUMENT_INVALID
    FILE_PART_EMPTY FILE_PART_INVALID FILE_PART_LENGTH_INVALID FILE_PART_SIZE_CHANGED FILE_PART_SIZE_INVALID
    FILE_PART_TOO_BIG FILE_PARTS_INVALID FILE_PART_MISSING FILE_REFERENCE_EMPTY FILE_REFERENCE_EXPIRED
    MD5_CHECKSUM_INVALID CHAT_SEND_PLAIN_FORBIDDEN CHAT_SEND_AUDIOS_FORBIDDEN CHAT_SEND_DOCS_FORBIDDEN
    CHAT_SEND_GIFS_FORBIDDEN CHAT_SEND_MEDIA_FORBIDDEN CHAT_SEND_PHOTOS_FORBIDDEN CHAT_SEND_POLL_FORBIDDEN
    CHAT_SEND_STICKERS_FORBIDDEN CHAT_SEND_VIDEOS_FORBIDDEN CHAT_SEND_VOICES_FORBIDDEN BOT_DOMAIN_INVALID BOT_INVALID
    BOT_PAYMENTS_DISABLED BROADCAST_PUBLIC_VOTERS_FORBIDDEN BUTTON_DATA_INVALID BUTTON_TYPE_INVALID BUTTON_URL_INVALID
    BUTTON_USER_PRIVACY_RESTRICTED CURRENCY_TOTAL_AMOUNT_INVALID EMOTICON_INVALID ENTITIES_TOO_LONG
    ENTITY_BOUNDS_INVALID ENTITY_MENTION_USER_INVALID EXTERNAL_URL_INVALID FROM_MESSAGE_BOT_DISABLED GAME_BOT_INVALID
    IMAGE_PROCESS_FAILED PAYMENT_PROVIDER_INVALID PHOTO_EXT_INVALID PHOTO_INVALID_DIMENSIONS POLL_ANSWER_INVALID
    POLL_ANSWERS_INVALID POLL_OPTION_DUPLICATE POLL_OPTION_INVALID POLL_QUESTION_INVALID QUIZ_CORRECT_ANSWER_INVALID
    QUIZ_CORRECT_ANSWERS_EMPTY QUIZ_CORRECT_ANSWERS_TOO_MUCH QUIZ_MULTIPLE_INVALID REPLY_MARKUP_BUY_EMPTY
    REPLY_MARKUP_INVALID REPLY_MARKUP_TOO_LONG SCHEDULE_BOT_NOT_ALLOWED SCHEDULE_DATE_TOO_LATE SCHEDULE_STATUS_PRIVATE
    SCHEDULE_TOO_MUCH TTL_MEDIA_INVALID VIDEO_CONTENT_TYPE_INVALID WC_CONVERT_URL_INVALID WEBDOCUMENT_MIME_INVALID
    WEBPAGE_CURL_FAILED WEBPAGE_MEDIA_EMPTY`,
  file_unavailable: 'LOCATION_INVALID FILE_ID_INVALID',
  needs_login: `AUTH_KEY_UNREGISTERED AUTH_KEY_INVALID SESSION_REVOKED SESSION_EXPIRED AUTH_KEY_DUPLICATED
    AUTH_KEY_PERM_EMPTY SESSION_PASSWORD_NEEDED`,
  restricted: 'USER_DEACTIVATED USER_DEACTIVATED_BAN PHONE_NUMBER_BANNED',
  unknown: `RANDOM_ID_DUPLICATE MSG_ID_INVALID PHOTO_SAVE_FILE_INVALID PINNED_DIALOGS_TOO_MUCH CONNECTION_LAYER_INVALID
    CDN_METHOD_INVALID DATE_EMPTY PERSISTENT_TIMESTAMP_EMPTY PERSISTENT_TIMESTAMP_INVALID
    PERSISTENT_TIMESTAMP_OUTDATED FOLDER_ID_INVALID OFFSET_PEER_ID_INVALID`,
}

/**
 * Beyond what is documented for a method, from Telethon's list of errors (`errors.csv`). All of them refuse the request itself.
 * YOU_BLOCKED_USER is the account's own block, which its user lifts in the app.
 */
const undocumented: Partial<typeof names> = {
  chat_unavailable: 'CHAT_INVALID USER_ID_INVALID YOU_BLOCKED_USER',
  message_invalid: 'INPUT_REQUEST_TOO_LONG',
  file_unavailable: 'FILEREF_UPGRADE_NEEDED DC_ID_INVALID',
}

/** Prefixes of error names: Telegram adds names to these families. */
const families: readonly (readonly [RegExp, Meaning])[] = [
  [/^FROZEN_/, 'restricted'],
  [/^TOPIC_/, 'chat_unavailable'],
  [/^(ALLOW_PAYMENT_|PRIVACY_)/, 'privacy_restricted'],
  [/^(MEDIA_|FILE_PART)/, 'message_invalid'],
  [/^CHAT_SEND_\w+_FORBIDDEN$/, 'message_invalid'],
]

const listed = [...Object.entries(names), ...Object.entries(undocumented)] // guard: names beyond the documentation
const meanings = new Map(
  listed.flatMap(([meaning, list]) =>
    list.split(/\s+/).map((name): [string, Meaning] => [name, meaning as Meaning]),
  ),
)

/** Undefined: an error of this name is unknown. */
export function findMeaning(text: string): Meaning | undefined {
  const name = nameOf(text)
  return meanings.get(name) ?? families.find(([pattern]) => pattern.test(name))?.[1]
}

/** `FILE_PART_3_MISSING` is `FILE_PART_MISSING`, `FLOOD_WAIT_%d` is `FLOOD_WAIT`. */
export function nameOf(text: string): string {
  return text.replaceAll(/_(?:\d+|%d)(?=_|$)/g, '')
}

/** The outcome of a call that threw. */
export function outcomeOf(error: unknown, stops: FloodScope): Exclude<Outcome<never>, { kind: 'accepted' }> {
  if (error instanceof NotWritten) return { kind: 'not_written', reason: error.message }
  if (error instanceof Refused) return { kind: 'refused', reason: error.reason }
  const text = findErrorText(error)
  if (text === undefined)
    return { kind: 'unknown', reason: error instanceof NoAnswer ? 'timeout' : 'connection_lost' }
  const listed = findMeaning(text)
  const meaning = listed ?? 'unknown' // guard: an error that is not listed is unknown
  if (meaning === 'unknown') {
    const reason = nameOf(text)
    return { kind: 'unknown', reason, ...(listed === undefined && { error: reason }) } // guard: an unlisted error keeps its name
  }
  if (meaning !== 'flood_wait') return { kind: 'refused', reason: meaning, detail: nameOf(text) }
  const seconds = findSeconds(error)
  return seconds === undefined
    ? { kind: 'unknown', reason: nameOf(text) }
    : { kind: 'flood_wait', retry_after_seconds: seconds, stops }
}

/** The name of an error that Telegram itself returned; undefined for any other. */
export function findErrorText(error: unknown): string | undefined {
  return error instanceof Error && tl.RpcError.is(error) ? error.text : undefined
}

/** The length of a flood wait. mtcute does not know every name, so the number may still be part of it. */
export function findSeconds(error: unknown): number | undefined {
  const text = findErrorText(error)
  if (text === undefined || findMeaning(text) !== 'flood_wait') return undefined
  const [, digits] = /_(\d+)$/.exec(text) ?? []
  const { seconds } = error as { seconds?: unknown }
  const found = digits === undefined ? seconds : Number(digits)
  return typeof found === 'number' && Number.isSafeInteger(found) ? found : undefined
}
