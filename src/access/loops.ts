/** The loops that delete what access control and the ledger no longer need. */

import { forgetFiles } from '../ledger/files.ts'
import { forgetOperations } from '../ledger/sweep.ts'
import type { Loop } from '../loop.ts'
import { forgetQuietCallers } from './limits.ts'
import { forgetSessions } from './sessions.ts'

const restMs = 60_000

export const loops = (): readonly Loop[] => [
  {
    name: 'forget-operations',
    restMs,
    async step({ db }) {
      await forgetOperations(db)
      return false
    },
  },
  {
    name: 'forget-files',
    restMs,
    // Files may arrive faster than one step a minute deletes them, so it repeats until none is left.
    step: async ({ db }) => (await forgetFiles(db)) > 0,
  },
  {
    name: 'forget-callers',
    restMs,
    async step({ db }) {
      await forgetQuietCallers(db)
      return false
    },
  },
  {
    name: 'forget-sessions',
    restMs,
    async step({ db }) {
      await forgetSessions(db)
      return false
    },
  },
]
