/** Private chats between two accounts: what one of them does, the other gets. The world itself has people on the other side. */
import type {
  EditedEntry,
  Entry,
  ReadStateEntry,
  SendEntry,
  WorldFile,
} from '../../../src/platform/sandbox/entries.ts'
import { type Account, indexOfPost } from '../../../src/platform/sandbox/state.ts'
import type { World } from '../../../src/platform/sandbox/world.ts'

/** A message as one of the two accounts numbers it. */
interface Copy {
  readonly account: Account
  readonly message_id: number
}

const filesMax = 16

export class BetweenAccounts {
  readonly #world: World
  /** By account and number: the other side's copy. Forgotten with the process. */
  readonly #copies = new Map<string, Copy>()
  /** By hash: the bytes of files that an account has uploaded. */
  readonly #files = new Map<string, Buffer>()

  constructor(world: World) {
    this.#world = world
    world.onCommitted = (entry) => this.#pass(entry)
  }

  keepFile(sha256: string, bytes: Buffer): void {
    this.#files.set(sha256, bytes)
    const [oldest] = this.#files.keys()
    if (this.#files.size > filesMax && oldest !== undefined) this.#files.delete(oldest)
  }

  /** A deletion for both sides. */
  deleted(account: Account, message_ids: readonly number[]): void {
    for (const message_id of message_ids) {
      const copy = this.#copies.get(keyOf({ account, message_id }))
      const chat_id = copy?.account.chat_of_message.get(copy.message_id)
      if (!copy || chat_id === undefined) continue
      const { account_id } = copy.account
      const at = this.#world.nowText()
      this.#world.commit({ entry: 'deleted', account_id, chat_id, message_ids: [copy.message_id], at })
    }
  }

  #pass(entry: Entry): void {
    if (entry.entry === 'send') this.#passMessage(entry)
    if (entry.entry === 'edited') this.#passEdit(entry)
    if (entry.entry === 'read_state' && !entry.unread) this.#passReading(entry)
  }

  #otherOf({ account_id, chat_id }: { account_id: string; chat_id: number }): Account | undefined {
    const other = this.#world.state.account_of_person.get(chat_id)
    return other === undefined || other === account_id ? undefined : this.#world.requireAccount(other)
  }

  #passMessage(entry: SendEntry): void {
    const other = this.#otherOf(entry)
    if (!other) return
    const account = this.#world.requireAccount(entry.account_id)
    const message_id = other.last_message_id + 1
    const { person_id } = account
    const { text, at } = entry
    const file = entry.file && this.#fileOf(entry.file)
    const { account_id } = other
    this.#world.commit({
      ...{ entry: 'written', account_id, chat_id: person_id, person_id, message_id, text, at },
      ...(file && { file }),
    })
    const [sent, received] = [
      { account, message_id: entry.message_id },
      { account: other, message_id },
    ]
    this.#copies.set(keyOf(sent), received)
    this.#copies.set(keyOf(received), sent)
  }

  #fileOf({ file_name, media_type, size, sha256 }: NonNullable<SendEntry['file']>): WorldFile {
    const bytes = this.#files.get(sha256)
    const data = bytes && { data: bytes.toString('base64') }
    return { index: 0, kind: 'file', file_name, media_type, size, ...data }
  }

  /** Only the author edits; the entry that this makes is about a message that the other side received. */
  #passEdit({ account_id, chat_id, message_id, text, at }: EditedEntry): void {
    const account = this.#world.requireAccount(account_id)
    const box = account.boxes.get(chat_id)
    const post = box?.posts[indexOfPost(box, message_id)]
    const copy = this.#copies.get(keyOf({ account, message_id }))
    if (!copy || !post?.is_sender) return
    const { person_id } = account
    const to = { account_id: copy.account.account_id, message_id: copy.message_id }
    this.#world.commit({ entry: 'edited', chat_id: person_id, text, at, ...to })
  }

  #passReading(entry: ReadStateEntry): void {
    const other = this.#otherOf(entry)
    const account = this.#world.requireAccount(entry.account_id)
    const last = account.boxes.get(entry.chat_id)?.posts.findLast(({ is_sender }) => !is_sender)
    const copy = last && this.#copies.get(keyOf({ account, message_id: last.message_id }))
    if (!other || !copy) return
    const { account_id } = other
    const { person_id: chat_id } = account
    const up_to_message_id = copy.message_id
    this.#world.commit({ entry: 'read_by_them', account_id, chat_id, up_to_message_id, at: entry.at })
  }
}

function keyOf({ account, message_id }: Copy): string {
  return `${account.account_id} ${message_id}`
}
