/** The `status_reason` of an account that cannot act: what has happened to it, and what the operator can do about it. */

import type { Outcome } from '../port.ts'

export type Trouble = 'needs_login' | 'restricted'

const logIn = (account_id: string) => `Run parley account login ${account_id}.`
/** The cheap act first: Telegram reports a login as ended now and then that is not. */
const tryAgain = (account_id: string) =>
  `Run parley account enable ${account_id} to try once more. If that does not help, run parley account login ${account_id}.`
const enable = (account_id: string) => `then run parley account enable ${account_id}.`

/** By Telegram's name for it, or ours in lower case. */
const sentences: Readonly<Record<string, (account_id: string) => string>> = {
  no_session: (id) => `No login is stored, or it was stored under another PARLEY_SECRET. ${logIn(id)}`,
  key_unknown: (id) => `Telegram no longer knows the login. ${tryAgain(id)}`,
  AUTH_KEY_UNREGISTERED: (id) => `The login was ended at Telegram. ${tryAgain(id)}`, // guard: the cheap act comes first
  SESSION_REVOKED: (id) => `The login was ended in Telegram's list of devices. ${logIn(id)}`,
  SESSION_EXPIRED: (id) => `The login has expired. ${logIn(id)}`,
  SESSION_PASSWORD_NEEDED: (id) => `The login was never finished with the two-step password. ${logIn(id)}`,
  AUTH_KEY_DUPLICATED: (id) =>
    `Two machines have used the login at once, so Telegram has destroyed it. Stop the other one. ${logIn(id)}`,
  USER_DEACTIVATED: (id) => `The account was deleted at Telegram. If it comes back, ${enable(id)}`,
  USER_DEACTIVATED_BAN: (id) => `Telegram has banned the account. Appeal in the official app, ${enable(id)}`,
  PHONE_NUMBER_BANNED: (id) => `Telegram has banned the number. Appeal in the official app, ${enable(id)}`,
  FROZEN: (id) =>
    `Telegram has frozen the account: it can read, and nothing else. A new login does not help. Appeal in the official app ` +
    `(the notice in the list of chats, or @SpamBot), ${enable(id)}`,
  updates_missed: (id) =>
    `More happened while the account was away than Telegram reports, so what it sent then is not known. Compare its ` +
    `chats with the app, ${enable(id)}`,
}

const correct = 'Correct it where the worker runs, and restart the worker.'

/** Faults of the application, not of the account: the operator corrects a variable. */
const misconfigurations: Readonly<Record<string, string>> = {
  CONNECTION_API_ID_INVALID: `Telegram does not know PARLEY_TELEGRAM_API_ID. ${correct}`,
  API_ID_INVALID: `PARLEY_TELEGRAM_API_ID and PARLEY_TELEGRAM_API_HASH do not belong together. ${correct}`,
  API_ID_PUBLISHED_FLOOD: `Telegram blocks PARLEY_TELEGRAM_API_ID, because it was published. Make your own. ${correct}`,
}

/** What is wrong with the variables, if this error says so. */
export function findMisconfiguration(name: string | undefined): string | undefined {
  const sentence = name === undefined ? undefined : misconfigurations[name]
  return sentence && `${sentence} (${name})`
}

/** Words for a name that has no sentence of its own. */
const general: Readonly<Record<Trouble, (account_id: string) => string>> = {
  needs_login: (id) => `Telegram no longer accepts the login. ${tryAgain(id)}`,
  restricted: (id) => `Telegram has restricted the account. See what the official app says, ${enable(id)}`,
}

/** Of `connect`: the detail is what `status_reason` says. */
export function refusedBy(reason: Trouble, name: string, account_id: string): Outcome<never> {
  return { kind: 'refused', reason, detail: explainTrouble(reason, name, account_id) }
}

export function explainTrouble(trouble: Trouble, name: string, account_id: string): string {
  const known = name.startsWith('FROZEN_') ? 'FROZEN' : name // guard: a frozen account appeals
  const sentence = (sentences[known] ?? general[trouble])(account_id)
  return `${sentence} (${name})`
}
