/** Logging in and out: with the code 12345 or a QR code, with a two-step password, at the number's data centre. */
import { randomBytes } from 'node:crypto'
import type { tl } from '@mtcute/core'
import type { ICryptoProvider } from '@mtcute/core/utils.js'
import { digitsOf } from '../people.ts'
import type { Account } from '../state.ts'
import type { World } from '../world.ts'
import type { Call, Connection, Handlers } from './connection.ts'
import { noPassword, PasswordCheck } from './password.ts'
import { refuse } from './served-account.ts'
import { unixSeconds, viewUser } from './views.ts'

export const firstDc = 2
export const secondDc = 4

const code = '12345'
const tokenMs = 30_000
/** Pending codes and tokens; the oldest is dropped. */
const waitingMax = 1000

interface Token {
  readonly connection: Connection
  readonly expires: number
  account: Account | null
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

export function loginHandlers(world: World, crypto: ICryptoProvider): Handlers {
  const codes = new Map<string, string>()
  const tokens = new Map<string, Token>()
  /** By key id: the account whose password is asked for, and the question. */
  const asked = new Map<string, { readonly account: Account; check?: PasswordCheck }>()

  world.acceptLogin = (account) => {
    const token = [...tokens.values()].findLast(({ account: by, expires }) => !by && expires > Date.now())
    if (!token) return false
    token.account = account
    const update = { _: 'updateLoginToken' } as const
    void token.connection.push({ _: 'updateShort', update, date: unixSeconds(Date.now()) })
    return true
  }

  function strike(account: Account | undefined): void {
    const fault = world.takeFault({ on: 'login', account_id: account?.account_id ?? '' })
    if (fault?.fault === 'refuse') refuse(fault.error ?? 'PHONE_NUMBER_INVALID')
    if (fault?.fault === 'flood_wait') refuse(`420 FLOOD_WAIT_${fault.seconds}`)
    if (fault) refuse('500 INTERNAL')
  }

  function logIn({ connection }: Call, account: Account): tl.auth.RawAuthorization {
    world.commit({ ...connection.key, account_id: account.account_id })
    return { _: 'auth.authorization', user: viewUser(world.state, account, account.person_id) }
  }

  function logInOrAsk(call: Call, account: Account): tl.auth.RawAuthorization {
    if (account.password === null) return logIn(call, account)
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

  return {
    'auth.sendCode': ({ phoneNumber }, { connection }) => {
      if (!/^\+?\d{5,20}$/.test(phoneNumber)) refuse('PHONE_NUMBER_INVALID')
      if (homeOf(phoneNumber) !== connection.dc) refuse(`303 PHONE_MIGRATE_${homeOf(phoneNumber)}`)
      strike(world.findAccountByPhone(phoneNumber))
      const phoneCodeHash = randomBytes(9).toString('hex')
      keep(codes, phoneCodeHash, digitsOf(phoneNumber))
      return { _: 'auth.sentCode', type: { _: 'auth.sentCodeTypeApp', length: code.length }, phoneCodeHash }
    },
    'auth.signIn': ({ phoneNumber, phoneCodeHash, phoneCode }, call) => {
      if (codes.get(phoneCodeHash) !== digitsOf(phoneNumber)) refuse('PHONE_CODE_EXPIRED')
      if (!phoneCode) refuse('PHONE_CODE_EMPTY')
      if (phoneCode !== code) refuse('PHONE_CODE_INVALID')
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
      const expires = Date.now() + tokenMs
      keep(tokens, token.toString('hex'), { connection, expires, account: null })
      return { _: 'auth.loginToken', token, expires: unixSeconds(expires) }
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
      if (account.password === null) return noPassword
      const check = await PasswordCheck.ask(crypto, account.password)
      keep(asked, key_id, { account, check })
      return check.question
    },
    'auth.checkPassword': ({ password }, call) => {
      const { key_id } = call.connection.key
      const { account, check } = asked.get(key_id) ?? {}
      if (!account || !check) return refuse('SRP_ID_INVALID')
      keep(asked, key_id, { account })
      if (!check.isRight(password)) refuse('PASSWORD_HASH_INVALID')
      asked.delete(key_id)
      return logIn(call, account)
    },
    'auth.logOut': (_request, { connection }) => {
      world.commit({ ...connection.key, account_id: null })
      return { _: 'auth.loggedOut' }
    },
  }
}
