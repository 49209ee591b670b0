/** Removes requests that are no longer needed. */
import { type Db, sql } from '../../db/sql.ts'
import type { Loop } from '../../loop.ts'

const restMs = 60_000
const keptDays = 30
const lotMax = 1_000

/** Removes their texts with them. The ledger keeps what was done, and the audit log who decided. */
export function forgetApprovals(db: Db): Promise<number> {
  return db.run(sql`
    delete from approvals where id in (
      select id from approvals where created_at < domain_now() - make_interval(days => ${keptDays})
      order by created_at limit ${lotMax})`)
}

export const loops = (): readonly Loop[] => [
  {
    name: 'forget-approvals',
    restMs,
    step: async ({ db }) => (await forgetApprovals(db)) === lotMax,
  },
]
