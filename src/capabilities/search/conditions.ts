/** What a message has to be, put together from the words, the people, the chat and the times that were asked for. */
import { ApiError } from '../../lib/errors.ts'
import { quote } from '../../lib/text.ts'
import { prefixTerms, standsIn, type Term, tokenise, toTsquery } from '../../lib/tokens.ts'
import { parseQuery } from '../../lib/tokens-query.ts'
import { chatMark, isGroup, type Look, lookForMark, lookForWord, pairMark, senderMark } from './listing.ts'

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
  readonly words: Words
  /** By account the numbers of those who have the names. */
  readonly people: ReadonlyMap<string, ReadonlySet<string>> | undefined
  /** The number of the only chat to look in. */
  readonly chat_id: string | undefined
  /** From `from` until before `until`, in milliseconds since 1970. */
  readonly from: number
  readonly until: number
}

/** Where no times are asked for. */
export const always = { from: Date.UTC(0, 0), until: Date.UTC(9999, 11, 31) }

/** Nothing but times: these need no lists. */
export function isTimeOnly({ words, people }: Condition): boolean {
  return words.all.length === 0 && words.any.length === 0 && people === undefined
}

/** Nothing but words, each of which has a list that it shares with no other. */
export function isSure({ words, people, chat_id }: Condition): boolean {
  const terms = [...words.all, ...words.none, ...words.any.flat()]
  return people === undefined && chat_id === undefined && terms.every(({ length }) => length === 1)
}

/** As much of a message as decides. */
export interface Candidate {
  readonly account_id: string
  readonly chat_id: string
  readonly sender_id: string | null
  readonly sent_at: Date
  readonly text: string
}

/** By the message itself. */
export function isMatch({ words, people, chat_id, from, until }: Condition, message: Candidate): boolean {
  const at = message.sent_at.getTime()
  if (at < from || at >= until || (chat_id !== undefined && message.chat_id !== chat_id)) return false
  const named = people?.get(message.account_id)
  if (
    people &&
    !(named?.has(message.chat_id) || (isGroup(message.chat_id) && named?.has(message.sender_id ?? '')))
  ) {
    return false
  }
  const tokens = tokenise(message.text)
  const has = (term: Term) => standsIn(tokens, term)
  return (
    words.all.every(has) &&
    !words.none.some(has) &&
    (words.any.length === 0 || words.any.some((terms) => terms.every(has)))
  )
}

/** What to look up in the lists of an account. */
export interface Plan {
  /** A message must be in each of these: in all lists of one of the alternatives. */
  readonly groups: readonly (readonly (readonly Look[])[])[]
  /** And in none of these. */
  readonly none: readonly (readonly Look[])[]
  /** The lists say too little: what they have in common has to be looked at. */
  readonly check: boolean
}

export function planFor(account_id: string, condition: Condition): Plan {
  const { words, people, chat_id } = condition
  const exactNone = words.none.filter(isExact)
  return {
    groups: [
      ...words.all.map((term) => [looksFor(term)]),
      ...(words.any.length > 0 ? [words.any.map((terms) => terms.flatMap(looksFor))] : []),
      ...(people ? [[...(people.get(account_id) ?? [])].flatMap(looksForPerson)] : []),
      ...(chat_id === undefined ? [] : [[[lookForMark(chatMark(chat_id))]]]),
    ],
    none: exactNone.map(looksFor),
    check: exactNone.length < words.none.length || ![...words.all, ...words.any.flat()].every(isExact),
  }
}

/** Two words that stand together have a list; more of them may stand apart, two by two. */
function isExact(term: Term): boolean {
  return term.length === 1 || (term.length === 2 && !term[1]?.prefix)
}

function looksFor(term: Term): Look[] {
  const [first] = term
  if (!first) return []
  const looks = term.length === 1 ? [lookForWord(first)] : []
  for (const [at, { word }] of term.entries()) {
    const next = term[at + 1]
    if (next?.prefix) looks.push(lookForWord({ word, prefix: false }), lookForWord(next))
    else if (next) looks.push(lookForMark(pairMark(word, next.word)))
  }
  return looks
}

/** A person's private chat has the person's number. A chat may write, too: a channel in its group. */
function looksForPerson(id: string): Look[][] {
  return [[lookForMark(chatMark(id))], [lookForMark(senderMark(id))]]
}
