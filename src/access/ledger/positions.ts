/** How far the updates of an account have been stored, fenced by the account's lease. */
import { type Db, sql, type Tx } from '../../db/sql.ts'

/**
 * Stores how far updates have come, only while this worker holds the lease; false otherwise. The row stays locked
 * until the commit, so that no other worker can take the account in between.
 */
export async function advancePosition(
  tx: Tx,
  {
    worker_id,
    account_id,
    epoch,
    position,
  }: { worker_id: string; account_id: string; epoch: string; position: string },
): Promise<boolean> {
  const held = await tx.run(sql`
    update account_hosts set position = ${position}, observed_at = clock_timestamp()
    where account_id = ${account_id} and lease_owner = ${worker_id} and lease_epoch = ${epoch}`)
  return held === 1
}

/** How far the updates of the accounts that are driven now have been stored. */
export function listPositions(db: Db): Promise<{ account_id: string; position: string | null }[]> {
  return db.rows(sql`
    select h.account_id, h.position from account_hosts h join accounts a on a.id = h.account_id
    where a.status = 'READY' and h.lease_until > clock_timestamp()`)
}
