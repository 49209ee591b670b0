/** Words as they are searched: without case and accents, in any script. */

/** Compatibility forms folded, marks stripped, lower case. */
export function normalise(text: string): string {
  return text.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase()
}

function wordsOf(text: string): string[] {
  return normalise(text).match(/[\p{L}\p{N}]+/gu) ?? []
}

/** A `tsvector` literal. */
export function tokensOf(text: string): string {
  return wordsOf(text)
    .map((word, at) => `'${word}':${Math.min(at + 1, 16_383)}`)
    .join(' ')
}

/** A `tsquery` literal: every word of the text as the beginning of a word. */
export function prefixQuery(text: string): string {
  return wordsOf(text)
    .map((word) => `'${word}':*`)
    .join(' & ')
}
