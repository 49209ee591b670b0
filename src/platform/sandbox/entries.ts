/** Everything that can happen in the world, in the form of the log. `apply.ts` says what each entry changes. */
import type { Attachment, FileInfo } from '../port.ts'
import type { Fault } from './faults.ts'
import type { WorldPerson } from './people.ts'

/** How a fault makes an update enter the account's stream. */
export interface Delivery {
  readonly late_until?: string
  readonly twice?: true
}

/** A file of which only the hash is kept, not the bytes. */
export interface KeptFile extends FileInfo {
  readonly sha256: string
}

/** A file that a person sent. Its bytes follow from a seed, or are few. */
export interface WorldFile extends Attachment {
  readonly seed?: number
  /** In base64. */
  readonly data?: string
  /** It shows once, for this long, and is never downloaded. */
  readonly timer_seconds?: number
  /** The data centre that has it; the first by default. */
  readonly dc?: number
}

interface InChat {
  readonly account_id: string
  readonly chat_id: number
  readonly at: string
}

interface StreamedEntry extends InChat {
  readonly delivery?: Delivery
}

/** The due act that an entry carried out, so that it never runs twice. */
interface FromDue {
  readonly due_id?: number
}

export interface SendEntry extends StreamedEntry {
  readonly entry: 'send'
  readonly seq: number
  readonly message_id: number
  readonly text: string
  readonly random_id: string
  readonly file: KeptFile | null
}

export interface StartEntry extends InChat {
  readonly entry: 'start'
  readonly seq: number
}

export interface ReadStateEntry extends StreamedEntry {
  readonly entry: 'read_state'
  readonly seq: number
  readonly unread: boolean
  /** The last message that was read; all of them by default. */
  readonly up_to_message_id?: number
}

/** A person writes to the account, or the account from its phone, or history is filled in (`seeded`: no session gets an update). */
export interface WrittenEntry extends StreamedEntry, FromDue {
  readonly entry: 'written'
  readonly message_id: number
  /** Null: the account wrote it on its phone. */
  readonly person_id: number | null
  readonly text: string
  readonly file?: WorldFile
}

export interface SeededEntry extends InChat {
  readonly entry: 'seeded'
  readonly message_id: number
  /** Null: the account wrote it. */
  readonly person_id: number | null
  readonly text: string
  readonly read: boolean
}

export interface ReadByThemEntry extends StreamedEntry, FromDue {
  readonly entry: 'read_by_them'
  readonly up_to_message_id: number
}

export interface EditedEntry extends StreamedEntry {
  readonly entry: 'edited'
  readonly message_id: number
  readonly text: string
  /** Replaces the file. */
  readonly file?: WorldFile
}

export interface DeletedEntry extends StreamedEntry {
  readonly entry: 'deleted'
  readonly message_ids: readonly number[]
}

export interface AccountEntry {
  readonly entry: 'account'
  readonly account_id: string
  readonly person: WorldPerson
}

export interface GroupEntry {
  readonly entry: 'group'
  readonly account_id: string
  readonly chat_id: number
  readonly name: string
  readonly username: string | null
  readonly members: readonly number[]
}

/** At most `sends_max` sends in any `seconds`; null lifts the rule. */
export interface FloodRule {
  readonly sends_max: number
  readonly seconds: number
}

interface FloodRuleEntry {
  readonly entry: 'flood_rule'
  readonly account_id: string
  readonly rule: FloodRule | null
}

export type Entry =
  | { readonly entry: 'person'; readonly person: WorldPerson }
  /** The person as they are from now on; `former` has lost the name that passed to them. */
  | {
      readonly entry: 'person_changed'
      readonly person: WorldPerson
      readonly former: readonly WorldPerson[]
    }
  | AccountEntry
  | GroupEntry
  | SendEntry
  | StartEntry
  | ReadStateEntry
  | WrittenEntry
  | SeededEntry
  | ReadByThemEntry
  | EditedEntry
  | DeletedEntry
  /** A late update enters the stream. */
  | { readonly entry: 'streamed'; readonly due_id: number }
  | { readonly entry: 'fault'; readonly fault: Fault }
  | { readonly entry: 'fault_used'; readonly fault_id: number }
  | { readonly entry: 'faults_cleared' }
  | FloodRuleEntry

/** What the platform accepted, as the control address shows it. */
export interface JournalEntry {
  readonly seq: number
  readonly kind: 'send' | 'start' | 'read_state'
  readonly account_id: string
  readonly chat_id: string
  readonly text: string | null
  readonly random_id: string | null
  /** The hash of the file as it arrived. */
  readonly file_sha256: string | null
  readonly at: string
}
