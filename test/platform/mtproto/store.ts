/**
 * What only Telegram has and the sandbox does not, as a log of its own: keys, passwords, ways of
 * login codes, channels, how chats are arranged, which device sent a message.
 */
import { join } from 'node:path'
import { memoryLog, openLog } from '../../../src/platform/sandbox/log.ts'
import type { Channel, ChannelEntry, ChannelPostEntry, ChannelReadEntry } from './channels.ts'
import type { CodePlan } from './codes.ts'

/** A key that the data centre and a client agreed on. The last entry of a `key_id` wins. */
export interface AuthKeyEntry {
  readonly entry: 'auth_key'
  readonly key_id: string
  /** In base64. */
  readonly key: string
  /** The data centre that knows it. */
  readonly dc: number
  /** Null: no account is logged in with it. */
  readonly account_id: string | null
}

/** How an account arranged a chat. */
export interface PlacedEntry {
  readonly entry: 'placed'
  readonly account_id: string
  readonly chat_id: number
  readonly pinned: boolean
  readonly archived: boolean
}

type Entry =
  | AuthKeyEntry
  | ChannelEntry
  | ChannelPostEntry
  | ChannelReadEntry
  | PlacedEntry
  /** Null: a login needs no password. */
  | { readonly entry: 'password'; readonly account_id: string; readonly password: string | null }
  | { readonly entry: 'codes'; readonly phone: string; readonly plan: CodePlan }
  /** The key that used a random id: only its devices get the `updateMessageID`. */
  | {
      readonly entry: 'sender'
      readonly account_id: string
      readonly random_id: string
      readonly key_id: string
    }

class CentreState {
  readonly auth_keys = new Map<string, AuthKeyEntry>()
  readonly passwords = new Map<string, string>()
  /** By the digits of a phone number. */
  readonly codes = new Map<string, CodePlan>()
  readonly senders = new Map<string, string>()
  readonly channels = new Map<number, Channel>()
  /** By account, then by chat. */
  readonly placed = new Map<string, Map<number, PlacedEntry>>()
}

export interface Store {
  readonly state: CentreState
  commit(entry: Entry): void
  senderOf(account_id: string, random_id: string): string | undefined
  close(): Promise<void>
}

/** Null keeps it in memory only. */
export function openStore(data_dir: string | null): Store {
  const state = new CentreState()
  const replay = (entry: unknown) => apply(state, entry as Entry)
  const log = data_dir === null ? memoryLog : openLog(join(data_dir, 'telegram'), replay)
  return {
    state,
    commit(entry) {
      log.append(entry)
      apply(state, entry)
    },
    senderOf: (account_id, random_id) => state.senders.get(`${account_id} ${random_id}`),
    close: () => log.close(),
  }
}

function apply(state: CentreState, entry: Entry): void {
  switch (entry.entry) {
    case 'auth_key':
      state.auth_keys.set(entry.key_id, entry)
      break
    case 'password':
      if (entry.password === null) state.passwords.delete(entry.account_id)
      else state.passwords.set(entry.account_id, entry.password)
      break
    case 'codes':
      state.codes.set(entry.phone, entry.plan)
      break
    case 'sender':
      state.senders.set(`${entry.account_id} ${entry.random_id}`, entry.key_id)
      break
    case 'channel':
      state.channels.set(entry.channel_id, { ...entry, posts: [], read: new Map() })
      break
    case 'channel_post':
      state.channels.get(entry.channel_id)?.posts.push(entry)
      break
    case 'channel_read':
      state.channels.get(entry.channel_id)?.read.set(entry.account_id, entry.message_id)
      break
    case 'placed': {
      const chats = state.placed.get(entry.account_id) ?? new Map()
      state.placed.set(entry.account_id, chats.set(entry.chat_id, entry))
    }
  }
}
