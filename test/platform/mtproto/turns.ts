/** What happens in place of an answer, and when: after some answers, some times, to one account or to all. */

export interface Turn {
  /** The request whose answer it replaces, such as `messages.sendMessage`; `any`: whatever is answered. */
  readonly on: string
  /** How many such answers pass before it. */
  readonly after?: number | undefined
  /** Undefined: every account, and connections without one. */
  readonly account_id?: string | undefined
  /** Once by default. */
  readonly times?: number | undefined
}

/** An error that passes: `401 AUTH_KEY_UNREGISTERED`, or a name whose code is 400. */
export interface Refusal extends Turn {
  readonly error: string
}

export class Turns<T extends Turn> {
  readonly #waiting = new Map<T, { after: number; times: number }>()

  add(turn: T): void {
    const { after = 0, times = 1 } = turn
    this.#waiting.set(turn, { after, times })
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Returns how many were waiting. */
  clear(): number {
    const { waiting } = this
    this.#waiting.clear()
    return waiting
  }

  take(on: string, account_id: string | undefined): T | undefined {
    for (const [turn, left] of this.#waiting) {
      const isOurs = turn.account_id === undefined || turn.account_id === account_id
      if (!isOurs || (turn.on !== on && turn.on !== 'any')) continue
      if (left.after-- > 0) continue
      if (--left.times === 0) this.#waiting.delete(turn)
      return turn
    }
    return undefined
  }
}
