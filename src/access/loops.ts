/** The loops that delete what access control and the ledger no longer need. */

import type { Db } from '../db/sql.ts'
import { forgetFiles } from '../ledger/files.ts'
import { forgetOperations } from '../ledger/sweep.ts'
import type { Loop } from '../loop.ts'
import { forgetQuietCallers } from './limits.ts'
import { forgetSessions } from './sessions.ts'

const restMs = 60_000

/** Deletes one batch in each step. */
const forgetting = (name: string, forget: (db: Db) => Promise<unknown>): Loop => ({
  name,
  restMs,
  step: async ({ db }) => {
    await forget(db)
    return false
  },
})

export const loops = (): readonly Loop[] => [
  forgetting('forget-operations', forgetOperations),
  forgetting('forget-callers', forgetQuietCallers),
  forgetting('forget-sessions', forgetSessions),
  {
    name: 'forget-files',
    restMs,
    // Files may arrive faster than one step a minute deletes them, so it repeats until none is left.
    step: async ({ db }) => (await forgetFiles(db)) > 0,
  },
]
