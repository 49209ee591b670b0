/**
 * A login: by QR code, or by phone number and code, then the two-step password if the account has one. It follows the
 * account to its data centre. Only this file makes or revokes an auth key; the caller of the login stores it.
 */
import type { tl } from '@mtcute/core'
import type {
  Login,
  LoginCodeWay,
  LoginFailure,
  LoginRequest,
  LoginStep,
  LogoutRequest,
  Outcome,
} from '../port.ts'
import { Client, type Endpoint } from './client.ts'
import { ProxyFailed } from './dial.ts'
import { ConnectionRefused, findErrorText, findSeconds, nameOf, outcomeOf, refusedSeconds } from './errors.ts'
import { Peers } from './peers.ts'
import { makeBlob, openLoginStorage, openSessionStorage } from './storage.ts'
import { findMisconfiguration } from './trouble.ts'

const wrongMax = 3
const loginMsMax = 10 * 60_000
/** A QR code is renewed this long before it expires. */
const renewMs = 3_000

type Failure = Omit<Extract<LoginStep, { kind: 'failed' }>, 'kind'>

/** Errors that end a login. Any other error is `refused`, with its name. */
const failures: Readonly<Record<string, LoginFailure>> = {
  PHONE_NUMBER_INVALID: 'phone_invalid',
  PHONE_NUMBER_BANNED: 'phone_banned',
  USER_DEACTIVATED: 'phone_banned',
  USER_DEACTIVATED_BAN: 'phone_banned',
  PHONE_NUMBER_UNOCCUPIED: 'sign_up_required',
  PHONE_NUMBER_APP_SIGNUP_FORBIDDEN: 'sign_up_required',
  PHONE_CODE_EXPIRED: 'code_expired',
  PHONE_NUMBER_FLOOD: 'too_many_attempts',
  PHONE_PASSWORD_FLOOD: 'too_many_attempts',
}

/** The input is wrong; the person may try again. */
const wrongInputs = new Set(['PHONE_CODE_INVALID', 'PHONE_CODE_EMPTY', 'PASSWORD_HASH_INVALID'])

const ways: Readonly<Record<string, LoginCodeWay>> = {
  'auth.sentCodeTypeApp': 'app',
  'auth.sentCodeTypeSms': 'sms',
  'auth.sentCodeTypeFirebaseSms': 'sms',
  'auth.sentCodeTypeSmsWord': 'sms',
  'auth.sentCodeTypeSmsPhrase': 'sms',
  'auth.sentCodeTypeFragmentSms': 'sms',
  'auth.sentCodeTypeCall': 'call',
  'auth.sentCodeTypeFlashCall': 'call',
  'auth.sentCodeTypeMissedCall': 'call',
  'auth.sentCodeTypeEmailCode': 'email',
}

class LoginFailed extends Error {
  override readonly name = 'LoginFailed'
  readonly reason: LoginFailure

  constructor(reason: LoginFailure) {
    super(reason)
    this.reason = reason
  }
}

export function beginLogin(
  endpoint: Endpoint,
  request: LoginRequest,
  report: (step: LoginStep) => void,
): Login {
  const attempt = new LoginAttempt(endpoint, request, report)
  attempt.begin()
  return attempt
}

class LoginAttempt implements Login {
  readonly #endpoint: Endpoint
  readonly #request: LoginRequest
  readonly #report: (step: LoginStep) => void
  readonly #timer: NodeJS.Timeout
  #storage = openLoginStorage()
  #client: Client
  /** What the next text is for. Cleared while the text is checked, so that one text counts once. */
  #asked: ((text: string) => Promise<void>) | undefined
  #renewal: NodeJS.Timeout | undefined
  #wrong = 0
  #hasBegun = false
  #isOver = false

  constructor(endpoint: Endpoint, request: LoginRequest, report: (step: LoginStep) => void) {
    this.#endpoint = endpoint
    this.#request = request
    this.#report = report
    this.#client = this.#newClient()
    this.#timer = setTimeout(() => this.#fail(new LoginFailed('timed_out')), loginMsMax)
  }

