/**
 * What arrives of people who were erased. Nothing of it is stored until they write again, and nothing from before that message ever:
 * no history, no edit, no dialog. Our own messages leave their id and random id, because they prove what the ledger says.
 */
import { noteWitnesses } from '../capabilities/messages/messages.ts'
import { type ErasedChat, findErasedChats, noteReturned } from '../capabilities/people/people.ts'
import type { AccountKey } from '../contract.ts'
import type { Tx } from '../db/sql.ts'
import { noteProofs, proofsIn } from '../ledger/proofs.ts'
import type { ChatNumber } from '../lib/shapes.ts'
import type { Chat, Message, Person, Update } from '../platform/port.ts'

interface Seen {
  readonly chat_id: ChatNumber
  readonly message: Message
}

/** Who of the people that something is about was erased, in one account. */
export class ErasedPeople {
  readonly #chats: ReadonlyMap<ChatNumber, ErasedChat>
  /** By chat: the message with which the person wrote again, as far as this transaction has seen. */
  readonly #returned = new Map<ChatNumber, string>()

  private constructor(chats: ReadonlyMap<ChatNumber, ErasedChat>) {
    this.#chats = chats
  }

  static async find(tx: Tx, account: AccountKey, numbers: Iterable<ChatNumber>): Promise<ErasedPeople> {
    const people = [...new Set(numbers)].filter((number) => !number.startsWith('-'))
    return new ErasedPeople(await findErasedChats(tx, account, people))
  }

  get none(): boolean {
    return this.#chats.size === 0
  }

  /** Call it with everything that arrives together: a person who writes again is known from that message on. */
  note(seen: readonly Seen[]): void {
    for (const { chat_id, message } of seen) {
      const chat = this.#chats.get(chat_id)
      if (!chat || !isAnew(chat, message)) continue
      const known = this.#fromOf(chat)
      if (known === null || BigInt(message.id) < BigInt(known)) this.#returned.set(chat_id, message.id)
    }
  }

