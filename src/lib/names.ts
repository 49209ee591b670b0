/** Names and colours that people give: what they may be, and the error when nothing has the name. */
import { nameMax } from '../rules/limits.ts'
import { ApiError, type ErrorCode } from './errors.ts'
import { isBlank, isWellFormed, lengthOf, quote } from './text.ts'

/** `rule` begins the sentence of the refusal: "A workspace needs a name", "A stage needs a label". */
export function requireName(rule: string, name: string): void {
  if (isBlank(name) || !isWellFormed(name) || lengthOf(name) > nameMax) {
    throw new ApiError('invalid_request', { detail: `${rule} of 1 to ${nameMax} characters.` })
  }
}

/** A colour that people choose: one of the pages' own by name, or six hexadecimal digits. */
export function requireColor(color: string): void {
  if (/^(#[0-9a-f]{6}|[a-z]{1,20})$/i.test(color)) return
  throw new ApiError('invalid_request', {
    detail: `${quote(color)} is not a colour: a name such as blue, or #3366ff.`,
  })
}

export function notFound(missing: string, name: string, code: ErrorCode = 'not_found'): ApiError {
  return new ApiError(code, { detail: `There is no ${missing} ${quote(name)}.`, missing })
}
