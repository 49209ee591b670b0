/**
 * What a message is found by. Every lexeme begins with the account and a season, so that the index keeps each account's
 * words apart, and the words of each season: a search reads nothing of another account, and begins with the newest.
 * Besides its words a message carries its chat, who wrote it and the hours it lies in, to be looked up the same way.
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

/** A `tsvector` literal. */
export function messageTokens({ account_id, chat_id, sender_id, sent_at, text }: Placed): string {
  const scope = scopeOf(account_id)
  const season = scope + seasonName(seasonOf(sent_at))
  const tokens = tokenise(text)
  const place = [
    chatLexeme(season, chat_id),
    ...(chat_id.startsWith('-') && sender_id !== null ? [senderLexeme(season, sender_id)] : []),
    ...stretches.map(({ name, ms }) => stretchLexeme(scope, name, Math.floor(sent_at / ms))),
    ...pairLexemes(season, tokens),
  ]
  return `${place.map(quoteLexeme).join(' ')} ${toTsvector(tokens, season)}`
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

/** 97 days. */
export const seasonMs = 2 ** 23 * 1000

export function seasonOf(at: number): number {
  return Math.max(0, Math.floor(at / seasonMs))
}

/** Three digits, so that it ends where the word begins. The survey of a search makes the same in SQL. */
export function seasonName(season: number): string {
  return season.toString(16).padStart(3, '0')
}

export function chatLexeme(season: string, chat_id: string): string {
  return `${season}#${chat_id}`
}

/** In groups only: in a private chat the chat says it. */
export function senderLexeme(season: string, sender_id: string): string {
  return `${season}~${sender_id}`
}

/** About an hour, nine hours, three days: parts of a season. */
const stretches = [12, 15, 18].map((bits, at) => ({ name: 'abc'.charAt(at), ms: 2 ** bits * 1000 }))
const stretchesMax = 32

function stretchLexeme(scope: string, name: string, number: number): string {
  return `${scope}@${name}${number.toString(36)}`
}

/** The finest stretch that does not take too many of them. */
function stretchFor(ms: number) {
  return stretches.find((stretch) => ms / stretch.ms <= stretchesMax)
}

/** The stretches that cover the time from `from` until before `until`, and a little more at both ends. */
export function stretchesBetween(scope: string, from: number, until: number): string[] {
  const { name, ms } = stretchFor(until - from - 1) ?? { name: 'c', ms: 2 ** 18 * 1000 }
  const lexemes: string[] = []
  for (let number = Math.floor(from / ms); number * ms < until; number++) {
    lexemes.push(stretchLexeme(scope, name, number))
  }
  return lexemes
}

/** The beginning of the stretch, or of the season, that a time so long before `until` lies in. */
export function startBefore(until: number, ms: number): number {
  const unit = stretchFor(ms)?.ms ?? seasonMs
  return Math.floor((until - ms) / unit) * unit
}

/**
 * Words that stand one after another, in few groups: the index knows which words a message has, not where they stand,
 * and two common words are in many messages that have them apart.
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
export function termQuery(season: string, term: Term): string {
  const pairs = new Set<string>()
  for (const [at, { word, part }] of term.entries()) {
    const next = term[at + 1]
    if (next && !part && !next.part && !next.prefix) pairs.add(pairLexeme(season, word, next.word))
  }
  const words = toTsquery(term, season)
  return pairs.size === 0 ? words : `(${[...[...pairs].map(quoteLexeme), words].join(' & ')})`
}
