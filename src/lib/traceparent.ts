/**
 * `traceparent` of W3C Trace Context: names the trace that a caller's request belongs to. Parley begins no traces of its own; it
 * logs the caller's and passes it on.
 */

/** In the form of version 00, whatever version the caller has: 55 characters of lower-case hex and hyphens. */
export type Traceparent = `00-${string}-${string}-0${0 | 1}`

/** A later version may append fields, which begin with a hyphen. Version ff is not valid. */
const form = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/
const length = 55
/** The one flag that version 00 defines. Others are set to 0, because their meaning is unknown. */
const isSampled = (flags: string) => (Number.parseInt(flags, 16) & 0x01) === 1

/** Reads the values of a header, or of a column. Undefined if there is not exactly one, or if it is malformed. */
export function readTraceparent(values: readonly (string | null)[]): Traceparent | undefined {
  const [value] = values
  if (typeof value !== 'string' || values.length !== 1) return undefined // guard: one traceparent
  const [all, version, trace_id = '', parent_id = '', flags = ''] = form.exec(value) ?? []
  if (all === undefined || (version === '00' && value.length !== length)) return undefined // guard: form of a traceparent
  return `00-${trace_id}-${parent_id}-0${isSampled(flags) ? 1 : 0}`
}

/** For a request of our own within the same trace. `token` is a random UUID, a new one for each request. */
export function passOn(traceparent: Traceparent, token: string): Traceparent {
  const { trace_id } = traceFacts(traceparent)
  // A UUID has its version among these digits, so they are never all zero.
  const parent_id = token.replaceAll('-', '').slice(0, 16)
  return `00-${trace_id}-${parent_id}-0${traceparent.endsWith('1') ? 1 : 0}`
}

/** What is logged of it. */
export function traceFacts(traceparent: Traceparent | undefined): { trace_id?: string; parent_id?: string } {
  if (traceparent === undefined) return {}
  const [, trace_id = '', parent_id = ''] = traceparent.split('-')
  return { trace_id, parent_id }
}