  /** What `note` has found: from now on the person is stored again. */
  async store(tx: Tx, account: AccountKey): Promise<void> {
    await noteReturned(tx, account, this.#returned)
  }

  /** Whether nothing is stored of the person: they were erased, and have not written again. */
  isGone(number: ChatNumber): boolean {
    const chat = this.#chats.get(number)
    return chat !== undefined && this.#fromOf(chat) === null
  }

  /** Whether nothing is stored of the message: of a private chat by its place, of a group by its sender. */
  hides({ chat_id, message }: Seen): boolean {
    const chat = this.#chats.get(chat_id)
    if (chat) {
      const from = this.#fromOf(chat)
      return from === null || BigInt(message.id) < BigInt(from) // guard: what came before they wrote again
    }
    const sender = message.sender_id === null ? undefined : this.#chats.get(message.sender_id as ChatNumber)
    return sender !== undefined && Date.parse(message.timestamp) < sender.erased_at.getTime() // guard: what they wrote in groups
  }

  /** The chat as it may be stored. A member who was erased is shown as a deleted account. */
  maskMembers(chat: Chat): Chat {
    if (!chat.participants?.some(({ id }) => this.isGone(id as ChatNumber))) return chat
    return { ...chat, participants: chat.participants.map((one) => this.#mask(one)) }
  }

  #mask(person: Person): Person {
    if (!this.isGone(person.id as ChatNumber)) return person
    return { id: person.id, name: '', username: null, phone: null, kind: 'deleted' }
  }

  #fromOf({ chat_id, from_id }: ErasedChat): string | null {
    return this.#returned.get(chat_id) ?? from_id
  }
}

/** A message of theirs that is newer than all that was stored, and than the erasure. Platforms report whole seconds. */
function isAnew({ erased_at, last_id }: ErasedChat, { id, is_sender, timestamp }: Message): boolean {
  const erasedMs = Math.floor(erased_at.getTime() / 1_000) * 1_000
  return !is_sender && BigInt(id) > BigInt(last_id) && Date.parse(timestamp) >= erasedMs // guard: history is not written again
}

/** Stores what stays of hidden messages: of ours, the id and the random id. */
async function storeWitnesses(tx: Tx, account: AccountKey, hidden: readonly Seen[]): Promise<void> {
  const ours = hidden.filter(({ message }) => message.is_sender && message.random_id !== null)
  if (ours.length === 0) return
  // The ledger before the messages: every transaction locks them in this order.
  await noteProofs(tx, account.account_id, proofsIn(ours.map(({ message }) => message)))
  await noteWitnesses(tx, account, ours) // guard: our messages to erased people are witnesses
}

/** The updates of a batch that may be stored. Stores what stays of the others. */
export async function withoutErased(
  tx: Tx,
  account: AccountKey,
  updates: readonly Update[],
): Promise<readonly Update[]> {
  const erased = await ErasedPeople.find(tx, account, updates.flatMap(numbersOf))
  if (erased.none) return updates
  const messages = updates.flatMap((update) =>
    update.kind === 'message' ? [{ chat_id: update.chat.id, message: update.message }] : [],
  )
  erased.note(messages)
  await erased.store(tx, account)
  await storeWitnesses(
    tx,
    account,
    messages.filter((one) => erased.hides(one)),
  )
  return updates.flatMap((update): Update[] => {
    switch (update.kind) {
      case 'message': {
        const { chat, message } = update
        const hidden = erased.isGone(chat.id) || erased.hides({ chat_id: chat.id, message })
        return hidden ? [] : [{ ...update, chat: erased.maskMembers(chat) }]
      }
      case 'edited':
        return erased.hides(update) ? [] : [update]
      case 'person':
        return erased.isGone(update.person.id as ChatNumber) ? [] : [update]
      case 'read_by_them':
      case 'unread':
        return erased.isGone(update.chat_id) ? [] : [update]
      default:
        return [update]
    }
  })
}

function numbersOf(update: Update): ChatNumber[] {
  switch (update.kind) {
    case 'message':
      return [...numbersIn(update.chat), ...senderOf(update.message)]
    case 'edited':
      return [update.chat_id, ...senderOf(update.message)]
    case 'person':
      return [update.person.id as ChatNumber]
    case 'read_by_them':
    case 'unread':
      return [update.chat_id]
    default:
      return []
  }
}

function numbersIn({ id, participants }: Chat): ChatNumber[] {
  return [id, ...(participants ?? []).map((person) => person.id as ChatNumber)]
}

function senderOf({ sender_id }: Message): ChatNumber[] {
  return sender_id === null ? [] : [sender_id as ChatNumber]
}

/** The same for what an account shows of its past: messages that may be stored. */
export async function pastWithoutErased<S extends Seen>(
  tx: Tx,
  account: AccountKey,
  past: readonly S[],
): Promise<readonly S[]> {
  const erased = await ErasedPeople.find(
    tx,
    account,
    past.flatMap(({ chat_id, message }) => [chat_id, ...senderOf(message)]),
  )
  if (erased.none) return past
  erased.note(past)
  await erased.store(tx, account)
  await storeWitnesses(
    tx,
    account,
    past.filter((one) => erased.hides(one)),
  )
  return past.filter((one) => !erased.hides(one)) // guard: the past of erased people is not stored
}

/** Chats that may be stored, with their members. */
export async function chatsWithoutErased(
  tx: Tx,
  account: AccountKey,
  chats: readonly Chat[],
): Promise<readonly Chat[]> {
  const erased = await ErasedPeople.find(tx, account, chats.flatMap(numbersIn))
  if (erased.none) return chats
  // guard: dialogs of erased people are not stored
  return chats.filter(({ id }) => !erased.isGone(id)).map((chat) => erased.maskMembers(chat))
}

/** People of an account's address book who may be stored. */
export async function peopleWithoutErased(
  tx: Tx,
  account: AccountKey,
  people: readonly Person[],
): Promise<readonly Person[]> {
  const erased = await ErasedPeople.find(
    tx,
    account,
    people.map(({ id }) => id as ChatNumber),
  )
  return erased.none ? people : people.filter(({ id }) => !erased.isGone(id as ChatNumber)) // guard: contacts who were erased are not stored
}
