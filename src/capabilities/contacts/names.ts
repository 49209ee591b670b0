/** Names as they are searched. Pure. */
import { tokenise } from '../../lib/tokens.ts'

/** A `tsvector` literal of the words of a name. A word has no character that means anything in it. */
export function nameVector(name: string): string {
  return tokenise(name)
    .map(({ word }, at) => `'${word}':${at + 1}`)
    .join(' ')
}

/** A `tsquery` literal: every word of `q` is the beginning of a word of the name. Empty when it has no words. */
export function nameQuery(q: string): string {
  return tokenise(q)
    .filter(({ tail }) => tail !== 'after')
    .map(({ word }) => `'${word}':*`)
    .join(' & ')
}
