/** Tells of accounts that no worker could drive: nothing reaches their platform, or no worker there can write its journal. */
import { noteUndriven } from '../capabilities/accounts/accounts.ts'
import type { Loop } from '../loop.ts'

const lookMs = 5_000

/** Also in processes that drive nothing, because those are the ones that are left when a worker is missing. */
export function undrivenLoop(): Loop {
  // Workers that start together with this process have not said yet what they reach.
  let first = true
  return {
    name: 'undriven-accounts',
    restMs: lookMs,
    async step({ db, log }) {
      if (first) {
        first = false
        return false
      }
      const { lost, found } = await noteUndriven(db)
      for (const { platform, accounts } of lost) {
        log.warn({ platform, accounts }, 'no worker that could drive these accounts is running')
      }
      if (found > 0) log.info({ accounts: found }, 'accounts have a worker again')
      return false
    },
  }
}
