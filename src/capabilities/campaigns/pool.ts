/** Chooses which account of a pool takes a contact that no account has taken. Pure. */
import { coldLimit } from './planning/cold.ts'
import type { Facts, PlannedAccount } from './planning/plan.ts'

/**
 * Whether it can take a contact today. An account that cannot leaves contacts to the others, even if it has used less of its
 * day: otherwise all of them would wait for it.
 */
export function canTake(account: PlannedAccount, { now, hours }: Pick<Facts, 'now' | 'hours'>): boolean {
  const { ready, flood_until, lookup_flood_until, used_cold, lookups, lookups_per_day } = account
  const waits = [flood_until, lookup_flood_until].some((end) => end !== null && end > now)
  if (!ready || waits) return false
  return lookups < lookups_per_day && used_cold < coldLimit(account, now, hours)
}

/** The account that has used least of its day, of those that can; if none can, of those that are ready. */
export function pickFromPool<Account extends PlannedAccount>(
  standing: Pick<Facts, 'now' | 'hours'> & { readonly accounts: ReadonlyMap<string, Account> },
  pool: readonly string[],
): Account | null {
  const ready = pool.flatMap((id) => {
    const account = standing.accounts.get(id)
    return account?.ready ? [account] : []
  })
  const able = ready.filter((account) => canTake(account, standing))
  return (able.length > 0 ? able : ready).reduce<Account | null>(
    (best, one) => (best === null || one.used < best.used ? one : best),
    null,
  )
}
