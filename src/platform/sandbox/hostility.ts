/** What a hostile network does to clients of the data centre, and when. `mtproto/hostile.ts` says how. */

export const hostileNames = [
  'truncated',
  'endless',
  'unfinished',
  'empty',
  'short',
  'foreign',
  'noise',
  'plain',
  'unfactorable',
  'unbounded',
  'refused_exchange',
  'flipped',
  'wrong_key',
  'wrong_session',
  'wrong_salts',
  'bad_messages',
  'unknown_constructor',
  'unknown_answer',
  'broken_answer',
  'endless_container',
  'bomb',
  'pushed_bomb',
  'error_404',
  'error_429',
  'error_444',
  'unasked',
  'silence',
  'half_open',
  'cut',
] as const
export type HostileCase = (typeof hostileNames)[number]

export interface Hostility {
  readonly case: HostileCase
  /**
   * The request whose answer it replaces, such as `messages.sendMessage` or `mt_req_pq_multi`; `accept`: a new connection;
   * `any`: whatever is answered.
   */
  readonly on: string
  /** How many such answers pass before it. */
  readonly after?: number | undefined
  /** Undefined: every account, and connections without one. */
  readonly account_id?: string | undefined
  /** Once by default. */
  readonly times?: number | undefined
}

/** The network in front of a data centre. */
export interface HostileNetwork {
  add(hostility: Hostility): void
  /** Runs the case now, on every connection of the account. Returns how many there are. */
  strike(account_id: string, name: HostileCase): number
  /** Returns how many were waiting. */
  clear(): number
}
