/** Chooses which account of a pool takes a contact that no account has taken. Pure. */
import type { PlannedAccount } from './planning/plan.ts'

/**
 * Whether it can take a contact today. An account that cannot leaves contacts to the others, even if it has used less of its
 * day: otherwise all of them would wait for it.
 */
export function canTake(account: PlannedAccount, now: Date): boolean {
  const { ready, flood_until, cold_per_day, used_cold, lookups, lookups_per_day } = account
  if (!ready || (flood_until && flood_until > now)) return false
  return (cold_per_day === null || used_cold < cold_per_day) && lookups < lookups_per_day
}

/** The account that has used least of its day, of those that can; if none can, of those that are ready. */
export function pickFromPool(
  { accounts, now }: { readonly accounts: ReadonlyMap<string, PlannedAccount>; readonly now: Date },
  pool: readonly string[],
): PlannedAccount | null {
  const ready = pool.flatMap((id) => {
    const account = accounts.get(id)
    return account?.ready ? [account] : []
  })
  const able = ready.filter((account) => canTake(account, now))
  return (able.length > 0 ? able : ready).reduce<PlannedAccount | null>(
    (best, one) => (best === null || one.used < best.used ? one : best),
    null,
  )
}
