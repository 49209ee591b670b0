/**
 * A login: by QR code, or by phone number and code, then the two-step password if the account has one. It follows the
 * account to its data centre. Only this file makes or revokes an auth key; the caller of the login stores it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
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
import { Client, type ClientOptions, type Endpoint } from './client.ts'
import { mayPass } from './connect-memory.ts'
import { ProxyFailed } from './dial.ts'
import { ConnectionRefused, findErrorText, findSeconds, nameOf, outcomeOf, refusedSeconds } from './errors.ts'
import { Peers } from './peers.ts'
import { retryWithTime, ServerClock } from './server-clock.ts'
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
const wrongInputs = new Set([
  'PHONE_CODE_INVALID',
  'PHONE_CODE_EMPTY',
  'CODE_INVALID',
  'EMAIL_VERIFY_EXPIRED',
  'PASSWORD_HASH_INVALID',
])

const ways: Readonly<Record<string, LoginCodeWay>> = {
  'auth.sentCodeTypeApp': 'app',
  'auth.sentCodeTypeSms': 'sms',
  'auth.sentCodeTypeFirebaseSms': 'sms',
  'auth.sentCodeTypeSmsWord': 'word',
  'auth.sentCodeTypeSmsPhrase': 'phrase',
  'auth.sentCodeTypeFragmentSms': 'fragment',
  'auth.sentCodeTypeCall': 'call',
  'auth.sentCodeTypeFlashCall': 'call',
  'auth.sentCodeTypeMissedCall': 'missed_call',
  'auth.sentCodeTypeEmailCode': 'email',
  'auth.codeTypeSms': 'sms',
  'auth.codeTypeCall': 'call',
  'auth.codeTypeFlashCall': 'call',
  'auth.codeTypeMissedCall': 'missed_call',
  'auth.codeTypeFragmentSms': 'fragment',
}

/** How often a login begins again because Telegram asks for it (AUTH_RESTART), or a password is proven again. */
const restartsMax = 2

/** The proof was for an older question (SRP_ID_INVALID), or the password has changed since. */
const staleProofs = new Set(['SRP_ID_INVALID', 'SRP_PASSWORD_CHANGED'])

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
  readonly #wanted: LoginRequest
  readonly #report: (step: LoginStep) => void
  readonly #timer: NodeJS.Timeout
  #storage = openLoginStorage()
  #client: Client
  /** What the next text is for. Cleared while the text is checked, so that one text counts once. */
  #asked: ((text: string) => Promise<void>) | undefined
  #renewal: NodeJS.Timeout | undefined
  #wrong = 0
  #restarts = 0
  #hasBegun = false
  #isOver = false

  constructor(endpoint: Endpoint, request: LoginRequest, report: (step: LoginStep) => void) {
    this.#endpoint = endpoint
    this.#wanted = request
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
    await this.#request()
  }

  /** Also when Telegram has the login begin again. From then on a lost connection ends it. */
  async #request(): Promise<void> {
    const { phone } = this.#wanted
    await (phone === null ? this.#showCode() : this.#sendCode(phone))
    this.#hasBegun = true // guard: a login that began again notices a lost connection
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
      proxy: this.#wanted.proxy,
      pushed: (container) => this.#pushed(container),
      ended: () => {
        if (this.#hasBegun) this.#fail(new LoginFailed('connection_lost'))
      },
    })
  }

  #do(work: () => Promise<void>): void {
    if (this.#isOver) return
    void work().catch((error) => {
      const isRestart = findErrorText(error) === 'AUTH_RESTART' && this.#restarts++ < restartsMax // guard: a login begins again when asked to
      if (isRestart) this.#do(() => this.#request())
      else this.#fail(error)
    })
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
    // By Telegram's time: ours may be wrong, and then the code would expire unseen or be renewed every second.
    const leftMs = (told.expires - this.#client.serverSeconds()) * 1000 // guard: a code expires by the time of the server
    const ms = Math.max(1_000, leftMs - renewMs)
    this.#renewal = setTimeout(() => this.#do(() => this.#showCode()), ms)
    this.#report({ kind: 'qr', url, expires_at: new Date(Date.now() + leftMs).toISOString() })
  }

  async #sendCode(phone: string): Promise<void> {
    const { api_id: apiId, api_hash: apiHash } = this.#endpoint
    const phoneNumber = phone.replaceAll(/\D/g, '')
    const settings: tl.TypeCodeSettings = { _: 'codeSettings' }
    const sent = await this.#client.call({ _: 'auth.sendCode', phoneNumber, apiId, apiHash, settings })
    this.#takeSent(sent, phoneNumber)
  }

  #takeSent(sent: tl.auth.TypeSentCode, phoneNumber: string): void {
    if (sent._ === 'auth.sentCodeSuccess') {
      this.#authorised(sent.authorization)
      return
    }
    if (sent._ === 'auth.sentCodePaymentRequired') throw new LoginFailed('payment_required') // guard: a code that costs money
    if (sent.type._ === 'auth.sentCodeTypeSetUpEmailRequired') throw new LoginFailed('email_set_up_required')
    const { type, nextType, timeout = 0, phoneCodeHash } = sent
    const by = nextType && ways[nextType._]
    this.#askForCode({
      ...{ phoneNumber, phoneCodeHash },
      way: ways[type._] ?? 'other',
      place: placeOf(type),
      again: by ? { by, at: timeIn(timeout) } : null,
    })
  }

  #askForCode(sent: SentCode, wrong = false): void {
    const { way: sent_by, place, again } = sent
    this.#ask({ kind: 'code', sent_by, wrong, place, again }, (text) => {
      if (text.trim() === '' && again) return this.#sendAgain(sent, again) // guard: an empty code has it sent again
      return this.#orAgain(
        () => this.#askForCode(sent, true),
        () =>
          this.#orPassword(async () => {
            this.#authorised(await this.#client.call(signInOf(sent, text)))
          }),
      )
    })
  }

  /** By the next way, once Telegram allows it. Until then the same question stands, and also if Telegram refuses. */
  async #sendAgain(sent: SentCode, { by, at }: NextWay): Promise<void> {
    const { phoneNumber, phoneCodeHash } = sent
    if (Date.parse(at) > Date.now()) return this.#askForCode(sent)
    try {
      const next = await this.#client.call({ _: 'auth.resendCode', phoneNumber, phoneCodeHash })
      this.#takeSent(next, phoneNumber)
    } catch (error) {
      // The code that was sent before is still valid.
      const seconds = findSeconds(error)
      const isUnavailable = findErrorText(error) === 'SEND_CODE_UNAVAILABLE'
      if (!isUnavailable && seconds === undefined) throw error // guard: a code stays valid where no other can be sent
      this.#askForCode({ ...sent, again: seconds === undefined ? null : { by, at: timeIn(seconds) } })
    }
  }

  async #askForPassword(wrong: boolean): Promise<void> {
    const request = await this.#client.call({ _: 'account.getPassword' })
    this.#ask({ kind: 'password', hint: request.hint ?? null, wrong }, (text) =>
      this.#orAgain(
        () => this.#askForPassword(true),
        () => this.#checkPassword(request, text),
      ),
    )
  }

  /** Proves it again if the question has changed since it was asked. */
  async #checkPassword(request: tl.account.RawPassword, text: string): Promise<void> {
    for (let tries = 0; ; tries++) {
      try {
        const asked = tries === 0 ? request : await this.#client.call({ _: 'account.getPassword' })
        const password = await this.#client.proveKnowledge(asked, text)
        return this.#authorised(await this.#client.call({ _: 'auth.checkPassword', password }))
      } catch (error) {
        const isStale = staleProofs.has(findErrorText(error) ?? '') && tries < restartsMax // guard: a password is proven again
        if (!isStale) throw error
      }
    }
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

