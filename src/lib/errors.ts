/** Every way a request can fail: the code on the wire, its HTTP status, its public sentence. */
export const errors = {
  // 400: the request itself
  invalid_request: [400, 'The request is invalid.'],
  invalid_text: [400, 'A text contains a NUL character or a lone surrogate.'],
  invalid_cursor: [400, 'The cursor was not issued for this request. Start again without it.'],
  account_scope_required: [400, 'account_id is required.'],
  idempotency_key_required: [
    400,
    'The header Idempotency-Key is required: 1 to 255 printable ASCII characters.',
  ],
  idempotency_collision: [
    400,
    'This Idempotency-Key was used for another payload. Use a new key for a new request.',
  ],
  invalid_username: [400, 'The username is not valid.'],
  unsupported_identifier: [400, 'Only usernames and username links are supported here.'],
  unsupported_attachment: [400, 'Exactly one non-empty file of a supported type is required.'],
  message_refused: [400, 'The platform refused this message.'],
  invalid_stage: [400, 'The stage is unknown or hidden.'],
  invalid_column_value: [400, "The value does not fit the column's type or options."],
  suppressed_recipient: [400, 'A recipient is on the suppression list.'],
  unresolved_personalization: [400, 'A recipient has no value for a placeholder in the message.'],
  branching_disabled: [400, 'Branching is not enabled here.'],
  // 401
  invalid_key: [401, 'The API key is missing, invalid, expired or revoked.'],
  not_signed_in: [401, 'You are not signed in, or your session has ended. Sign in again.'],
  sign_in_refused: [401, 'The e-mail address or the password is wrong.'],
  // 403: understood, and not allowed
  missing_scope: [403, 'The key lacks the scope that this operation needs.'],
  workspace_disabled: [403, 'This workspace is disabled. The operator of this instance can enable it.'],
  missing_role: [403, 'Your role does not allow this.'],
  origin_refused: [403, 'This request did not come from the dashboard. Nothing was done.'],
  not_allowlisted: [403, 'The user or workspace of this key is not on the allowlist.'],
  account_unavailable: [403, 'The account is not an eligible account of this workspace.'],
  chat_unavailable: [403, 'The chat is not available in this account.'],
  blocked_by_person: [403, 'This person has blocked this account.'],
  privacy_restricted: [
    403,
    "This person's privacy settings refuse messages from this account, or require Premium or a payment.",
  ],
  cold_stopped: [
    403,
    'The platform has stopped first messages from this account. Replies in existing chats still work.',
  ],
  approval_required: [403, 'A person must approve this first.'],
  approval_used: [403, 'This approval has already been used.'],
  approval_expired: [403, 'This approval has expired.'],
  approval_mismatch: [403, 'This approval is for another input.'],
  approval_denied: [403, 'This request was denied.'],
  // 404
  not_found: [404, 'There is nothing at this address.'],
  chat_not_found: [404, 'The chat is not available in this account.'],
  column_not_found: [404, 'The column is not available in this workspace.'],
  username_not_found: [404, 'No person on the platform has this username, phone number or id.'],
  campaign_not_found: [404, 'The campaign is not available in this workspace.'],
  webhook_not_found: [404, 'The webhook is not available in this workspace.'],
  // 405, 408
  method_not_allowed: [405, 'This address does not support that method.'],
  request_timeout: [408, 'The request took too long to arrive.'],
  // 409: the current state does not allow it
  conflict: [409, 'This conflicts with something that already exists.'],
  preview_outdated: [
    409,
    'What is stored about this person has changed since the preview. Read the preview again.',
  ],
  erasure_in_progress: [409, 'This person is being erased already.'],
  operation_in_progress: [
    409,
    'An operation with this Idempotency-Key is still in progress. Repeat the request in a few seconds. X-Operation-Id names the operation, if it is known.',
  ],
  account_not_ready: [409, 'The sending account is not READY.'],
  identity_suppressed: [409, 'This identity is on the suppression list.'],
  identity_ineligible: [409, 'This identity is not a person who can receive messages.'],
  campaign_completed: [409, 'The campaign is already completed.'],
  campaign_not_paused: [409, 'The campaign is not paused.'],
  not_a_sequence: [409, 'Only campaigns with follow-up steps can be paused and resumed.'],
  invalid_sequence_status: [409, 'The campaign cannot be paused in its current status.'],
  webhook_limit_reached: [409, 'A workspace has at most 10 webhooks.'],
  // 413, 415, 416, 431
  attachment_too_large: [413, 'The attachment is larger than 25 MiB.'],
  payload_too_large: [413, 'The request body is too large.'],
  unsupported_media_type: [415, 'The body must be application/json.'],
  range_not_satisfiable: [416, 'The file is shorter than the range that was asked for.'],
  headers_too_large: [431, 'The request headers are too large.'],
  // 429
  rate_limited: [429, 'Too many requests. Retry after the seconds in Retry-After.'],
  flood_wait: [429, 'The platform asks this account to slow down. Retry after the seconds in Retry-After.'],
  // 500: a bug
  internal: [500, 'Parley failed unexpectedly. X-Request-Id identifies the failure in the log.'],
  // 503: not now
  rest_disabled: [503, 'The REST API is switched off on this instance.'],
  feature_disabled: [503, 'This feature is switched off on this instance.'],
  schema_unavailable: [
    503,
    'The tables of this feature are missing. The operator must migrate the database.',
  ],
  stream_unavailable: [503, 'This process has as many open streams as it may have. Retry later.'],
  store_unavailable: [503, 'The database does not respond. Nothing was done; retry the request.'],
  provider_unavailable: [503, 'The platform is not available.'],
  session_unavailable: [503, "The account's session is not live right now."],
  suppression_unavailable: [503, 'The suppression list cannot be read, so nothing was sent.'],
  outcome_ambiguous: [
    503,
    'The outcome is unknown. Repeat the request with the same Idempotency-Key, or read GET /operations/{operation_id} if X-Operation-Id names the operation. A new key may do it twice.',
  ],
} as const satisfies Record<string, readonly [status: number, sentence: string]>

