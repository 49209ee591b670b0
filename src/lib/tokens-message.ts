/**
 * What a message is found by. Every lexeme begins with the account, so that the index holds each account's words
 * apart: a search reads nothing of another's. Besides its words a message carries its chat, who wrote it, and the
 * stretches of time it lies in, so that chat, person and time are looked up in the same index.
 */
import { createHash } from 'node:crypto'
import { quoteLexeme, tokensOf } from './tokens.ts'

export interface Placed {
  readonly account_id: string
  readonly chat_id: string
  readonly sender_id: string | null
  /** Milliseconds since 1970. */
  readonly sent_at: number
  readonly text: string
}

const scopes = new Map<string, string>()
const scopesMax = 10_000

/** Short, because every lexeme carries it. Two accounts may have the same one: the row tells them apart. */
export function scopeOf(account_id: string): string {
  let scope = scopes.get(account_id)
  if (scope === undefined) {
    scope = createHash('sha256').update(account_id).digest('base64url').slice(0, 5)
    if (scopes.size >= scopesMax) scopes.clear()
    scopes.set(account_id, scope)
  }
  return scope
}

/** A `tsvector` literal. */
export function messageTokens({ account_id, chat_id, sender_id, sent_at, text }: Placed): string {
  const scope = scopeOf(account_id)
  const inGroup = chat_id.startsWith('-') && sender_id !== null
  const place = [
    chatLexeme(scope, chat_id),
    ...(inGroup ? [senderLexeme(scope, sender_id)] : []),
    ...stretches.map(({ name, ms }) => stretchLexeme(scope, name, Math.floor(sent_at / ms))),
  ]
  return `${place.map(quoteLexeme).join(' ')} ${tokensOf(text, scope)}`
}

export function chatLexeme(scope: string, chat_id: string): string {
  return `${scope}#${chat_id}`
}

/** In groups only: in a private chat the chat says it. */
export function senderLexeme(scope: string, sender_id: string): string {
  return `${scope}~${sender_id}`
}

/** About an hour, most of a day, twelve days. */
const stretches = [12, 16, 20].map((bits, at) => ({ name: 'abc'.charAt(at), ms: 2 ** bits * 1000 }))

function stretchLexeme(scope: string, name: string, number: number): string {
  return `${scope}@${name}${number.toString(36)}`
}

/**
 * The stretches that cover the time from `from` until before `until`, and a little more at both ends: the finer they
 * are the longer the list, so short ones are taken for short times only.
 */
export function stretchesBetween(scope: string, from: number, until: number): string[] {
  const finest = stretches.find(({ ms }) => (until - from) / ms <= stretchesMax) ?? stretches.at(-1)
  const lexemes: string[] = []
  if (!finest) return lexemes
  const end = Math.ceil(until / finest.ms)
  for (let number = Math.floor(from / finest.ms); number < end; number++) {
    lexemes.push(stretchLexeme(scope, finest.name, number))
  }
  return lexemes
}

const stretchesMax = 24
