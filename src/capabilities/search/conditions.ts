/** What a message has to be, put together from the words, the people and the chat that were asked for. */
import { ApiError } from '../../lib/errors.ts'
import { quote } from '../../lib/text.ts'
import { prefixTerms, quoteLexeme, type Term, toTsquery } from '../../lib/tokens.ts'
import {
  type Calendar,
  chatLexeme,
  drawerOf,
  numberOf,
  scopeOf,
  seasons,
  senderLexeme,
  termBySeason,
} from '../../lib/tokens-message.ts'
import { parseQuery } from '../../lib/tokens-query.ts'
import { calendarFor, type Window } from './plan.ts'

export interface Words {
  readonly all: readonly Term[]
  readonly none: readonly Term[]
  /** Any of these, each with all its terms. */
  readonly any: readonly (readonly Term[])[]
}

/** So many words, or pairs of characters, are looked for at once. */
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
    throw refusal('query must have a word to look for: it has only exclusions or punctuation.')
  }
  const any = keywords.map((keyword) => {
    const terms = parseQuery(keyword.replaceAll(/["“”„«»-]/gu, ' ')).all
    if (terms.length === 0) throw refusal(`keywords has no word in ${quote(keyword)}.`)
    return terms
  })
  if ([...all, ...none, ...any.flat()].flat().length > wordsMax) {
    throw refusal(`query and keywords must have at most ${wordsMax} words together.`)
  }
  return { all, none, any }
}

/** Any of the names, all words of each as beginnings of words. */
export function readNames(people: readonly string[]): string {
  const names = people.map((name) => {
    const terms = prefixTerms(name)
    if (terms.length === 0) throw refusal(`people has no word in ${quote(name)}.`)
    return `(${terms.map((term) => toTsquery(term)).join(' & ')})`
  })
  return names.join(' | ')
}

function refusal(detail: string): ApiError {
  return new ApiError('invalid_request', { detail })
}

/** What is asked for in one account; `people` are the numbers of those who have the names. */
export interface Condition {
  readonly account_id: string
  readonly words: Words
  readonly people: readonly string[] | undefined
  readonly chat_id: string | undefined
}

/** Stands for the season in a condition that is to hold for any. No word has this character. */
export const anySeason = '%'

export function toTemplate(condition: Condition): string | null {
  return toQuery(condition, scopeOf(condition.account_id) + anySeason, seasons)
}

/** Everything but the time, as `tsquery`; null when there is nothing but the time. */
function toQuery({ words, people, chat_id }: Condition, drawer: string, calendar: Calendar): string | null {
  const spell = (term: Term) => (calendar === seasons ? termBySeason(drawer, term) : toTsquery(term, drawer))
  const parts = [
    ...words.all.map(spell),
    ...words.none.map((term) => `!${toTsquery(term, drawer)}`),
    ...(words.any.length > 0 ? [anyOf(words.any.map((terms) => `(${terms.map(spell).join(' & ')})`))] : []),
    ...(people ? [anyOf(people.flatMap((id) => personLexemes(drawer, id).map(quoteLexeme)))] : []),
  ]
  if (parts.length === 0) return null
  if (chat_id !== undefined) parts.push(quoteLexeme(chatLexeme(drawer, chat_id)))
  return parts.join(' & ')
}

/** A person's private chat has the person's number. */
function personLexemes(drawer: string, id: string): string[] {
  const chat = chatLexeme(drawer, id)
  return id.startsWith('-') ? [chat] : [chat, senderLexeme(drawer, id)]
}

function anyOf(alternatives: readonly string[]): string {
  return `(${alternatives.join(' | ')})`
}

/** So many lexemes at once: the effort of telling which of them matter grows with their square. */
const lexemesMax = 32

/** The condition in a window, as one or several queries that share its days or seasons among them. */
export function queriesWithin(condition: Condition, window: Window): (string | null)[] {
  const calendar = calendarFor(window)
  const first = numberOf(window.from, calendar)
  const last = numberOf(window.until - 1, calendar)
  const each = (number: number) =>
    toQuery(condition, drawerOf(condition.account_id, calendar, number), calendar)
  const sample = each(last)
  if (sample === null) return [null]
  const together = Math.max(1, Math.floor(lexemesMax / lexemesIn(sample)))
  const queries: string[] = []
  for (let end = last; end >= first; end -= together) {
    const numbers = Array.from({ length: Math.min(together, end - first + 1) }, (_, at) => end - at)
    queries.push(numbers.map((number) => `(${each(number)})`).join(' | '))
  }
  return queries
}

function lexemesIn(query: string): number {
  return query.split("'").length / 2
}
