/**
 * What a message is found by. Every lexeme begins with the account and the time it is from, so that the index keeps the
 * words of each account and of each time apart: a search reads nothing of another account, and begins with the newest.
 * Everything is there twice, by season and by day: what is common is looked for day by day, what is rare by season.
 */
import { createHash } from 'node:crypto'
import { quoteLexeme, type Term, type Token, tokenise, toTsquery, toTsvector } from './tokens.ts'

export interface Placed {
  readonly account_id: string
  readonly chat_id: string
  readonly sender_id: string | null
  /** Milliseconds since 1970. */
  readonly sent_at: number
  readonly text: string
}

/** Four times the longest message: what PostgreSQL can put into a `tsvector` has an end. */
const textMax = 16_384

/** A `tsvector` literal. */
export function messageTokens({ account_id, chat_id, sender_id, sent_at, text }: Placed): string {
  const tokens = tokenise(text.slice(0, textMax))
  const group = chat_id.startsWith('-')
  const season = drawerOf(account_id, seasons, numberOf(sent_at, seasons))
  const day = drawerOf(account_id, days, numberOf(sent_at, days))
  const place = [season, day].flatMap((drawer) => [
    chatLexeme(drawer, chat_id),
    ...(group && sender_id !== null ? [senderLexeme(drawer, sender_id)] : []),
  ])
  const lexemes = [...place, ...pairLexemes(season, tokens)].map(quoteLexeme)
  return `${lexemes.join(' ')} ${toTsvector(tokens, season)} ${toTsvector(tokens, day)}`
}

/** Two ways to divide the time. A drawer is where the lexemes of one account and one such part are. */
export interface Calendar {
  readonly ms: number
  /** How a part is called: always as long, so that it ends where the word begins. */
  readonly name: (number: number) => string
}

/** 48 days. A survey of the newest messages makes the same name in SQL. */
export const seasons: Calendar = {
  ms: 2 ** 22 * 1000,
  name: (number) => number.toString(16).padStart(3, '0'),
}

/** 18 hours. */
export const days: Calendar = {
  ms: 2 ** 16 * 1000,
  name: (number) => `.${number.toString(36).padStart(4, '0')}`,
}

/** What is older than 1970 is in the first. */
export function numberOf(at: number, { ms }: Calendar): number {
  return Math.max(0, Math.floor(at / ms))
}

export function drawerOf(account_id: string, { name }: Calendar, number: number): string {
  return scopeOf(account_id) + name(number)
}

const scopes = new Map<string, string>()
const scopesMax = 10_000

/** Short, because every lexeme carries it. Two accounts may have the same one: the row tells them apart. */
export function scopeOf(account_id: string): string {
  let scope = scopes.get(account_id)
  if (scope === undefined) {
    scope = createHash('sha256').update(account_id).digest('base64url').slice(0, 4)
    if (scopes.size >= scopesMax) scopes.clear()
    scopes.set(account_id, scope)
  }
  return scope
}

export function chatLexeme(drawer: string, chat_id: string): string {
  return `${drawer}#${chat_id}`
}

/** In groups only: in a private chat the chat says it. */
export function senderLexeme(drawer: string, sender_id: string): string {
  return `${drawer}~${sender_id}`
}

/**
 * Words that stand one after another, in few groups: the index knows which words a message has, not where they stand,
 * and two common words are in many messages that have them apart. By season only.
 */
function pairLexemes(season: string, tokens: readonly Token[]): Set<string> {
  const lexemes = new Set<string>()
  for (const [at, token] of tokens.entries()) {
    const next = tokens[at + 1]
    if (next && !token.part && !next.part) lexemes.add(pairLexeme(season, token.word, next.word))
  }
  return lexemes
}

const pairGroups = 1024

function pairLexeme(season: string, word: string, next: string): string {
  let hash = 2_166_136_261
  const text = `${word} ${next}`
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 16_777_619)
  return `${season}+${(((hash >>> 16) ^ hash) & (pairGroups - 1)).toString(36)}`
}

/** The term as it stands in a message of this season: its words, and the pairs they make. */
export function termBySeason(season: string, term: Term): string {
  const pairs = new Set<string>()
  for (const [at, { word, part }] of term.entries()) {
    const next = term[at + 1]
    if (next && !part && !next.part && !next.prefix) pairs.add(pairLexeme(season, word, next.word))
  }
  const words = toTsquery(term, season)
  return pairs.size === 0 ? words : `(${[...[...pairs].map(quoteLexeme), words].join(' & ')})`
}
