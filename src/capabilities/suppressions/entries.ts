/** The normal form of an entry: one kind of identity and its value. Pure. */
import { listedDigits, readIdentity } from '../../rules/identifier.ts'

export const kinds = ['platform_id', 'username', 'phone'] as const
export type Kind = (typeof kinds)[number]

export interface Entry {
  readonly kind: Kind
  readonly value: string
}

/** The normal form of an identity, or a sentence that says what is wrong with it. */
export function toEntry(kind: Kind, given: string): Entry | string {
  const read = readIdentity(kind, given)
  if (typeof read === 'string') return read
  const { value } = read
  // Digits that `readIdentity` accepts are listed digits.
  if (read.kind === 'phone') return { kind, value: listedDigits(value) ?? value }
  return { kind, value: value.toLowerCase() }
}
