/** What a message has to be, put together from the words, the people and the chat that were asked for. */
import { ApiError } from '../../lib/errors.ts'
import { quote } from '../../lib/text.ts'
import { prefixTerms, quoteLexeme, type Term, toTsquery } from '../../lib/tokens.ts'
import {
  chatLexeme,
  scopeOf,
  seasonMs,
  seasonName,
  seasonOf,
  senderLexeme,
  stretchesBetween,
  termQuery,
} from '../../lib/tokens-message.ts'
import { parseQuery } from '../../lib/tokens-query.ts'
import type { Window } from './plan.ts'

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

/** Everything but the time, as `tsquery`; null when there is nothing but the time. */
export function toQuery(condition: Condition, season = anySeason): string | null {
  const { account_id, words, people, chat_id } = condition
  const here = scopeOf(account_id) + season
  const spell = (term: Term) => termQuery(here, term)
  const parts = [
    ...words.all.map(spell),
    ...words.none.map((term) => `!${toTsquery(term, here)}`),
    ...(words.any.length > 0 ? [anyOf(words.any.map((terms) => `(${terms.map(spell).join(' & ')})`))] : []),
    ...(people ? [anyOf(people.flatMap((id) => personLexemes(here, id).map(quoteLexeme)))] : []),
  ]
  if (parts.length === 0) return null
  if (chat_id !== undefined) parts.push(quoteLexeme(chatLexeme(here, chat_id)))
  return parts.join(' & ')
}

/** A person's private chat has the person's number. */
function personLexemes(season: string, id: string): string[] {
  const chat = chatLexeme(season, id)
  return id.startsWith('-') ? [chat] : [chat, senderLexeme(season, id)]
}

function anyOf(alternatives: readonly string[]): string {
  return `(${alternatives.join(' | ')})`
}

/** The condition in a window, season by season, the newest first. */
export function querySeasons(
  condition: Condition,
  window: Window,
  range: Window,
): { readonly query: string | null; readonly window: Window }[] {
  if (toQuery(condition) === null) return [{ query: null, window }]
  const parts = []
  for (let season = seasonOf(window.until - 1); season >= seasonOf(window.from); season--) {
    // The first season has everything that is older, too.
    const from = season === 0 ? window.from : Math.max(window.from, season * seasonMs)
    const until = Math.min(window.until, (season + 1) * seasonMs)
    const whole =
      from <= Math.max(range.from, season * seasonMs) &&
      until >= Math.min(range.until, (season + 1) * seasonMs)
    const query = toQuery(condition, seasonName(season)) ?? ''
    const stretches = whole ? [] : stretchesBetween(scopeOf(condition.account_id), from, until)
    parts.push({
      query: whole ? query : `${query} & ${anyOf(stretches.map(quoteLexeme))}`,
      window: { from, until },
    })
  }
  return parts
}
