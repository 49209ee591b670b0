/** What a message has to be, put together from the words, the people and the chat that were asked for. */
import { ApiError } from '../../lib/errors.ts'
import { quote } from '../../lib/text.ts'
import { prefixTerms, quoteLexeme, type Term, toTsquery } from '../../lib/tokens.ts'
import { chatLexeme, scopeOf, senderLexeme, stretchesBetween } from '../../lib/tokens-message.ts'
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
    const terms = prefixTerms(keyword)
    if (terms.length === 0) throw refusal(`keywords has no word in ${quote(keyword)}.`)
    return terms.map((term, at) => (at < terms.length - 1 ? whole(term) : term))
  })
  if ([...all, ...none, ...any.flat()].flat().length > wordsMax) {
    throw refusal(`query and keywords must have at most ${wordsMax} words together.`)
  }
  return { all, none, any }
}

/** Only the last word of a keyword may go on. */
function whole(term: Term): Term {
  return term.map((lexeme) => ({ ...lexeme, prefix: lexeme.prefix && isOpen(lexeme.word) }))
}

/** A single character of a script without spaces begins every pair it stands in. */
function isOpen(word: string): boolean {
  return [...word].length === 1 && /\p{Lo}/u.test(word)
}

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

/** Everything but the time, as `tsquery`; null when there is nothing but the time. */
export function toCondition(
  account_id: string,
  {
    words,
    people,
    chat_id,
  }: { words: Words; people: readonly string[] | undefined; chat_id: string | undefined },
): string | null {
  const scope = scopeOf(account_id)
  const parts = [
    ...words.all.map((term) => toTsquery(term, scope)),
    ...words.none.map((term) => `!${toTsquery(term, scope)}`),
    ...(words.any.length > 0
      ? [anyOf(words.any.map((terms) => `(${terms.map((term) => toTsquery(term, scope)).join(' & ')})`))]
      : []),
    ...(people ? [anyOf(people.flatMap((id) => personLexemes(scope, id).map(quoteLexeme)))] : []),
  ]
  if (parts.length === 0) return null
  if (chat_id !== undefined) parts.push(quoteLexeme(chatLexeme(scope, chat_id)))
  return parts.join(' & ')
}

/** A person's private chat has the person's number. */
function personLexemes(scope: string, id: string): string[] {
  const chat = chatLexeme(scope, id)
  return id.startsWith('-') ? [chat] : [chat, senderLexeme(scope, id)]
}

function anyOf(alternatives: readonly string[]): string {
  return `(${alternatives.join(' | ')})`
}

/** The condition, in this window only. */
export function within(condition: string, account_id: string, { from, until }: Window): string {
  return `${condition} & ${anyOf(stretchesBetween(scopeOf(account_id), from, until).map(quoteLexeme))}`
}
