/** The language of `query`, `keywords` and `people`: all words, "a phrase", -not, and the last word as a prefix. */
import { ApiError } from '../../lib/errors.ts'
import { quote } from '../../lib/text.ts'
import { type Phrase, phraseOf, prefixPhrases, toTsquery } from '../../lib/tokens.ts'
import type { Words } from './index/search-index.ts'

/** How many words, or pairs of characters in scripts without spaces, one search may have. */
const wordsMax = 128

export function readWords({
  query,
  keywords = [],
}: {
  readonly query?: string | undefined
  readonly keywords?: readonly string[] | undefined
}): Words {
  const { all, none } = query === undefined ? { all: [], none: [] } : parseQuery(query)
  if (query !== undefined && all.length === 0) {
    throw refusal('query must contain a word to search for, not only exclusions or punctuation.')
  }
  const any = keywords.map((keyword) => {
    const phrases = parseQuery(keyword.replaceAll(/["“”„«»-]/gu, ' ')).all
    if (phrases.length === 0)
      throw refusal(`keywords contains ${quote(keyword)}, which has no word to search for.`)
    return phrases
  })
  if ([...all, ...none, ...any.flat()].flat().length > wordsMax) {
    throw refusal(`query and keywords must have at most ${wordsMax} words together.`)
  }
  return { all, none, any }
}

/** Any of the names, with all words of each as prefixes, in `tsquery` syntax. */
export function readNames(people: readonly string[]): string {
  const names = people.map((name) => {
    const phrases = prefixPhrases(name)
    if (phrases.length === 0)
      throw refusal(`people contains ${quote(name)}, which has no word to search for.`)
    return `(${phrases.map((phrase) => toTsquery(phrase)).join(' & ')})`
  })
  return names.join(' | ')
}

function refusal(detail: string): ApiError {
  return new ApiError('invalid_request', { detail })
}

interface Query {
  readonly all: readonly Phrase[]
  readonly none: readonly Phrase[]
}

interface Piece {
  readonly text: string
  readonly quoted: boolean
  readonly excluded: boolean
}

/** One pass; an unclosed quotation mark extends to the end. Parts without a letter or digit are skipped. */
export function parseQuery(text: string): Query {
  const pieces = split(text)
  const last = pieces.findLastIndex(
    ({ text: word, quoted, excluded }) =>
      !quoted && !excluded && phraseOf(word, { prefix: false }).length > 0,
  )
  const phrases = pieces.map(({ text: words, excluded }, at) => ({
    phrase: phraseOf(words, { prefix: at === last }),
    excluded,
  }))
  const some = phrases.filter(({ phrase }) => phrase.length > 0)
  return {
    all: some.filter(({ excluded }) => !excluded).map(({ phrase }) => phrase),
    none: some.filter(({ excluded }) => excluded).map(({ phrase }) => phrase),
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
