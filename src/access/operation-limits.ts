/** Limits on an account or a workspace, besides the rate limit of a key. */
import type { App } from '../app.ts'
import type { Caller } from '../contract.ts'
import { isKnownKey } from '../ledger/idempotency.ts'
import { ApiError } from '../lib/errors.ts'
import type { AnyCall, Route } from '../route.ts'

/**
 * Limits per account, besides the key's rate limit: platforms restrict accounts that do too much. Requests with one `place` take
 * one together, because at most one of them reaches the platform.
 */
export async function requireAccountLimits(
  app: App,
  route: Extract<Route, { effect: 'platform' }>,
  { account_id, place }: { readonly account_id: string; readonly place: string | undefined },
): Promise<void> {
  for (const rule of route.account_limits?.(app) ?? []) {
    const { allowed, retry_after } = await app.limits.take(
      `${route.name}:${rule.seconds}:${account_id}`,
      rule,
      place,
    )
    if (!allowed) {
      throw new ApiError('rate_limited', {
        detail: `This account reached its limit of ${rule.limit} such operations in ${rule.seconds} seconds. Retry after the seconds in Retry-After.`,
        retry_after,
      })
    }
  }
}

/** Limits per workspace. A repeated key, also at the same time, and a request for something missing do not count. */
export async function requireWorkspaceLimit(
  app: App,
  route: Extract<Route, { effect: 'local' }>,
  caller: Caller,
  { key, call }: { key: string | undefined; call: () => AnyCall },
): Promise<void> {
  const rule = route.workspace_limit?.(app)
  if (!rule || (key !== undefined && (await isKnownKey(app.db, route, caller, key)))) return
  await route.require_resources?.(app, call()) // guard: missing things are reported before the limit
  const { allowed, retry_after } = await app.limits.take(`${route.name}:${caller.workspace_id}`, rule, key)
  if (!allowed) {
    throw new ApiError('rate_limited', {
      detail: `This workspace reached its limit of ${rule.limit} such operations in ${rule.seconds} seconds. Retry after the seconds in Retry-After.`,
      retry_after,
    })
  }
}
