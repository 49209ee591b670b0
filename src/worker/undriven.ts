/** Reports accounts that no worker could drive: none reaches their platform, or none that does can write its journal. */
import { noteUndriven } from '../capabilities/accounts/accounts.ts'
import type { Loop } from '../loop.ts'

const lookMs = 5_000

/** Runs in processes that drive nothing, too: those are the ones left when a worker is missing. */
export function undrivenLoop(): Loop {
  // Workers that start together with this process have not yet registered what they reach.
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
