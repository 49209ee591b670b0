/** The errors a route can answer: what its needs imply, and what it adds itself. */
import { lowestRole } from '../access/needs.ts'
import { type ErrorCode, errors } from '../lib/errors.ts'
import type { Route } from '../route.ts'

type PossibleError = ErrorCode | readonly [ErrorCode, number] | false | undefined

/** The errors that any request can get. */
const always: readonly PossibleError[] = [
  'invalid_request',
  'invalid_text',
  'invalid_key',
  'workspace_disabled',
  'missing_scope',
  'method_not_allowed',
  'request_timeout',
  'headers_too_large',
  'rate_limited',
  'internal',
  'rest_disabled',
  'schema_unavailable',
  'store_unavailable',
]

/** The errors its needs imply, then those it adds itself. */
export function errorsOf(route: Route): [ErrorCode, number][] {
  const { gates = [], allowlists = [], idempotency, collision = 400, account, malformed, effect } = route
  const refused: readonly PossibleError[] = [
    ...always,
    account === 'extended' && 'account_scope_required',
    idempotency === 'required' && 'idempotency_key_required',
    idempotency && (['idempotency_collision', collision] as const),
    lowestRole(route) !== 'member' && 'missing_role',
    allowlists.length > 0 && 'not_allowlisted',
    account && account !== 'all' && 'account_unavailable',
    malformed,
    idempotency && 'operation_in_progress',
    effect !== 'read' && 'payload_too_large',
    route.body && 'payload_too_large',
    route.body && 'unsupported_media_type',
    gates.length > 0 && 'feature_disabled',
    effect !== 'read' && 'outcome_ambiguous',
    ...(effect === 'platform' ? platformErrors(route.flood) : []),
    ...(route.errors ?? []),
  ]
  return refused
    .filter((error) => error !== false && error !== undefined)
    .map((error) => (typeof error === 'string' ? [error, errors[error][0]] : [error[0], error[1]]))
}

/** What a platform call adds: no session, dispatch switched off, a flood wait, an unknown outcome. */
function platformErrors(flood: 429 | 503): readonly PossibleError[] {
  return [['outcome_ambiguous', 409], 'session_unavailable', 'provider_unavailable', ['flood_wait', flood]]
}
