/** The platform's refusals as callers see them. */
import { type ErrorCode, errors } from '../lib/errors.ts'
import type { PlatformRefusal } from '../platform/port.ts'

/** The response, now and on every repeat. */
export function refusalReply(reason: PlatformRefusal): { status: number; body: unknown } {
  const code: ErrorCode = refusalCodes[reason]
  const [status, error] = errors[code]
  return { status, body: { error, code } }
}

const refusalCodes: Record<PlatformRefusal, ErrorCode> = {
  username_not_found: 'username_not_found',
  identity_ineligible: 'identity_ineligible',
  chat_unavailable: 'chat_unavailable',
  blocked_by_person: 'blocked_by_person',
  privacy_restricted: 'privacy_restricted',
  cold_stopped: 'cold_stopped',
  message_invalid: 'message_refused',
  file_unavailable: 'not_found',
  needs_login: 'account_unavailable',
  restricted: 'account_unavailable',
}

/** The error code for a refusal's name; undefined if it is none. */
export function findRefusal(name: string): ErrorCode | undefined {
  return Object.hasOwn(refusalCodes, name) ? refusalCodes[name as PlatformRefusal] : undefined
}
