/** Logging in and out: with a code or a QR code, with a two-step password, at the number's data centre. */
import { randomBytes } from 'node:crypto'
import type { tl } from '@mtcute/core'
import Long from 'long'
import { digitsOf } from '../../../src/platform/sandbox/people.ts'
import type { Account } from '../../../src/platform/sandbox/state.ts'
import { codeOf, codePlanDefault, type SentCode, viewSentCode } from './codes.ts'
import { type Call, type Connection, type Handlers, refuse } from './connection.ts'
import type { CentreParts } from './parts.ts'
import { noPassword, PasswordCheck } from './password.ts'
import { writeFromTelegram } from './service-chat.ts'
import { unixSeconds, viewUser } from './views.ts'

export const firstDc = 2
export const secondDc = 4

const tokenMs = 30_000
/** Pending codes and tokens; the oldest is dropped. */
const waitingMax = 1000

interface Token {
  readonly connection: Connection
  readonly expires: number
  account: Account | null
}

/** A question for the two-step password, with the password it is about. */
interface Asked {
  readonly account: Account
  readonly question?: { readonly check: PasswordCheck; readonly password: string }
}

/** Telegram's own test numbers are 99966, the data centre, four digits. All others belong to the first one. */
function homeOf(phone: string): number {
  return digitsOf(phone).startsWith(`99966${secondDc}`) ? secondDc : firstDc
}

function keep<T>(waiting: Map<string, T>, name: string, value: T): void {
  waiting.set(name, value)
  const [oldest] = waiting.keys()
  if (waiting.size > waitingMax && oldest !== undefined) waiting.delete(oldest)
}

/** The device that has shown the code, as the one that scanned it gets it. */
function viewNewDevice(now: number): tl.RawAuthorization {
  return {
    ...{ _: 'authorization', hash: Long.ONE, deviceModel: '', platform: '', systemVersion: '', apiId: 1 },
    ...{
      appName: '',
      appVersion: '',
      dateCreated: now,
      dateActive: now,
      ip: '127.0.0.1',
      country: '',
      region: '',
    },
  }
}

interface Logins {
  readonly handlers: Handlers
  /** The account scans the QR code of the newest waiting login; false if no login is waiting. */
  accept(account: Account): boolean
}

