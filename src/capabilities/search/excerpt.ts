/** The part of a text around what was looked for, as it was written. Pure. */
import { type Term, type Token, tokenise } from '../../lib/tokens.ts'

export const excerptMax = 200
export const contextMax = 4000
/** So much of the text before the match is shown. */
const before = 60

export function excerptOf(text: string, terms: readonly Term[]): string {
  const whole = text.normalize('NFC')
  if ([...whole].length <= excerptMax) return text
  const at = firstMatch(tokenise(whole), terms)?.start ?? 0
  const parts = [...segmenter.segment(whole.slice(Math.max(0, at - 4 * before), at + 4 * excerptMax))]
  return cut(whole, parts, at)
}

const segmenter = new Intl.Segmenter('und', { granularity: 'grapheme' })
