/**
 * What a message is found by. Every word begins with the account and the season it is from, so that the index keeps
 * the words of each account and each season apart: a search reads nothing of another account, and begins with the
 * newest. The chat, who wrote in a group, and the hours it lies in are looked up the same way.
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
  const season = seasonOf(account_id, seasonAt(sent_at))
  const lexemes = [
    chatLexeme(season, chat_id),
    ...(chat_id.startsWith('-') && sender_id !== null ? [senderLexeme(season, sender_id)] : []),
    ...stretchLexemes(account_id, stretchAt(sent_at), tokens),
    ...pairLexemes(season, tokens),
  ]
  return `${lexemes.map(quoteLexeme).join(' ')} ${toTsvector(tokens, season)}`
}

/** 48 days. */
export const seasonMs = 2 ** 22 * 1000
const seasonMax = 0xfff

/** What is older than 1970 is in the first. */
export function seasonAt(at: number): number {
  return Math.min(seasonMax, Math.max(0, Math.floor(at / seasonMs)))
}

/** How the words of an account begin in a season. Three digits; a survey of the newest messages makes them in SQL. */
export function seasonOf(account_id: string, number: number): string {
  return scopeOf(account_id) + number.toString(16).padStart(3, '0')
}

/** Four and a half hours: 256 of them are a season. */
export const stretchMs = seasonMs / 256

export function stretchAt(at: number): number {
  return Math.max(0, Math.floor(at / stretchMs))
}

/** The message by itself, and by how its words begin: what is common is looked for in a few hours, not in a season. */
function stretchLexemes(account_id: string, stretch: number, tokens: readonly Token[]): string[] {
  const place = placeOf(account_id, stretch)
  const groups = new Set<number | ''>(tokens.map(({ word }) => groupOf(word))).add('')
  return Array.from(groups, (group) => inGroup(place, group))
}

const beginningLength = 3
const beginnings = 64

/** Words that begin alike share one, and so do some others: few long lists instead of many short ones. */
export function stretchLexeme(account_id: string, stretch: number, word?: string): string {
  return inGroup(placeOf(account_id, stretch), word === undefined ? '' : groupOf(word))
}

function placeOf(account_id: string, stretch: number): number {
  return fold(`${account_id} ${stretch} `)
}

function groupOf(word: string): number {
  return mix(fold(word.slice(0, beginningLength))) % beginnings
}

function inGroup(place: number, group: number | ''): string {
  return `@${mix(fold(String(group), place)).toString(36)}`
}

/** Whether all words that begin like this are in one group. */
export function isBeginning(word: string): boolean {
  return word.length >= beginningLength
}

const scopes = new Map<string, string>()
const scopesMax = 10_000

/** Short, because every word carries it. Two accounts may have the same one: the row tells them apart. */
export function scopeOf(account_id: string): string {
  let scope = scopes.get(account_id)
  if (scope === undefined) {
    scope = createHash('sha256').update(account_id).digest('base64url').slice(0, 4)
    if (scopes.size >= scopesMax) scopes.clear()
    scopes.set(account_id, scope)
  }
  return scope
}

export function chatLexeme(season: string, chat_id: string): string {
  return `${season}#${chat_id}`
}

/** In groups only: in a private chat the chat says it. */
export function senderLexeme(season: string, sender_id: string): string {
  return `${season}~${sender_id}`
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

const pairGroups = 65_536

function pairLexeme(season: string, word: string, next: string): string {
  return `${season}+${(mix(fold(`${word} ${next}`)) % pairGroups).toString(36)}`
}

/** FNV-1a, which can go on from where it was. */
function fold(text: string, before = 2_166_136_261): number {
  let hash = before
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 16_777_619)
  return hash
}

/** Its lower bits alone are used, too. */
function mix(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return (mixed ^ (mixed >>> 16)) >>> 0
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
