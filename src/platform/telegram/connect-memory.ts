/**
 * What one connect of an account leaves for the next in this process: Telegram's time, and since when Telegram says that it does
 * not know the login. One such answer can pass (WTelegramClient#160; TDLib asks once more before it logs out), so it counts only
 * after some minutes.
 */
import type { AccountRef, Outcome } from '../port.ts'
import { ServerClock } from './server-clock.ts'
import { refusedBy } from './trouble.ts'

const doubtMsDefault = 5 * 60_000
const againSeconds = 20
/** A session that lasts for this long has shown that Telegram knows the login. */
const steadyMs = 60_000

/** Errors that can pass. SESSION_REVOKED and AUTH_KEY_DUPLICATED never do. */
const passing = new Set(['AUTH_KEY_UNREGISTERED', 'AUTH_KEY_INVALID', 'AUTH_KEY_PERM_EMPTY'])

export function mayPass(name: string | undefined): name is string {
  return name !== undefined && passing.has(name) // guard: a login that was ended never passes
}

export class ConnectMemory {
  readonly clock = new ServerClock()
  readonly #doubtMs: number
  /** By the monotonic clock. */
  #doubtedSince: number | undefined
  /** By the monotonic clock: when the session that is open began. */
  #connectedAt: number | undefined

  constructor(doubtMs = doubtMsDefault) {
    this.#doubtMs = doubtMs
  }

  /** Telegram says that it does not know the login, while connecting or in a session. */
  doubt(name: string, { account_id }: Pick<AccountRef, 'account_id'>): Outcome<never> {
    this.noteEnded()
    const now = performance.now()
    this.#doubtedSince ??= now
    const isOver = now - this.#doubtedSince >= this.#doubtMs // guard: an unknown login may pass
    if (isOver) {
      // The next connect is a person's wish, and begins again.
      this.#doubtedSince = undefined
      return refusedBy('needs_login', name, account_id)
    }
    const reason = `Telegram says that it does not know the login. That can pass: Parley tries again for some minutes. (${name})`
    return { kind: 'not_written', cause: 'doubtful', reason, retry_after_seconds: againSeconds }
  }

  /** A session begins. */
  noteConnected(): void {
    this.#connectedAt = performance.now()
  }

  /** The session that is open ends, for whatever reason. The time without one must not count as a part of it. */
  noteEnded(): void {
    if (this.#connectedAt === undefined) return
    // A login that connects and fails at once each time would never be over.
    const wasSteady = performance.now() - this.#connectedAt >= steadyMs // guard: a short session settles no doubt
    if (wasSteady) this.#doubtedSince = undefined
    this.#connectedAt = undefined
  }
}
