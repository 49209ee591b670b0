/** The terms of posting lists, and the translation of a condition into a query. */
import type { Phrase } from '../../../lib/tokens.ts'
import type { Condition } from './condition.ts'

/**
 * A word is a term by itself. No word contains a sign, so a leading sign marks the other kinds of terms: the positions of a
 * word, the messages of a chat, the messages of a sender in groups.
 */
const positionSign = '@'

export function positionTerm(word: string): string {
  return positionSign + word
}

export function hasPositions(term: string): boolean {
  return term.startsWith(positionSign)
}

export function chatTerm(chat_id: string): string {
  return `#${chat_id}`
}

export function senderTerm(sender_id: string): string {
  return `~${sender_id}`
}

/** Sorts after every term, and after every continuation of a word. */
export const lastTerm = '\u{10ffff}'

/** The terms from `low` to `high`: one, or all with the same prefix. */
export interface TermRange {
  readonly low: string
  readonly high: string
}

export function nameOfRange({ low, high }: TermRange): string {
  return `${low} ${high}`
}

/** A phrase as a sequence of terms. A single term is looked up without positions. */
export type TermPhrase = readonly TermRange[]

export interface IndexQuery {
  /** A document must match each of these: all phrases of one of the alternatives. */
  readonly must: readonly (readonly (readonly TermPhrase[])[])[]
  readonly mustNot: readonly TermPhrase[]
}

export function toIndexQuery(account_id: string, { words, people, chat_id }: Condition): IndexQuery {
  return {
    must: [
      ...words.all.map((phrase) => [[toTerms(phrase)]]),
      ...(words.any.length > 0 ? [words.any.map((phrases) => phrases.map(toTerms))] : []),
      ...(people ? [[...(people.get(account_id) ?? [])].flatMap(phrasesOfPerson)] : []),
      ...(chat_id === undefined ? [] : [[[[exactly(chatTerm(chat_id))]]]]),
    ],
    mustNot: words.none.map(toTerms),
  }
}

function toTerms(phrase: Phrase): TermPhrase {
  return phrase.map(({ word, prefix }) => {
    const term = phrase.length === 1 ? word : positionTerm(word)
    return prefix ? { low: term, high: term + lastTerm } : exactly(term)
  })
}

function exactly(term: string): TermRange {
  return { low: term, high: term }
}

/** The private chat with a person has the person's number. A chat can be a sender too: a channel in its group. */
function phrasesOfPerson(id: string): TermPhrase[][] {
  return [[[exactly(chatTerm(id))]], [[exactly(senderTerm(id))]]]
}

export function rangesIn({ must, mustNot }: IndexQuery): TermRange[] {
  const ranges = [...must.flat(3), ...mustNot.flat()]
  return [...new Map(ranges.map((range) => [nameOfRange(range), range])).values()]
}
