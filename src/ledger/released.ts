/** The error for an operation that provably did not happen: why, and what the caller can do next. */
import type { App, LedgerOperation } from '../app.ts'
import { ApiError, type ErrorCode } from '../lib/errors.ts'
import { findFloodWait } from './floods.ts'
import { findRefusal } from './refusals.ts'

/** By the row's detail, or its reason where it has none. */
const causes: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  dispatch_off: ['provider_unavailable', 'Sending is switched off on this instance.'],
  withdrawn: ['provider_unavailable', 'The account did not reach it in time.'],
  expired: ['provider_unavailable', 'The account did not reach it in time.'],
  not_live: ['session_unavailable', "The account's session is not live right now."],
  deadline: ['provider_unavailable', 'The worker of the account was stalled for too long.'],
  journal: ['provider_unavailable', 'The worker of the account cannot write its journal.'],
  lost_commit: ['store_unavailable', 'The database did not respond just before submission.'],
  unknown_kind: ['provider_unavailable', 'The worker of the account does not support this operation.'],
  timeout: ['provider_unavailable', 'The platform did not respond during preparation.'],
  unknown: ['provider_unavailable', 'The platform failed during preparation.'],
  preparation_failed: ['provider_unavailable', 'Preparation failed; the log of the service says why.'],
}

/** Any other reason from the platform's adapter comes from a connection that was not there. */
const ended = ['session_unavailable', "The account's session ended before submission."] as const

/** What the caller can do next, if it sent a key of its own. */
const sameKey = 'you can retry with the same key'

/** Why a person is refused who was erased. */
export const erasedSentence =
  'This person was erased from this workspace, which must not write to them. Nothing was sent.'

export async function releasedError(
  app: App,
  row: LedgerOperation,
  { flood = 429, again = sameKey }: { readonly flood?: 429 | 503; readonly again?: string },
): Promise<ApiError> {
  const cause = row.detail ?? row.reason ?? ''
  if (cause === 'flood_wait') {
    const scope = app.operations.get(row.kind)?.stopped_by ?? 'sends'
    const retry_after = (await findFloodWait(app.db, row.account_id, scope)) ?? 1
    return new ApiError('flood_wait', { status: flood, retry_after })
  }
  if (cause === 'identity_suppressed') return new ApiError('identity_suppressed')
  if (cause === 'identity_erased') return new ApiError('identity_suppressed', { detail: erasedSentence })
  // Their chat counts as not in the account.
  if (cause === 'erased') return new ApiError('chat_unavailable')
  if (cause === 'needs_login' || cause === 'restricted') {
    return new ApiError('account_unavailable', {
      detail: "The platform no longer accepts this account's login. Connect the account again.",
    })
  }
  const refusal = findRefusal(cause)
  if (refusal) return new ApiError(refusal)
  const [code, sentence] = causes[cause] ?? ended
  return new ApiError(code, { detail: `${sentence} Nothing was sent; ${again}.` })
}
