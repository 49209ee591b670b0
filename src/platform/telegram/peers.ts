/**
 * The people and groups that an account can write to. Telegram accepts a number only together with its access hash,
 * so each is kept forever: in memory during a session, and in the account's store.
 */
import type { tl } from '@mtcute/core'
import Long from 'long'
import type { ChatNumber } from '../../lib/shapes.ts'
import type { AccountStore, Person, StoredPeer } from '../port.ts'

interface Peer {
  readonly name: string
  /** A person's. Basic groups have none. */
  readonly hash?: string
  readonly username?: string
  /** Digits. */
  readonly phone?: string
  readonly kind?: 'bot' | 'deleted' | 'self'
}

const pageSize = 5_000

export class Peers {
  readonly #store: AccountStore
  readonly #peers = new Map<ChatNumber, Peer>()
  /** By lower-case username and by phone: a name belongs to the person who was last seen with it. */
  readonly #usernames = new Map<string, ChatNumber>()
  readonly #phones = new Map<string, ChatNumber>()
  #changed = new Set<ChatNumber>()

  private constructor(store: AccountStore) {
    this.#store = store
  }

  static async load(store: AccountStore): Promise<Peers> {
    const peers = new Peers(store)
    for (let after: ChatNumber | null = null; ; ) {
      const page: readonly StoredPeer[] = await store.listPeers({ after, limit: pageSize })
      for (const { number, text } of page) peers.#set(number, JSON.parse(text))
      after = page.at(-1)?.number ?? null
      if (page.length < pageSize) return peers
    }
  }

  /** Adds what came with an answer or an update. `min` users have no usable access hash. */
  learn({
    users = [],
    chats = [],
  }: {
    users?: readonly tl.TypeUser[]
    chats?: readonly tl.TypeChat[]
  }): void {
    for (const user of users) if (user._ === 'user' && !user.min) this.#keep(`${user.id}`, peerOf(user))
    for (const chat of chats) {
      if (chat._ === 'chat' && !chat.deactivated) this.#keep(`${-chat.id}`, { name: chat.title })
    }
  }

  rename({ userId, firstName, lastName, usernames }: tl.RawUpdateUserName): void {
    const known = this.#peers.get(`${userId}`)
    if (!known) return
    const { username: _, ...rest } = known
    const username = activeName(usernames)
    this.#keep(`${userId}`, { ...rest, name: fullName(firstName, lastName), ...(username && { username }) })
  }

  /** Stores the changes. The caller reports anything about these people only after this. */
  async save(): Promise<void> {
    if (this.#changed.size === 0) return
    const changed = this.#changed
    this.#changed = new Set()
    await this.#store.writePeers(
      [...changed].map((number) => ({ number, text: JSON.stringify(this.#peers.get(number)) })),
    )
  }

  has(number: ChatNumber): boolean {
    return this.#peers.has(number)
  }

  /** As Telegram expects it in a call. Undefined: no call can be made about this number. */
  findInput(number: ChatNumber): tl.TypeInputPeer | undefined {
    const peer = this.#peers.get(number)
    if (!peer) return undefined
    if (Number(number) < 0) return { _: 'inputPeerChat', chatId: -Number(number) }
    if (peer.hash === undefined) return undefined
    return { _: 'inputPeerUser', userId: Number(number), accessHash: Long.fromString(peer.hash) }
  }

  findPerson(number: ChatNumber): Person | undefined {
    const peer = this.#peers.get(number)
    if (!peer || Number(number) < 0) return undefined
    const { name, username, phone, kind } = peer
    return {
      id: number,
      name,
      username: username ?? null,
      phone: phone === undefined ? null : `+${phone}`,
      kind: kind ?? 'person',
    }
  }

  findByUsername(username: string): Person | undefined {
    const number = this.#usernames.get(username.toLowerCase())
    return number && this.findPerson(number)
  }

  findByPhone(digits: string): Person | undefined {
    const number = this.#phones.get(digits)
    return number && this.findPerson(number)
  }

  groupName(number: ChatNumber): string {
    return this.#peers.get(number)?.name ?? ''
  }

  #keep(number: ChatNumber, peer: Peer): void {
    const known = this.#peers.get(number)
    // A known phone number is kept when the next answer omits it.
    const kept = peer.phone === undefined && known?.phone ? { ...peer, phone: known.phone } : peer
    if (known && isSame(known, kept)) return
    this.#set(number, kept)
    this.#changed.add(number)
  }

  #set(number: ChatNumber, peer: Peer): void {
    const known = this.#peers.get(number)?.username?.toLowerCase()
    if (known !== undefined && this.#usernames.get(known) === number) this.#usernames.delete(known)
    this.#peers.set(number, peer)
    if (peer.username !== undefined) this.#usernames.set(peer.username.toLowerCase(), number)
    if (peer.phone !== undefined) this.#phones.set(peer.phone, number)
  }
}

function peerOf(user: tl.RawUser): Peer {
  const username = user.username ?? activeName(user.usernames ?? [])
  const kind = user.self ? 'self' : user.deleted ? 'deleted' : user.bot ? 'bot' : undefined
  return {
    name: fullName(user.firstName, user.lastName),
    ...(user.accessHash && { hash: user.accessHash.toString() }),
    ...(username && { username }),
    ...(user.phone && { phone: user.phone }),
    ...(kind && { kind }),
  }
}

function fullName(first: string | undefined, last: string | undefined): string {
  return [first, last].filter(Boolean).join(' ')
}

function activeName(usernames: readonly tl.TypeUsername[]): string | undefined {
  return usernames.find(({ active }) => active)?.username
}

function isSame(one: Peer, other: Peer): boolean {
  const fields = ['name', 'hash', 'username', 'phone', 'kind'] as const
  return fields.every((field) => one[field] === other[field])
}
