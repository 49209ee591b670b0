/**
 * The people and groups that an account can write to. Telegram accepts a number only together with its access hash,
 * so each is kept forever: in memory during a session, and in the account's store. Their names are kept for updates that leave
 * them out. Nobody is found by them, and a phone number is not kept: only an answer that has it says that it is theirs.
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
  readonly kind?: 'bot' | 'deleted' | 'self'
}

/** What can be shown of people and groups. */
export type KnownPeople = Pick<Peers, 'findPerson' | 'groupName'>

/** Telegram's service chat: it brings login codes as ordinary messages, so nothing of it is shown or kept. */
export const serviceUserId = 777_000

const pageSize = 5_000

export class Peers {
  readonly #store: AccountStore
  readonly #peers = new Map<ChatNumber, Peer>()
  /** By lower-case username: it belongs to the person who was last seen with it. */
  readonly #usernames = new Map<string, ChatNumber>()
  #changed = new Set<ChatNumber>()

  private constructor(store: AccountStore) {
    this.#store = store
  }

  static async load(store: AccountStore): Promise<Peers> {
    const peers = new Peers(store)
    for (let after: ChatNumber | null = null; ; ) {
      const page: readonly StoredPeer[] = await store.listPeers({ after, limit: pageSize })
      for (const { number, text } of page) peers.#set(number, readPeer(text))
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
    for (const user of users) {
      const isKept = user._ === 'user' && !user.min && user.id !== serviceUserId // guard: the service user is not kept
      if (isKept) this.#keep(`${user.id}`, peerOf(user))
    }
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
    const { name, username, kind } = peer
    return { id: number, name, username: username ?? null, phone: null, kind: kind ?? 'person' }
  }

  /** The same people, with the phone numbers that this answer shows. */
  with(users: readonly tl.TypeUser[]): KnownPeople {
    const shown = new Map(
      users.flatMap((user) => (user._ === 'user' && user.phone ? [[`${user.id}`, user.phone]] : [])),
    )
    return {
      groupName: (number) => this.groupName(number),
      findPerson: (number) => {
        const person = this.findPerson(number)
        const phone = shown.get(number)
        return person && phone !== undefined ? { ...person, phone: `+${phone}` } : person
      },
    }
  }

  groupName(number: ChatNumber): string {
    return this.#peers.get(number)?.name ?? ''
  }

  #keep(number: ChatNumber, peer: Peer): void {
    const known = this.#peers.get(number)
    if (known && isSame(known, peer)) return
    this.#set(number, peer)
    this.#changed.add(number)
  }

  #set(number: ChatNumber, peer: Peer): void {
    const known = this.#peers.get(number)?.username?.toLowerCase()
    if (known !== undefined && this.#usernames.get(known) === number) this.#usernames.delete(known)
    this.#peers.set(number, peer)
    if (peer.username !== undefined) this.#take(peer.username.toLowerCase(), number)
  }

  /** The person who had the name until now no longer shows it. */
  #take(name: string, number: ChatNumber): void {
    const former = this.#usernames.get(name)
    this.#usernames.set(name, number)
    const peer = former !== undefined && former !== number && this.#peers.get(former) // guard: a former owner does not show the name
    if (!peer) return
    const { username, ...rest } = peer
    this.#peers.set(former, {
      ...rest,
      ...(username !== undefined && username.toLowerCase() !== name && { username }),
    })
    this.#changed.add(former)
  }
}

/** What a release before this one stored has a phone number. */
function readPeer(text: string): Peer {
  const { phone: _, ...peer } = JSON.parse(text) as Peer & { readonly phone?: string }
  return peer
}

function peerOf(user: tl.RawUser): Peer {
  const username = user.username ?? activeName(user.usernames ?? [])
  const kind = user.self ? 'self' : user.deleted ? 'deleted' : user.bot ? 'bot' : undefined
  return {
    name: fullName(user.firstName, user.lastName),
    ...(user.accessHash && { hash: user.accessHash.toString() }),
    ...(username && { username }),
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
  const fields = ['name', 'hash', 'username', 'kind'] as const
  return fields.every((field) => one[field] === other[field])
}