export type ErrorCode = keyof typeof errors

/** Only operators at the terminal and dashboard users see these; the OpenAPI document names one once a route lists it. */
export const operatorCodes: readonly ErrorCode[] = [
  'conflict',
  'not_signed_in',
  'sign_in_refused',
  'missing_role',
  'origin_refused',
  'stream_unavailable',
]

interface ErrorOptions {
  /** A sentence for the caller, in place of the table's. */
  readonly detail?: string
  /** One code may be 400 in one place and 409 in another. */
  readonly status?: number
  /** Seconds, for the header Retry-After. */
  readonly retry_after?: number
  /** The kind of thing that was not found, such as `workspace`: the command line knows which verb lists them. */
  readonly missing?: string
  /** The header Content-Range of a range that a file does not have. */
  readonly content_range?: string
  /** Goes to the log only. */
  readonly cause?: unknown
}

/** A refusal for the caller of a capability, whether API caller or operator. Anything else that is thrown is a bug. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: ErrorCode
  readonly status: number
  readonly retry_after: number | undefined
  readonly missing: string | undefined
  readonly content_range: string | undefined

  constructor(code: ErrorCode, options: ErrorOptions = {}) {
    const [status, sentence] = errors[code]
    super(options.detail ?? sentence, { cause: options.cause })
    this.code = code
    this.status = options.status ?? status
    this.retry_after = options.retry_after
    this.missing = options.missing
    this.content_range = options.content_range
  }
}

/** Stops a command before it calls any capability: because of the command line itself, a file or the database. Exit code 1. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
}

/** The environment's variables do not allow a start. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(faults.join('\n'))
    this.faults = faults
  }
}