export function openLogins({ world, store, clock, crypto }: CentreParts): Logins {
  const codes = new Map<string, SentCode>()
  const tokens = new Map<string, Token>()
  /** By key id. */
  const asked = new Map<string, Asked>()

  function accept(account: Account): boolean {
    const token = [...tokens.values()].findLast(({ account: by, expires }) => !by && expires > clock.now())
    if (!token) return false
    acceptToken(token, account)
    return true
  }

  function acceptToken(token: Token, account: Account): void {
    token.account = account
    const update = { _: 'updateLoginToken' } as const
    void token.connection.push({ _: 'updateShort', update, date: clock.seconds() })
  }

  function strike(account: Account | undefined): void {
    const fault = world.takeFault({ on: 'login', account_id: account?.account_id ?? '' })
    if (fault?.fault === 'refuse') refuse(fault.error ?? 'PHONE_NUMBER_INVALID')
    if (fault?.fault === 'flood_wait') refuse(`420 FLOOD_WAIT_${fault.seconds}`)
    if (fault) refuse('500 INTERNAL')
  }

  /** A code for the app comes as a message of Telegram, on every device that is logged in. */
  function sendCode(sent: SentCode): tl.auth.TypeSentCode {
    const phoneCodeHash = randomBytes(9).toString('hex')
    keep(codes, phoneCodeHash, sent)
    const account_id = world.findAccountByPhone(sent.phone)?.account_id
    const isLoggedIn = [...store.state.auth_keys.values()].some((key) => key.account_id === account_id)
    if (account_id !== undefined && isLoggedIn && sent.plan.ways[sent.at] === 'app') {
      writeFromTelegram(world, account_id, `Login code: ${codeOf('app')}. Give it to nobody.`)
    }
    return viewSentCode(sent, phoneCodeHash)
  }

  function requireCode(phoneNumber: string, phoneCodeHash: string): SentCode {
    const sent = codes.get(phoneCodeHash)
    return sent?.phone === digitsOf(phoneNumber) ? sent : refuse('PHONE_CODE_EXPIRED')
  }

  function logIn({ connection }: Call, account: Account): tl.auth.RawAuthorization {
    store.commit({ ...connection.key, account_id: account.account_id })
    return { _: 'auth.authorization', user: viewUser(world.state, account, account.person_id) }
  }

  function logInOrAsk(call: Call, account: Account): tl.auth.RawAuthorization {
    if (!store.state.passwords.has(account.account_id)) return logIn(call, account)
    keep(asked, call.connection.key.key_id, { account })
    return refuse('401 SESSION_PASSWORD_NEEDED')
  }

  function useToken(call: Call, name: string, token: Token & { account: Account }): tl.auth.TypeLoginToken {
    const dcId = homeOf(world.state.people.get(token.account.person_id)?.phone ?? '')
    if (call.connection.dc !== dcId) {
      return { _: 'auth.loginTokenMigrateTo', dcId, token: Buffer.from(name, 'hex') }
    }
    tokens.delete(name)
    return { _: 'auth.loginTokenSuccess', authorization: logInOrAsk(call, token.account) }
  }

  const handlers: Handlers = {
    'auth.sendCode': ({ phoneNumber }, { connection }) => {
      if (!/^\+?\d{5,20}$/.test(phoneNumber)) refuse('PHONE_NUMBER_INVALID')
      if (homeOf(phoneNumber) !== connection.dc) refuse(`303 PHONE_MIGRATE_${homeOf(phoneNumber)}`)
      strike(world.findAccountByPhone(phoneNumber))
      const phone = digitsOf(phoneNumber)
      return sendCode({ phone, plan: store.state.codes.get(phone) ?? codePlanDefault, at: 0 })
    },
    'auth.resendCode': ({ phoneNumber, phoneCodeHash }) => {
      const sent = requireCode(phoneNumber, phoneCodeHash)
      const at = sent.at + 1
      if (at >= sent.plan.ways.length) refuse('406 SEND_CODE_UNAVAILABLE')
      codes.delete(phoneCodeHash)
      return sendCode({ ...sent, at })
    },
    'auth.cancelCode': ({ phoneNumber, phoneCodeHash }) => {
      requireCode(phoneNumber, phoneCodeHash)
      return codes.delete(phoneCodeHash)
    },
    'auth.signIn': ({ phoneNumber, phoneCodeHash, phoneCode, emailVerification }, call) => {
      const { plan, at } = requireCode(phoneNumber, phoneCodeHash)
      const way = plan.ways[at] ?? 'app'
      // A code that came by e-mail is accepted as that only (TDLib, `AuthManager::send_auth_sign_in_query`).
      const email = emailVerification?._ === 'emailVerificationCode' ? emailVerification.code : undefined
      const given = way === 'email' ? email : phoneCode
      if (!given && !phoneCode) refuse('PHONE_CODE_EMPTY')
      if (given !== codeOf(way)) refuse('PHONE_CODE_INVALID')
      codes.delete(phoneCodeHash)
      const account = world.findAccountByPhone(phoneNumber)
      return account ? logInOrAsk(call, account) : { _: 'auth.authorizationSignUpRequired' }
    },
    'auth.exportLoginToken': (_request, call) => {
      const { connection } = call
      for (const [name, token] of tokens) {
        const { account } = token
        if (token.connection === connection && account) return useToken(call, name, { ...token, account })
      }
      strike(undefined)
      const token = randomBytes(16)
      const expires = clock.now() + tokenMs
      keep(tokens, token.toString('hex'), { connection, expires, account: null })
      return { _: 'auth.loginToken', token, expires: unixSeconds(expires) }
    },
    'auth.acceptLoginToken': ({ token: given }, { connection }) => {
      const { account_id } = connection.key
      if (account_id === null) return refuse('401 AUTH_KEY_UNREGISTERED')
      const token = tokens.get(Buffer.from(given).toString('hex'))
      if (!token) return refuse('AUTH_TOKEN_INVALID')
      if (token.account) return refuse('AUTH_TOKEN_ALREADY_ACCEPTED')
      if (token.expires <= clock.now()) return refuse('AUTH_TOKEN_EXPIRED')
      acceptToken(token, world.requireAccount(account_id))
      return viewNewDevice(clock.seconds())
    },
    'auth.importLoginToken': ({ token: given }, call) => {
      const name = Buffer.from(given).toString('hex')
      const token = tokens.get(name)
      if (!token?.account) return refuse('AUTH_TOKEN_INVALID')
      return useToken(call, name, { ...token, account: token.account })
    },
    'account.getPassword': async (_request, { connection }) => {
      const { key_id, account_id } = connection.key
      const account = account_id === null ? asked.get(key_id)?.account : world.requireAccount(account_id)
      if (!account) return refuse('401 AUTH_KEY_UNREGISTERED')
      const password = store.state.passwords.get(account.account_id)
      if (password === undefined) return noPassword
      const check = await PasswordCheck.ask(crypto, password)
      keep(asked, key_id, { account, question: { check, password } })
      return check.question
    },
    'auth.checkPassword': ({ password }, call) => {
      const { key_id } = call.connection.key
      const { account, question } = asked.get(key_id) ?? {}
      if (!account || !question?.check.isAnsweredBy(password)) return refuse('SRP_ID_INVALID')
      keep(asked, key_id, { account })
      if (store.state.passwords.get(account.account_id) !== question.password) refuse('SRP_PASSWORD_CHANGED')
      if (!question.check.isRight(password)) refuse('PASSWORD_HASH_INVALID')
      asked.delete(key_id)
      return logIn(call, account)
    },
    'auth.logOut': (_request, { connection }) => {
      store.commit({ ...connection.key, account_id: null })
      return { _: 'auth.loggedOut' }
    },
  }
  return { handlers, accept }
}
