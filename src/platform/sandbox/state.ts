/** The state of the world. Only `apply.ts` changes it. */
import type { FloodRule, GroupEntry, JournalEntry, WorldFile } from './entries.ts'
import type { Fault } from './faults.ts'
import type { WorldPerson } from './people.ts'

/** One message as one account sees it. Never changed in place: streams keep the version they announced. */
export interface Post {
  readonly message_id: number
  readonly text: string
  readonly is_sender: boolean
  readonly person_id: number
  readonly at: string
  readonly edited_at: string | null
  readonly attachments: readonly WorldFile[]
  readonly random_id: string | null
}

export interface Box {
  readonly chat_id: number
  /** In the order of their ids. */
  readonly posts: Post[]
  unread_count: number
  /** The last message that each side has read. */
  read_by_us: number
  read_by_them: number
  last_at: string
}

/** What a stream carries. The chat's name and people are looked up on delivery. */
export type Happening =
  | { readonly kind: 'message'; readonly chat_id: number; readonly post: Post; readonly unread_count: number }
  | { readonly kind: 'sent'; readonly chat_id: number; readonly post: Post }
  /** `hidden`: nothing that is shown has changed, as with a reaction. */
  | { readonly kind: 'edited'; readonly chat_id: number; readonly post: Post; readonly hidden: boolean }
  | { readonly kind: 'deleted'; readonly chat_id: number; readonly message_ids: readonly number[] }
  | {
      readonly kind: 'read_by_them'
      readonly chat_id: number
      readonly message_id: number
      readonly at: string
    }
  | {
      readonly kind: 'unread'
      readonly chat_id: number
      readonly unread_count: number
      /** The account read the chat or marked it unread, or an unread message was deleted. */
      readonly cause: 'read' | 'marked' | 'deleted'
    }
  /** The person's name, username or phone number is this one from now on. `chat_id` is their number. */
  | { readonly kind: 'person'; readonly chat_id: number; readonly person: WorldPerson }

export interface Account {
  readonly account_id: string
  readonly person_id: number
  readonly boxes: Map<number, Box>
  readonly chat_of_message: Map<number, number>
  /** The message first sent under each random id. */
  readonly sent_ids: Map<string, number>
  /** Position n is the n-th happening, counted from one. */
  readonly stream: Happening[]
  last_message_id: number
  last_at: string
  flood_rule: FloodRule | null
  /** The times of the latest sends, as many as the flood rule counts. */
  sent_at: readonly string[]
}

export interface Due {
  readonly due_id: number
  readonly at: string
  readonly account_id: string
  readonly act:
    | { readonly kind: 'read'; readonly chat_id: number; readonly message_id: number }
    | { readonly kind: 'answer'; readonly chat_id: number; readonly person_id: number }
    | { readonly kind: 'stream'; readonly happenings: readonly Happening[] }
}

export class State {
  readonly people = new Map<number, WorldPerson>()
  readonly groups = new Map<number, GroupEntry>()
  readonly accounts = new Map<string, Account>()
  readonly account_of_person = new Map<number, string>()
  /** Lower-cased username to person (positive) or group (negative). */
  readonly usernames = new Map<string, number>()
  readonly phones = new Map<string, number>()
  readonly journal: JournalEntry[] = []
  /** In the order they fall due. */
  readonly dues: Due[] = []
  faults: readonly Fault[] = []
  last_person_id = 1000
  last_group_id = 0
  last_fault_id = 0
  last_due_id = 0
}

export function requireAccount(state: State, account_id: string): Account {
  const account = state.accounts.get(account_id)
  if (!account) throw new Error(`The world has no account ${account_id}.`)
  return account
}

export function openBox(account: Account, chat_id: number): Box {
  let box = account.boxes.get(chat_id)
  if (!box) {
    box = { chat_id, posts: [], unread_count: 0, read_by_us: 0, read_by_them: 0, last_at: '' }
    account.boxes.set(chat_id, box)
  }
  return box
}

/** The index of a message in the box, or where it would be. */
export function indexOfPost(box: Box, message_id: number): number {
  let low = 0
  let high = box.posts.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((box.posts[middle]?.message_id ?? 0) < message_id) low = middle + 1
    else high = middle
  }
  return low
}
