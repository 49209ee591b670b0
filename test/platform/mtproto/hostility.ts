/** What a hostile network does to clients of the data centre, and when. `hostile.ts` says how. */
import type { Turn } from './turns.ts'

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

/** `on` may also be `accept`: a new connection, or a message of the key exchange, such as `mt_req_pq_multi`. */
export interface Hostility extends Turn {
  readonly case: HostileCase
}
