/** The normal form of an entry: one kind of identity and its value. Pure. */
import { quote } from '../../lib/text.ts'
import { listedDigits, parseIdentifier } from '../../platform/identifier.ts'

export const kinds = ['platform_id', 'username', 'phone'] as const
export type Kind = (typeof kinds)[number]

export interface Entry {
  readonly kind: Kind
  readonly value: string
}

/** The normal form of an identity, or a sentence that says what is wrong with it. */
export function toEntry(kind: Kind, given: string): Entry | string {
  const text = given.trim()
  if (kind === 'platform_id') {
    const fits = /^[1-9]\d{0,18}$/.test(text) && BigInt(text) < 2n ** 63n
    return fits ? { kind, value: text } : `${quote(given)} is not a platform id: a positive whole number.`
  }
  if (kind === 'phone') {
    const value = listedDigits(text)
    return value === undefined
      ? `${quote(given)} is not a phone number: 7 to 15 digits, beginning with the country code.`
      : { kind, value }
  }
  const parsed = parseIdentifier(text)
  return typeof parsed === 'object' && parsed.kind === 'username'
    ? { kind, value: parsed.value.toLowerCase() }
    : `${quote(given)} is not a username: 3 to 32 letters, digits and underscores, a letter first.`
}
