/** What all handlers of the data centre share. */
import type { ICryptoProvider } from '@mtcute/core/utils.js'
import type { World } from '../../../src/platform/sandbox/world.ts'
import type { BetweenAccounts } from './between-accounts.ts'
import type { ServerClock } from './server-clock.ts'
import type { Store } from './store.ts'
import type { Turn, Turns } from './turns.ts'

export interface CentreParts {
  readonly world: World
  readonly store: Store
  readonly clock: ServerClock
  readonly between: BetweenAccounts
  readonly crypto: ICryptoProvider
  /** The port of each data centre. */
  readonly ports: ReadonlyMap<number, number>
  /** A difference over more updates than this is too long. */
  readonly keep_updates: number
  /** The accounts to which a text is pushed alone, without the people it names, by their ids in the world. */
  readonly short: Set<string>
  /** Differences that bring nothing and stay where they are, and when. */
  readonly stalls: Turns<Turn>
}
