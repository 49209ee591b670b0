/** What a message has to be, put together from the words, the people and the chat that were asked for. */
import { ApiError } from '../../lib/errors.ts'
import { quote } from '../../lib/text.ts'
import { prefixTerms, quoteLexeme, type Term, toTsquery } from '../../lib/tokens.ts'
import {
  chatLexeme,
  isBeginning,
  seasonAt,
  seasonOf,
  senderLexeme,
  stretchAt,
  stretchLexeme,
  termQuery,
} from '../../lib/tokens-message.ts'
import { parseQuery } from '../../lib/tokens-query.ts'
import { isShort, type Window } from './plan.ts'

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

/** What is asked for. */
export interface Condition {
  readonly account_ids: readonly string[]
  readonly words: Words
  /** By account the numbers of those who have the names. */
  readonly people: ReadonlyMap<string, readonly string[]> | undefined
  readonly chat_id: string | undefined
}

/** Stands for account and season in a condition that is to hold for any; people of all accounts together will do. */
export const anySeason = '%'

export function toTemplate(condition: Condition): string | null {
  return toQuery(condition, anySeason, [...(condition.people?.values() ?? [])].flat())
}

/** Everything but account and time, as `tsquery`; null when there is nothing else. */
function toQuery(
  { words, people, chat_id }: Condition,
  season: string,
  ids: readonly string[],
): string | null {
  const spell = (term: Term) => termQuery(season, term)
  const parts = [
    ...words.all.map(spell),
    ...words.none.map((term) => `!${toTsquery(term, season)}`),
    ...(words.any.length > 0 ? [anyOf(words.any.map((terms) => `(${terms.map(spell).join(' & ')})`))] : []),
    ...(people?.size ? [anyOf(ids.flatMap((id) => personLexemes(season, id).map(quoteLexeme)))] : []),
  ]
  if (parts.length === 0) return null
  if (chat_id !== undefined) parts.push(quoteLexeme(chatLexeme(season, chat_id)))
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

/** So many lexemes at once: the effort of telling which of them matter grows with their square. */
const lexemesMax = 32

/** What to look up in the index, and what to check of the messages that it finds. */
export interface Query {
  readonly query: string | null
  readonly check: string | null
}

/** The condition in a window, as one or several queries that share accounts and seasons among them. */
export function queriesWithin(condition: Condition, window: Window, open?: Words): Query[] {
  const short = isShort(window, condition.account_ids.length)
  const parts = condition.account_ids.flatMap((id) =>
    short ? byHours(condition, id, window, open) : bySeasons(condition, id, window, open),
  )
  const lexemes = Math.max(...parts.map(({ query }) => lexemesIn(query)))
  return chunks(parts, Math.max(1, Math.floor(lexemesMax / lexemes))).map((some) => ({
    query: some.map(({ query }) => `(${query})`).join(' | '),
    check: open ? some.map(({ check }) => `(${check})`).join(' | ') : null,
  }))
}

/** One query a season. */
function bySeasons(condition: Condition, id: string, window: Window, open: Words | undefined): Query[] {
  const people = condition.people?.get(id) ?? []
  const checked = open && { ...condition, words: open, people: undefined, chat_id: undefined }
  return range(seasonAt(window.from), seasonAt(window.until - 1)).map((number) => {
    const season = seasonOf(id, number)
    return {
      query: toQuery(condition, season, people),
      check: checked ? toQuery(checked, season, people) : null,
    }
  })
}

/** The same in a few hours. */
function byHours(condition: Condition, id: string, window: Window, open: Words | undefined): Query[] {
  const seasons = bySeasons(condition, id, window, open)
  const query = anyOf(seasons.map((each) => `(${each.query})`))
  const check = open ? anyOf(seasons.map((each) => `(${each.check})`)) : null
  return [{ query: `${query} & ${anyOf(hoursIn(condition, id, window).map(quoteLexeme))}`, check }]
}

/** Where possible the hours of messages with a word that begins like one of the wanted. */
function hoursIn({ words }: Condition, id: string, { from, until }: Window): string[] {
  const [longest] = words.all
    .flat()
    .filter(({ word, prefix }) => !prefix || isBeginning(word))
    .sort((a, b) => b.word.length - a.word.length)
  return range(stretchAt(from), stretchAt(until - 1)).map((stretch) =>
    stretchLexeme(id, stretch, longest?.word),
  )
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at)
}

function chunks<T>(values: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(values.length / size) }, (_, at) =>
    values.slice(at * size, (at + 1) * size),
  )
}

function lexemesIn(query: string | null): number {
  return (query ?? '').split("'").length / 2
}

/** Terms that may go on, apart from the others: all words that begin like them have to be put together first. */
export function splitOpen(words: Words): { closed: Words; open: Words } | undefined {
  const isOpen = (term: Term) => term.some(({ prefix }) => prefix)
  const closed = words.all.filter((term) => !isOpen(term))
  const open = words.all.filter(isOpen)
  if (open.length === 0 || closed.length === 0) return undefined
  return { closed: { ...words, all: closed }, open: { all: open, none: [], any: [] } }
}