  /**
   * One key exchange in 256 fails and ends its client, because mtcute does not pad a short key. So the first step is
   * tried once more with another client.
   */
  begin(): void {
    this.#do(async () => {
      try {
        await this.#takeFirstStep()
      } catch (error) {
        const isTold =
          error instanceof LoginFailed ||
          error instanceof ProxyFailed ||
          error instanceof ConnectionRefused || // guard: a login does not repeat a refused key exchange
          findErrorText(error) !== undefined
        if (this.#isOver || isTold) throw error
        await this.#client.close()
        this.#storage = openLoginStorage()
        this.#client = this.#newClient()
        await this.#takeFirstStep()
      }
    })
  }

  async #takeFirstStep(): Promise<void> {
    await this.#client.connect()
    const { phone } = this.#request
    await (phone === null ? this.#showCode() : this.#sendCode(phone))
    this.#hasBegun = true
  }

  answer(text: string): void {
    const asked = this.#asked
    this.#asked = undefined
    if (asked) this.#do(() => asked(text))
  }

  async close(): Promise<void> {
    this.#stop()
    await this.#client.close()
  }

  #newClient(): Client {
    return new Client(this.#endpoint, {
      storage: this.#storage,
      held: () => true,
      migrates: true,
      proxy: this.#request.proxy,
      pushed: (container) => this.#pushed(container),
      ended: () => {
        if (this.#hasBegun) this.#fail(new LoginFailed('connection_lost'))
      },
    })
  }

  #do(work: () => Promise<void>): void {
    if (this.#isOver) return
    void work().catch((error) => this.#fail(error))
  }

  #stop(): void {
    this.#isOver = true
    this.#asked = undefined
    clearTimeout(this.#timer)
    clearTimeout(this.#renewal)
  }

  #fail(error: unknown): void {
    if (this.#isOver) return
    this.#stop()
    void this.#client.close()
    this.#report({ kind: 'failed', ...failureOf(error) })
  }

  #pushed(container: tl.TypeUpdates): void {
    const isAccepted = container._ === 'updateShort' && container.update._ === 'updateLoginToken'
    if (isAccepted) this.#do(() => this.#showCode())
  }

  /** Requests a token: Telegram returns a new one to show, or reports that the last one was accepted. */
  async #showCode(): Promise<void> {
    clearTimeout(this.#renewal)
    const { api_id: apiId, api_hash: apiHash } = this.#endpoint
    await this.#orPassword(async () => {
      const told = await this.#client.call({ _: 'auth.exportLoginToken', apiId, apiHash, exceptIds: [] })
      await this.#takeToken(told)
    })
  }

  async #takeToken(told: tl.auth.TypeLoginToken): Promise<void> {
    if (this.#isOver) return
    if (told._ === 'auth.loginTokenSuccess') return this.#authorised(told.authorization)
    if (told._ === 'auth.loginTokenMigrateTo') {
      await this.#client.moveTo(told.dcId)
      return this.#takeToken(await this.#client.call({ _: 'auth.importLoginToken', token: told.token }))
    }
    const url = `tg://login?token=${Buffer.from(told.token).toString('base64url')}`
    const expires = told.expires * 1000
    const ms = Math.max(1_000, expires - Date.now() - renewMs)
    this.#renewal = setTimeout(() => this.#do(() => this.#showCode()), ms)
    this.#report({ kind: 'qr', url, expires_at: new Date(expires).toISOString() })
  }

  async #sendCode(phone: string): Promise<void> {
    const { api_id: apiId, api_hash: apiHash } = this.#endpoint
    const phoneNumber = phone.replaceAll(/\D/g, '')
    const settings: tl.TypeCodeSettings = { _: 'codeSettings' }
    const sent = await this.#client.call({ _: 'auth.sendCode', phoneNumber, apiId, apiHash, settings })
    if (sent._ === 'auth.sentCodeSuccess') return this.#authorised(sent.authorization)
    if (sent._ !== 'auth.sentCode') throw new LoginFailed('refused')
    if (sent.type._ === 'auth.sentCodeTypeSetUpEmailRequired') throw new LoginFailed('email_set_up_required')
    this.#askForCode(
      { phoneNumber, phoneCodeHash: sent.phoneCodeHash, way: ways[sent.type._] ?? 'other' },
      false,
    )
  }

  #askForCode(sent: { phoneNumber: string; phoneCodeHash: string; way: LoginCodeWay }, wrong: boolean): void {
    const { phoneNumber, phoneCodeHash, way } = sent
    this.#ask({ kind: 'code', sent_by: way, wrong }, (text) =>
      this.#orAgain(
        () => this.#askForCode(sent, true),
        () =>
          this.#orPassword(async () => {
            const phoneCode = text.replaceAll(/\s/g, '')
            this.#authorised(
              await this.#client.call({ _: 'auth.signIn', phoneNumber, phoneCodeHash, phoneCode }),
            )
          }),
      ),
    )
  }

  async #askForPassword(wrong: boolean): Promise<void> {
    const request = await this.#client.call({ _: 'account.getPassword' })
    this.#ask({ kind: 'password', hint: request.hint ?? null, wrong }, (text) =>
      this.#orAgain(
        () => this.#askForPassword(true),
        async () => {
          const password = await this.#client.proveKnowledge(request, text)
          this.#authorised(await this.#client.call({ _: 'auth.checkPassword', password }))
        },
      ),
    )
  }

  #ask(step: LoginStep, asked: (text: string) => Promise<void>): void {
    if (this.#isOver) return
    this.#asked = asked
    this.#report(step)
  }

  /** Accounts with two-step verification also need the password after a QR code. */
  async #orPassword(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (findErrorText(error) !== 'SESSION_PASSWORD_NEEDED') throw error
      await this.#askForPassword(false)
    }
  }

  async #orAgain(ask: () => Promise<void> | void, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (!wrongInputs.has(findErrorText(error) ?? '')) throw error
      if (++this.#wrong >= wrongMax) throw new LoginFailed('too_many_attempts')
      await ask()
    }
  }

  #authorised(authorization: tl.auth.TypeAuthorization): void {
    if (authorization._ !== 'auth.authorization') throw new LoginFailed('sign_up_required')
    const { user } = authorization
    if (user._ !== 'user') throw new LoginFailed('refused')
    this.#do(async () => {
      const session = await makeBlob(this.#storage, await this.#client.dcId())
      if (this.#isOver) return
      this.#stop()
      // Close before the report: the caller may use the key as soon as it has it, and two connections must not share
      // it.
      await this.#client.close()
      this.#report({ kind: 'done', self: await personOf({ ...user, self: true }), session })
    })
  }
}

