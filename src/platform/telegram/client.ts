/**
 * One client of mtcute, which is one connection. A lost connection ends it; the client never reconnects, waits out a
 * flood or repeats a call. Every call passes one gate.
 */
import { release, type } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ITelegramStorageProvider, MtSecurityError, MtTypeAssertionError, type tl } from '@mtcute/core'
import { BaseTelegramClient } from '@mtcute/core/client.js'
import type { BasicDcOption } from '@mtcute/core/utils.js'
import { version } from '../../lib/version.ts'
import { Crypto } from '../mtcute-crypto.ts'
import type { AccountProxy } from '../port.ts'
import { ProxyFailed } from './dial.ts'
import { ConnectionRefused, NoAnswer, NotWritten } from './errors.ts'
import { type ServerClock, serverSecondsOf } from './server-clock.ts'
import { surroundings } from './surroundings.ts'
import { type GuardedTransport, guardedTransport, isTransportError, tooManyConnections } from './transport.ts'

/** Where Telegram is, and which application calls. */
export interface Endpoint {
  readonly api_id: number
  readonly api_hash: string
  /** A data centre on loopback instead of Telegram's own, or Telegram's test servers (`testMode`). */
  readonly test_dc: BasicDcOption | null
}

export interface ClientOptions {
  readonly storage: ITelegramStorageProvider
  /** Whether a byte may be written now. */
  held(): boolean
  /** Whether it may follow the account to another data centre. */
  readonly migrates: boolean
  /** For downloads: they get no updates. Null: the account's own data centre. */
  readonly media?: { readonly dc: BasicDcOption | null }
  readonly proxy: AccountProxy | null
  /** What an earlier client of the account has learned of Telegram's time, for this one and the next. */
  readonly clock?: ServerClock | undefined
  pushed(container: tl.TypeUpdates): void
  /** The client has ended without `close`. Not called after `close`. */
  ended(reason: string, cause: Error): void
}

/** mtcute gives up on a silent server within 8 s; a dial that gets no answer has no limit of its own. */
const connectMsMax = 15_000 // limit: connection to a data centre
const answerMsMax = 20_000 // limit: answer of a data centre
const closeMsMax = 5_000

/** Enough for the data centres of Telegram, of which there are five. */
const loginDialsMax = 5

const { locale } = new Intl.DateTimeFormat().resolvedOptions()
/**
 * How the login describes itself in the list of devices. Logins with empty values are reported to be ended on all devices
 * minutes later (Telethon#4051, TDLibKit#40).
 */
const device = {
  deviceModel: 'Parley',
  appVersion: version,
  systemVersion: `${type()} ${release()}`, // guard: a login names a real system
  systemLangCode: locale, // guard: a login names the language of its system
  langCode: locale.split('-')[0] ?? locale, // guard: a login names its language
}

/** The first data centre that a client dials, and whether it is one of Telegram's test servers. Without one, mtcute's own default. */
export function serversOf({ test_dc }: Endpoint, media: BasicDcOption | null) {
  const dc = media ?? test_dc
  const testMode = test_dc?.testMode ?? false // guard: the test servers are dialled in test mode
  return { ...(dc && { defaultDcs: { main: dc, media: dc } }), testMode }
}

type Answer<T extends tl.RpcMethod> = tl.RpcCallReturn[T['_']]

export class Client {
  readonly #client: BaseTelegramClient
  readonly #transport: GuardedTransport
  readonly #options: ClientOptions
  readonly #over = new AbortController()
  /** Rejects the calls that wait for an answer: mtcute forgets those that it has not written yet. */
  readonly #waiting = new Set<(reason: Error) => void>()
  /** Its key works: a failure from now on does not mean that the connection was refused. */
  #hasAnswer = false

