/** The time of Telegram's servers. A test moves it, which is the same for a client as a wrong clock of its own. */

export class ServerClock {
  #aheadMs = 0

  /** In milliseconds, as `Date.now()`. */
  now(): number {
    return Date.now() + this.#aheadMs
  }

  /** In whole seconds, as most of the protocol has it. */
  seconds(): number {
    return Math.floor(this.now() / 1000)
  }

  /** How far it is ahead of this machine's clock. Dates of messages stay the world's. */
  set(aheadSeconds: number): void {
    this.#aheadMs = aheadSeconds * 1000
  }
}
