import { globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { tl } from '@mtcute/core'
import { describe, expect, test } from 'vitest'
import { findMeaning, NotWritten, nameOf, outcomeOf } from './errors.ts'
import { failureOf } from './login.ts'

const require = createRequire(import.meta.url)
const { throws } = require('@mtcute/core/tl/raw-errors.json') as { throws: Record<string, string[]> }
const { e: schema } = require('@mtcute/core/tl/api-schema.json') as { e: { kind: string; name: string }[] }

/** As it arrives: mtcute turns Telegram's answer into an error. */
function errorNamed(errorMessage: string, errorCode = 400): Error {
  return tl.RpcError.fromTl({ errorCode, errorMessage })
}

const outcome = (text: string, code?: number) => outcomeOf(errorNamed(text, code), 'sends')

const used = [
  'messages.sendMessage',
  'messages.sendMedia',
  'upload.saveFilePart',
  'upload.saveBigFilePart',
  'messages.getHistory',
  'messages.getDialogs',
  'messages.readHistory',
  'messages.markDialogUnread',
  'contacts.getContacts',
  'contacts.resolveUsername',
  'contacts.resolvePhone',
  'updates.getState',
  'updates.getDifference',
  'users.getUsers',
  'messages.getMessages',
]

/** Their errors end a login, not a session. */
const loginMethods = [
  'auth.sendCode',
  'auth.resendCode',
  'auth.signIn',
  'auth.checkPassword',
  'auth.exportLoginToken',
  'auth.importLoginToken',
  'account.getPassword',
  'auth.logOut',
]

/** Their errors end a download, not a session (`media.ts`). */
const downloadMethods = [
  'upload.getFile',
  'auth.exportAuthorization',
  'auth.importAuthorization',
  'help.getConfig',
]

/** A rehearsal reports a refusal by its name; it gives it no meaning. */
const rehearsals = 'rehears'

/** The methods that the shipped source of the adapter names. */
function listCalled(): string[] {
  const methods = new Set(schema.flatMap(({ kind, name }) => (kind === 'method' ? [name] : [])))
  const files = globSync('*.ts', { cwd: import.meta.dirname }).filter(
    (name) => !name.endsWith('.test.ts') && !name.startsWith(rehearsals),
  )
  const text = files.map((name) => readFileSync(join(import.meta.dirname, name), 'utf8')).join('\n')
  const named = [...text.matchAll(/_: '([a-z]+\.\w+)'/gi)].map(([, name = '']) => name)
  return [...new Set(named)].filter((name) => methods.has(name))
}

describe('the table of errors', () => {
  test('is about every method that the adapter calls', () => {
    expect(listCalled().sort()).toEqual([...used, ...loginMethods, ...downloadMethods].sort())
  })

  test.each(used)('names every error that is documented for %s', (method) => {
    const missing = (throws[method] ?? []).filter((name) => findMeaning(name) === undefined)
    expect(missing).toEqual([])
  })

  test.each([
    ['PEER_FLOOD', 'cold_stopped'],
    ['USER_IS_BLOCKED', 'blocked_by_person'],
    ['YOU_BLOCKED_USER', 'chat_unavailable'],
    ['USER_ID_INVALID', 'chat_unavailable'],
    ['CHAT_INVALID', 'chat_unavailable'],
    ['INPUT_REQUEST_TOO_LONG', 'message_invalid'],
    ['FILEREF_UPGRADE_NEEDED', 'file_unavailable'],
    ['DC_ID_INVALID', 'file_unavailable'],
    ['USER_PRIVACY_RESTRICTED', 'privacy_restricted'],
    ['PRIVACY_PREMIUM_REQUIRED', 'privacy_restricted'],
    ['PRIVACY_NEW', 'privacy_restricted'],
    ['ALLOW_PAYMENT_REQUIRED', 'privacy_restricted'],
    ['ALLOW_PAYMENT_REQUIRED_10', 'privacy_restricted'],
    ['VOICE_MESSAGES_FORBIDDEN', 'privacy_restricted'],
    ['INPUT_USER_DEACTIVATED', 'identity_ineligible'],
    ['USER_IS_BOT', 'identity_ineligible'],
    ['PEER_ID_INVALID', 'chat_unavailable'],
    ['CHANNEL_PRIVATE', 'chat_unavailable'],
    ['CHANNEL_INVALID', 'chat_unavailable'],
    ['CHAT_WRITE_FORBIDDEN', 'chat_unavailable'],
    ['USER_BANNED_IN_CHANNEL', 'chat_unavailable'],
    ['CHAT_ADMIN_REQUIRED', 'chat_unavailable'],
    ['CHAT_RESTRICTED', 'chat_unavailable'],
    ['TOPIC_CLOSED', 'chat_unavailable'],
    ['MESSAGE_EMPTY', 'message_invalid'],
    ['MESSAGE_TOO_LONG', 'message_invalid'],
    ['MEDIA_CAPTION_TOO_LONG', 'message_invalid'],
    ['FILE_PART_3_MISSING', 'message_invalid'],
    ['MEDIA_TTL_INVALID', 'message_invalid'],
    ['CHAT_SEND_DOCS_FORBIDDEN', 'message_invalid'],
    ['AUTH_KEY_UNREGISTERED', 'needs_login'],
    ['AUTH_KEY_INVALID', 'needs_login'],
    ['SESSION_REVOKED', 'needs_login'],
    ['SESSION_EXPIRED', 'needs_login'],
    ['AUTH_KEY_DUPLICATED', 'needs_login'],
    ['AUTH_KEY_PERM_EMPTY', 'needs_login'],
    ['USER_DEACTIVATED', 'restricted'],
    ['USER_DEACTIVATED_BAN', 'restricted'],
    ['PHONE_NUMBER_BANNED', 'restricted'],
    ['FROZEN_METHOD_INVALID', 'restricted'],
    ['FROZEN_PARTICIPANT_MISSING', 'restricted'],
  ])('%s is %s, whatever its code', (text, reason) => {
    for (const code of [400, 403, 406, 420]) {
      expect(outcome(text, code)).toEqual({ kind: 'refused', reason, detail: nameOf(text) })
    }
  })

  test.each([
    ['FLOOD_WAIT_17', 17],
    ['SLOWMODE_WAIT_9', 9],
    ['FLOOD_PREMIUM_WAIT_5', 5],
  ])('%s is a wait of %d seconds', (text, seconds) => {
    const wait = { kind: 'flood_wait', retry_after_seconds: seconds, stops: 'lookups' }
    expect(outcomeOf(errorNamed(text, 420), 'lookups')).toEqual(wait)
  })

  test.each([
    ['RANDOM_ID_DUPLICATE', 500],
    ['FLOOD_WAIT', 420],
  ])('%s proves nothing, and is listed', (text, code) => {
    expect(outcome(text, code)).toEqual({ kind: 'unknown', reason: text })
  })

  test.each([
    ['INTERNAL', 500],
    ['Timeout', -503],
    ['TICKET_MACHINE_BROKEN_7', 400],
  ])('%s proves nothing, and keeps its name because it is not listed', (text, code) => {
    expect(outcome(text, code)).toEqual({ kind: 'unknown', reason: nameOf(text), error: nameOf(text) })
  })

  test('only a call that never reached the client is not_written', () => {
    expect(outcomeOf(new NotWritten('over'), 'sends')).toEqual({ kind: 'not_written', reason: 'over' })
    const lost = { kind: 'unknown', reason: 'connection_lost' }
    expect(outcomeOf(new Error('Session is reset'), 'sends')).toEqual(lost)
  })
})

test.each(loginMethods)('every error of %s ends a login with a reason, and keeps its name', (method) => {
  for (const name of throws[method] ?? []) {
    const detail = expect.stringContaining(nameOf(name))
    expect(failureOf(errorNamed(name))).toMatchObject({ reason: expect.any(String), detail })
  }
  const wait = { reason: 'flood_wait', detail: null, retry_after_seconds: 86_400 }
  expect(failureOf(errorNamed('FLOOD_WAIT_86400', 420))).toEqual(wait)
})