  constructor(endpoint: Endpoint, options: ClientOptions) {
    this.#options = options
    const { test_dc } = endpoint
    const { proxy } = options
    const rules = {
      dialsMax: options.migrates ? loginDialsMax : 1,
      loopbackOnly: test_dc?.testMode === false,
      proxy,
    }
    this.#transport = guardedTransport(
      {
        held: () => options.held(),
        ended: (reason, cause) => this.end(reason, cause ?? this.#refusalBy(reason)),
      },
      rules,
    )
    this.#client = new BaseTelegramClient({
      apiId: endpoint.api_id,
      apiHash: endpoint.api_hash,
      crypto: new Crypto(),
      platform: surroundings,
      transport: this.#transport,
      storage: options.storage,
      storageOptions: { cleanup: false },
      ...serversOf(endpoint, options.media?.dc ?? null),
      logLevel: 0,
      updates: false,
      disableUpdates: options.media !== undefined,
      reconnectionStrategy: () => false,
      initConnectionOptions: device,
      // The default middlewares wait for floods and repeat what failed.
      network: { middlewares: [], connectionCount: () => 1 },
    })
    this.#client.onError.add((error) => {
      const reason = `The client failed: ${error.constructor.name}.`
      this.end(reason, !this.#hasAnswer && isRefusal(error) ? new ConnectionRefused(reason) : undefined)
    })
    this.#client.onServerUpdate.add((container) => {
      if (!this.isOver) options.pushed(container)
    })
  }

  get isOver(): boolean {
    return this.#over.signal.aborted
  }

  async connect(): Promise<void> {
    const late = AbortSignal.timeout(connectMsMax)
    try {
      await unlessAborted(this.#client.connect(), AbortSignal.any([this.#over.signal, late]))
      this.#options.clock?.set(this.#client) // guard: the next client has the right time
    } catch (error) {
      this.end('The connection was not made.')
      throw error
    }
  }

  /**
   * The only way to call. A call on a client that has ended rejects twice, once unhandled. The deadline is our own:
   * mtcute drops an answer that it cannot unpack, and reports its own `timeout` as an error of Telegram.
   */
  async call<T extends tl.RpcMethod>(request: T, msMax: number = answerMsMax): Promise<Answer<T>> {
    const mayCall = !this.isOver // guard: the gate of all calls
    if (!mayCall) throw this.#causeOf(new NotWritten('The session is over.'))
    if (!this.#options.held()) {
      this.end('The lease has run out.')
      throw new NotWritten('The lease has run out.')
    }
    const deadline = new AbortController()
    const { promise, resolve, reject } = Promise.withResolvers<Answer<T>>()
    const timer = setTimeout(() => {
      // mtcute no longer listens to the signal once an answer has arrived, also if it cannot unpack it.
      reject(new NoAnswer()) // guard: every call has a deadline
      deadline.abort(new NoAnswer())
    }, msMax)
    this.#waiting.add(reject)
    this.#client.call<T>(request as never, { abortSignal: deadline.signal }).then(resolve, reject)
    try {
      const answer = await promise
      this.#hasAnswer = true
      // Telegram may have corrected the time without ending the connection.
      this.#options.clock?.keep(this.#client) // guard: a corrected time is known while connected
      return answer
    } catch (error) {
      const { reason } = this.#over.signal
      throw reason instanceof ConnectionRefused ? reason : this.#causeOf(error)
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(reject)
    }
  }

  /** A transport error before the first answer refuses the connection, and so does this one at any time. */
  #refusalBy(reason: string): Error | undefined {
    const isRefused = reason === tooManyConnections || (isTransportError(reason) && !this.#hasAnswer) // guard: a transport error is a refused connection
    return isRefused ? new ConnectionRefused(reason) : undefined
  }

  /** mtcute dials with the first call. If the proxy failed, that is the cause of whatever fails after it. */
  #causeOf(error: unknown): unknown {
    const { reason } = this.#over.signal
    return reason instanceof ProxyFailed ? reason : error
  }

  /** The account's data centre, which a login may have changed. */
  dcId(): Promise<number> {
    return this.#client.getPrimaryDcId()
  }

  async moveTo(dc_id: number): Promise<void> {
    await unlessAborted(
      this.#client.changePrimaryDc(dc_id),
      AbortSignal.any([this.#over.signal, AbortSignal.timeout(connectMsMax)]),
    )
  }

  /** Telegram's time in seconds, as far as the connection knows it. */
  serverSeconds(): number {
    return serverSecondsOf(this.#client)
  }

  proveKnowledge(request: tl.account.RawPassword, password: string): Promise<tl.RawInputCheckPasswordSRP> {
    return this.#client.computeSrpParams(request, password)
  }

  /** Ends it immediately: every call that waits for an answer rejects. */
  end(reason: string, cause = new Error(reason)): void {
    if (this.isOver) return
    this.#options.clock?.keep(this.#client)
    this.#over.abort(cause)
    this.#client.destroy().catch(() => {})
    this.#rejectCalls(reason)
    this.#transport.close()
    this.#options.ended(reason, cause)
  }

  #rejectCalls(reason: string): void {
    for (const reject of this.#waiting) reject(new Error(reason)) // guard: no call outlives its client
  }

  async close(): Promise<void> {
    if (this.isOver) return
    this.#over.abort(new Error('The session is over.'))
    const waiting = new AbortController()
    const late = sleep(closeMsMax, undefined, { ref: false, signal: waiting.signal }).catch(() => {})
    const destroyed = this.#client.destroy().catch(() => {})
    this.#rejectCalls('The session is over.')
    await Promise.race([destroyed, late])
    waiting.abort()
    this.#transport.close()
  }
}

/**
 * Whether the data centre refused the key exchange: it answered with a failure, or is not the one it should be. The last
 * step also fails for one key in 256, which mtcute does not pad.
 */
function isRefusal(error: Error): boolean {
  if (error instanceof MtTypeAssertionError) return true
  return error instanceof MtSecurityError && !error.message.startsWith('Step 4')
}

/**
 * Rejects with the signal's reason if that comes first. Then no caller waits for the work, and its failure is
 * ignored.
 */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
