/**
 * How far this machine's clock is from Telegram's. Telegram refuses messages whose id is more than 30 s ahead of its time or 300 s
 * behind (core.telegram.org/mtproto/service_messages_about_messages). mtcute then corrects its offset and dials again; a client of
 * ours dials once, so the next client begins with what this one has learned.
 */
import type { BaseTelegramClient } from '@mtcute/core/client.js'

/** mtcute's record of the time, which has no public name. In seconds, added to `performance.now()`. */
interface TimedSession {
  readonly _timeOffset: number
  updateTimeOffset(offset: number, force: boolean): void
  getServerTime(): number
}

function findSession(client: BaseTelegramClient): TimedSession | undefined {
  const { network } = client.mt as unknown as {
    network: { _primaryDc?: { main?: { _connections?: readonly { _session?: TimedSession }[] } } }
  }
  return network._primaryDc?.main?._connections?.[0]?._session
}

/** The time of this machine when mtcute began to count. */
const origin = Math.floor(performance.timeOrigin / 1000)

export function serverSecondsOf(client: BaseTelegramClient): number {
  return findSession(client)?.getServerTime() ?? Date.now() / 1000
}

export class ServerClock {
  /** Added to `performance.now()`, which goes on when this machine's clock is set. Undefined: Telegram has corrected no client. */
  #offset: number | undefined
  #corrections = 0
  /** The offset of each client, as it began or was last kept. */
  readonly #offsets = new WeakMap<BaseTelegramClient, number>()

  /**
   * Seconds that Telegram's clock is ahead of this machine's, as that is set right now; negative: behind. 0 also while nothing else
   * is known.
   */
  get offsetSeconds(): number {
    if (this.#offset === undefined) return 0
    return performance.now() / 1000 + this.#offset - Date.now() / 1000 // guard: a clock that was set is right
  }

  /** How often Telegram has corrected a client. */
  get corrections(): number {
    return this.#corrections
  }

  /** Passes the offset on to a client that has not called yet. */
  set(client: BaseTelegramClient): void {
    if (this.#offset === undefined) return
    findSession(client)?.updateTimeOffset(this.#offset, true)
    this.#offsets.set(client, this.#offset)
  }

  /** Keeps what a client has learned. */
  keep(client: BaseTelegramClient): void {
    const offset = findSession(client)?._timeOffset
    if (offset === undefined || offset === (this.#offsets.get(client) ?? origin)) return
    this.#offsets.set(client, offset)
    this.#offset = offset
    this.#corrections++
  }
}

/**
 * Does what needs one connection, and once more if that failed while Telegram corrected the time: a process of the terminal has no
 * earlier client to learn it from.
 */
export async function retryWithTime<T>(clock: ServerClock, work: () => Promise<T>): Promise<T> {
  const known = clock.corrections
  try {
    return await work()
  } catch (error) {
    const isCorrected = clock.corrections !== known // guard: one more try with the right time
    if (!isCorrected) throw error
  }
  return work()
}

/** From here on Telegram refuses what we send. */
const offSecondsMax = 30

/** Undefined: the clock is right enough. */
export function explainClock(offsetSeconds: number): string | undefined {
  const seconds = Math.abs(Math.round(offsetSeconds))
  if (seconds <= offSecondsMax) return undefined
  const side = offsetSeconds < 0 ? 'fast' : 'slow'
  return `The clock of this machine is ${seconds} s ${side} by Telegram's time. Set it, best by NTP; until then Parley corrects for it.`
}
