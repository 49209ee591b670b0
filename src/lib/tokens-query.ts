/** The language of `query`: all words, "a phrase", -not, and the last word as the beginning of one. */
import { type Term, termOf } from './tokens.ts'

export interface Query {
  readonly all: readonly Term[]
  readonly none: readonly Term[]
}

interface Piece {
  readonly text: string
  readonly quoted: boolean
  readonly excluded: boolean
}

/** One pass; a quotation mark that is never closed reaches to the end. What has no letter or digit is left out. */
export function parseQuery(text: string): Query {
  const pieces = split(text)
  const last = pieces.findLastIndex(
    ({ text: word, quoted, excluded }) => !quoted && !excluded && termOf(word, { prefix: false }).length > 0,
  )
  const terms = pieces.map(({ text: words, excluded }, at) => ({
    term: termOf(words, { prefix: at === last }),
    excluded,
  }))
  const some = terms.filter(({ term }) => term.length > 0)
  return {
    all: some.filter(({ excluded }) => !excluded).map(({ term }) => term),
    none: some.filter(({ excluded }) => excluded).map(({ term }) => term),
  }
}

const space = /\s/u
const quotes = /["“”„«»]/u

function split(text: string): Piece[] {
  const pieces: Piece[] = []
  let at = 0
  while (at < text.length) {
    if (space.test(text.charAt(at))) {
      at++
      continue
    }
    const excluded = text.charAt(at) === '-'
    if (excluded) at++
    const quoted = quotes.test(text.charAt(at))
    if (quoted) at++
    const start = at
    while (at < text.length && !(quoted ? quotes : endOfWord).test(text.charAt(at))) at++
    pieces.push({ text: text.slice(start, at), quoted, excluded })
    if (quoted) at++
  }
  return pieces
}

const endOfWord = /[\s"“”„«»]/u
