/**
 * The rows of the large workspace, in COPY's format. A row depends only on its number, so that several threads can make them,
 * each its share.
 */
import { normalise, tokenise, toTsvector } from '../src/lib/tokens.ts'
import type { Share } from './processes/copy.ts'
import { seeded, sentence } from './texts.ts'

export interface Tenant {
  readonly number: number
  readonly account_id: string
  readonly workspace_id: string
  readonly chats: number
}

export type Table = 'contacts' | 'chats' | 'messages'

export const columns: Record<Table, string> = {
  contacts: 'account_id, provider_id, workspace_id, name, username, sort_name, name_tokens',
  chats: `account_id, chat_id, workspace_id, kind, name, username, participants, last_message_id, last_message_text,
    last_message_at, unread_count`,
  messages: `account_id, chat_id, id, workspace_id, text, is_sender, sender_id, sent_at, attachments, announced`,
}

const newest = Date.UTC(2026, 10, 1)
const dayMs = 86_400_000
const hourMs = 3_600_000

/** Most chats are short; the first hundred of a large account are long. */
const short = 5
const long = 500
const longChats = 100

function messagesIn({ chats }: Tenant, chat: number): number {
  return chats > 10_000 && chat <= longChats ? long : short - (chat % 2)
}

export function countRows(table: Table, tenants: readonly Tenant[]): number {
  let count = 0
  for (const tenant of tenants) {
    if (table !== 'messages') count += tenant.chats
    else for (let chat = 1; chat <= tenant.chats; chat++) count += messagesIn(tenant, chat)
  }
  return count
}

/**
 * Messages come in rounds, one for each chat that still has some. Like real arrivals, this scatters the messages of one chat,
 * and of one day, all over the table.
 */
export function* rowsOf(table: Table, tenants: readonly Tenant[], { part, parts }: Share): Generator<string> {
  for (const tenant of tenants) {
    const rounds = table === 'messages' ? Math.max(short, messagesIn(tenant, 1)) : 1
    for (let round = 0; round < rounds; round++) {
      const chats = round < short ? tenant.chats : Math.min(longChats, tenant.chats)
      for (let chat = 1 + part; chat <= chats; chat += parts) {
        if (table === 'contacts') yield contactRow(tenant, chat)
        else if (table === 'chats') yield chatRow(tenant, chat)
        else if (round < messagesIn(tenant, chat)) yield messageRow(tenant, chat, round)
      }
    }
  }
}

const firstNames = 'Ana Bruno Chiara Дмитрий Élise Fatima Günther 美咲 Olga Peter'.split(' ')
const lastNames = 'Abara Becker García Иванова Jansen Müller 田中 Okafor Rossi Žižek'.split(' ')

function nameOf(chat: number): string {
  return `${firstNames[chat % 10]} ${lastNames[Math.floor(chat / 10) % 10]} ${Math.floor(chat / 100)}`
}

function contactRow({ account_id, workspace_id }: Tenant, chat: number): string {
  const name = nameOf(chat)
  return line([
    account_id,
    chat,
    workspace_id,
    name,
    `user_${chat}`,
    normalise(name),
    toTsvector(tokenise(name)),
  ])
}

function chatRow(tenant: Tenant, chat: number): string {
  const name = nameOf(chat)
  const last = messageAt(tenant, chat, messagesIn(tenant, chat) - 1)
  return line([
    tenant.account_id,
    chat,
    tenant.workspace_id,
    'private',
    name,
    `user_${chat}`,
    JSON.stringify([{ id: String(chat), name, username: `user_${chat}`, kind: 'person' }]),
    last.id,
    last.text,
    new Date(last.sent_at).toISOString(),
    chat % 3,
  ])
}

function messageRow(tenant: Tenant, chat: number, round: number): string {
  const { account_id, workspace_id } = tenant
  const { id, text, sent_at } = messageAt(tenant, chat, round)
  const chat_id = String(chat)
  return line([
    account_id,
    chat_id,
    id,
    workspace_id,
    text,
    round % 2 ? 't' : 'f',
    chat_id,
    new Date(sent_at).toISOString(),
    '[]',
    'f',
  ])
}

function messageAt(tenant: Tenant, chat: number, round: number) {
  const random = seeded(
    Math.imul(tenant.number, 7_919) ^ Math.imul(chat, 4_999) ^ Math.imul(round + 1, 104_729),
  )
  const text = sentence(random)
  const last = newest - Math.floor((recency(tenant, chat) / tenant.chats) * 300 * dayMs)
  const before = (messagesIn(tenant, chat) - round) * hourMs
  return { id: round * tenant.chats + chat, text, sent_at: last - before + Math.floor(random() * 3_000_000) }
}

/** A permutation of the chats, so that the order of their last messages differs from the order of their rows. */
function recency({ chats }: Tenant, chat: number): number {
  let step = Math.max(1, Math.floor(chats * 0.618))
  while (divisor(step, chats) > 1) step++
  return (chat * step) % chats
}

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b)
}

/** COPY's text format, in which these characters have a special meaning. */
function line(values: readonly (string | number)[]): string {
  return `${values.map((value) => (typeof value === 'number' ? value : copyText(value))).join('\t')}\n`
}

const special = /[\\\t\n\r]/
const escapes: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }

function copyText(text: string): string {
  return special.test(text) ? text.replaceAll(/[\\\t\n\r]/g, (character) => escapes[character] ?? '') : text
}
