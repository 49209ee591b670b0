/** How the attempts of an account session end, and how long the account rests after each. */
import type { Closed, Outcome } from '../platform/port.ts'

export const backoff = { firstMs: 500, mostMs: 60_000, factor: 2 }
/** The longest pause after a failure of our own database, which usually recovers soon. */
export const storeMsMost = 5_000

/** How an attempt ended: permanently, with a lost session, through an internal error, or without a session. */
export type SessionEnd =
  | { readonly kind: 'over' | 'failed' }
  | { readonly kind: 'lost'; readonly lived_ms: number; readonly retry_after_seconds: number }
  | Exclude<Outcome<never>, { kind: 'accepted' | 'refused' }>

export const stoppedReason = 'The account session was stopped.'
export const silentReason = 'The platform does not answer.'

/** A word for each reason, for metrics. */
export function endReason(status: Closed['status'], reason: string): string {
  if (status !== 'lost') return status
  return reason === silentReason ? 'silent' : reason === stoppedReason ? 'stopped' : 'lost'
}

export function connectOutcome(outcome: Outcome<unknown>): string {
  switch (outcome.kind) {
    case 'accepted':
      return 'connected'
    case 'refused':
      return outcome.reason === 'restricted' ? 'restricted' : 'needs_login'
    case 'flood_wait':
      return 'flood_wait'
    case 'not_written':
      return outcome.cause ?? 'unreachable'
    case 'unknown':
      return 'no_answer'
  }
}

/** The pause that the platform demands before the next connect. */
export function demandedSeconds(end: SessionEnd): number {
  return 'retry_after_seconds' in end ? (end.retry_after_seconds ?? 0) : 0
}

/** Exponential back-off with jitter, so that a thousand accounts do not reconnect at once. */
export function restFor(end: SessionEnd, failures: number, random: number): number {
  // As long as a timer can be.
  if (end.kind === 'flood_wait') return Math.min(end.retry_after_seconds * 1_000, 2_147_483_647) // guard: a wait at connect is served in full
  const mostMs = end.kind === 'failed' ? storeMsMost : backoff.mostMs
  const ms = Math.min(mostMs, backoff.firstMs * backoff.factor ** (failures - 1))
  return Math.max(ms * (0.5 + random / 2), demandedSeconds(end) * 1_000 * (1 + random / 2)) // guard: no connect before the platform allows it
}
