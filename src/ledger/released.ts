/** The error for an operation that provably did not happen: why, and what the caller can do next. */
import type { App, Settled } from '../app.ts'
import { ApiError, type ErrorCode } from '../lib/errors.ts'
import { findFloodWait } from './floods.ts'
import { findRefusal } from './refusals.ts'

/** By the row's detail, or its reason where it has none. */
const causes: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  dispatch_off: ['provider_unavailable', 'Sending is switched off on this instance.'],
  withdrawn: ['provider_unavailable', 'The account did not get to it in time.'],
  expired: ['provider_unavailable', 'The account did not get to it in time.'],
  not_live: ['session_unavailable', "The account's session is not live right now."],
  deadline: ['provider_unavailable', 'The process that drives the account was held up for too long.'],
  journal: ['provider_unavailable', 'The process that drives the account cannot write its journal.'],
  lost_commit: ['store_unavailable', 'The database gave no answer when it was about to be sent.'],
  unknown_kind: ['provider_unavailable', 'The process that drives the account does not know this operation.'],
  timeout: ['provider_unavailable', 'The platform did not answer while it was being prepared.'],
  unknown: ['provider_unavailable', 'The platform failed while it was being prepared.'],
  preparation_failed: ['provider_unavailable', 'It could not be prepared; the log of the service says why.'],
}

/** Any other reason from the platform's adapter comes from a connection that was not there. */
const ended = ['session_unavailable', "The account's session ended before it was submitted."] as const

/** What the caller can do next, if it sent a key of its own. */
const sameKey = 'the same key may be used again'

export async function releasedError(
  app: App,
  row: Settled,
  { flood = 429, again = sameKey }: { readonly flood?: 429 | 503; readonly again?: string },
): Promise<ApiError> {
  const cause = row.detail ?? row.reason ?? ''
  if (cause === 'flood_wait') {
    const scope = app.operations.get(row.kind)?.stopped_by ?? 'sends'
    const retry_after = (await findFloodWait(app.db, row.account_id, scope)) ?? 1
    return new ApiError('flood_wait', { status: flood, retry_after })
  }
  if (cause === 'identity_suppressed') return new ApiError('identity_suppressed')
  if (cause === 'needs_login' || cause === 'restricted') {
    return new ApiError('account_unavailable', {
      detail: 'The platform no longer lets this account in: it has to be connected again.',
    })
  }
  const refusal = findRefusal(cause)
  if (refusal) return new ApiError(refusal)
  const [code, sentence] = causes[cause] ?? ended
  return new ApiError(code, { detail: `${sentence} Nothing was sent; ${again}.` })
}
