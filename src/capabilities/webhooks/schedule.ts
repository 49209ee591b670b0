/** When a delivery is attempted again. Pure: the same delivery and attempt always give the same time. */
import { sha256 } from '../../lib/secrets.ts'

/** Seconds after the first attempt, the second and so on; after the last one the delivery fails. */
const delays = [5, 30, 300, 1_800, 7_200, 18_000, 36_000, 36_000] as const
const jitter = 0.2
/** An endpoint that asks for more time gets at most this much. */
const retryAfterMax = 3_600

/** How many failures in a row open the circuit breaker, and how many make an endpoint inactive. */
export const breakerFailures = 3
export const disablingFailures = 20 // limit: failures that disable a webhook
/** The gap between attempts while the breaker is open: it doubles from the first to the last. */
export const probeGapSeconds = { first: 5, most: 3_600 } as const

interface FailedAttempt {
  readonly delivery_id: string
  /** All attempts so far, including this one. */
  readonly attempt: number
  /** The attempts since it was last queued, including this one. */
  readonly series_attempt: number
  /** What the endpoint asked for; null if it did not. */
  readonly retry_after: number | null
}

/** Seconds until the next attempt, or null if there is none. */
export function nextDelay({
  delivery_id,
  attempt,
  series_attempt,
  retry_after,
}: FailedAttempt): number | null {
  const delay = delays[series_attempt - 1]
  if (delay === undefined) return null
  const spread = sha256(`${delivery_id}:${attempt}`).readUInt32BE() / 2 ** 32
  const planned = delay * (1 - jitter + 2 * jitter * spread)
  return Math.max(planned, Math.min(retry_after ?? 0, retryAfterMax))
}

/** The Retry-After header: seconds, or a date, which counts from `now` in real time. */
export function readRetryAfter(value: string | undefined, now: number): number | null {
  if (value === undefined) return null
  if (/^\d{1,10}$/.test(value.trim())) return Number(value)
  const at = Date.parse(value)
  return Number.isNaN(at) ? null : Math.max(0, (at - now) / 1000)
}