async function personOf(user: tl.RawUser) {
  const peers = await Peers.load({
    readSession: () => Promise.resolve(null),
    writeSession: () => Promise.resolve(),
    listPeers: () => Promise.resolve([]),
    writePeers: () => Promise.resolve(),
  })
  peers.learn({ users: [user] })
  const person = peers.findPerson(`${user.id}`)
  if (!person) throw new LoginFailed('refused')
  return person
}

/** Reports Telegram's name of the error, and nothing that was typed. */
export function failureOf(error: unknown): Failure {
  if (error instanceof LoginFailed) return { reason: error.reason, detail: null, retry_after_seconds: null }
  if (error instanceof ProxyFailed) {
    return { reason: 'proxy_failed', detail: error.message, retry_after_seconds: null }
  }
  if (error instanceof ConnectionRefused) {
    return { reason: 'flood_wait', detail: null, retry_after_seconds: refusedSeconds }
  }
  const text = findErrorText(error)
  if (text === undefined) return { reason: 'connection_lost', detail: null, retry_after_seconds: null }
  const seconds = findSeconds(error)
  if (seconds !== undefined) return { reason: 'flood_wait', detail: null, retry_after_seconds: seconds }
  const name = nameOf(text)
  const misconfiguration = findMisconfiguration(name)
  if (misconfiguration)
    return { reason: 'misconfigured', detail: misconfiguration, retry_after_seconds: null }
  return { reason: failures[name] ?? 'refused', detail: name, retry_after_seconds: null }
}

/** Revokes the key of a session at Telegram. A key that is already revoked counts as revoked. */
export async function logout(endpoint: Endpoint, { session, proxy }: LogoutRequest): Promise<Outcome<null>> {
  const storage = openSessionStorage(session)
  if (!storage) return { kind: 'accepted', value: null }
  const client = new Client(endpoint, {
    storage,
    held: () => true,
    migrates: false,
    proxy,
    pushed: () => {},
    ended: () => {},
  })
  try {
    await client.connect()
    await client.call({ _: 'auth.logOut' })
    return { kind: 'accepted', value: null }
  } catch (error) {
    const outcome = outcomeOf(error, 'reading')
    const isGone = outcome.kind === 'refused' && outcome.reason === 'needs_login'
    return isGone ? { kind: 'accepted', value: null } : outcome
  } finally {
    await client.close()
  }
}