/** How a code is sent again, and from when on. */
interface NextWay {
  readonly by: LoginCodeWay
  readonly at: string
}

interface SentCode {
  readonly phoneNumber: string
  readonly phoneCodeHash: string
  readonly way: LoginCodeWay
  readonly place: string | null
  readonly again: NextWay | null
}

function timeIn(seconds: number): string {
  return new Date(Date.now() + seconds * 1000).toISOString()
}

/** A code by e-mail goes another way (TDLib, `AuthManager::send_auth_sign_in_query`), and a phrase has spaces. */
function signInOf({ phoneNumber, phoneCodeHash, way }: SentCode, text: string): tl.auth.RawSignInRequest {
  const request = { _: 'auth.signIn', phoneNumber, phoneCodeHash } as const
  const digits = text.replaceAll(/\s/g, '')
  // guard: a code by mail is sent as one
  if (way === 'email') return { ...request, emailVerification: { _: 'emailVerificationCode', code: digits } }
  const isText = way === 'phrase' || way === 'word' // guard: a phrase keeps its spaces
  return { ...request, phoneCode: isText ? text.trim() : digits }
}

function placeOf(type: tl.auth.TypeSentCodeType): string | null {
  if (type._ === 'auth.sentCodeTypeFragmentSms') return type.url // guard: an address of a code is shown
  if (type._ === 'auth.sentCodeTypeEmailCode') return type.emailPattern
  return null
}

export async function personOf(user: tl.RawUser) {
  const peers = await Peers.load({
    readSession: () => Promise.resolve(null),
    writeSession: () => Promise.resolve(),
    listPeers: () => Promise.resolve([]),
    writePeers: () => Promise.resolve(),
  })
  peers.learn({ users: [user] })
  const person = peers.with([user]).findPerson(`${user.id}`)
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

/** How often a logout asks before it believes that Telegram does not know the login, and how long it waits in between. */
const logoutTriesMax = 3
const logoutPauseMsDefault = 3_000

/**
 * Revokes the key of a session at Telegram. A key that is already revoked counts as revoked. That Telegram does not know the login
 * can pass, and a login that is forgotten here must not stay valid there.
 */
export async function logout(
  endpoint: Endpoint,
  { session, proxy }: LogoutRequest,
  pauseMs = logoutPauseMsDefault,
): Promise<Outcome<null>> {
  const storage = openSessionStorage(session)
  if (!storage) return { kind: 'accepted', value: null }
  const clock = new ServerClock()
  for (let tries = 1; ; tries++) {
    try {
      await retryWithTime(clock, () => revokeKey(endpoint, { storage, proxy, clock }))
      return { kind: 'accepted', value: null }
    } catch (error) {
      const outcome = outcomeOf(error, 'reading')
      const isGone = outcome.kind === 'refused' && outcome.reason === 'needs_login'
      if (!isGone) return outcome
      const isFinal = !mayPass(outcome.detail) || tries === logoutTriesMax // guard: a logout is tried again
      if (isFinal) return { kind: 'accepted', value: null }
      await sleep(pauseMs)
    }
  }
}

async function revokeKey(
  endpoint: Endpoint,
  given: Pick<ClientOptions, 'storage' | 'proxy' | 'clock'>,
): Promise<void> {
  const client = new Client(endpoint, {
    ...given,
    held: () => true,
    migrates: false,
    pushed: () => {},
    ended: () => {},
  })
  try {
    await client.connect()
    await client.call({ _: 'auth.logOut' })
  } finally {
    await client.close()
  }
}
