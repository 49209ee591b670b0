/**
 * The people and groups that an account can write to. Telegram accepts a number only together with its access hash,
 * so each is kept forever: in memory during a session, and in the account's store. Their names are kept for updates that leave
 * them out. Nobody is found by them. Whose a name is now is said only by what Telegram has shown in this session within the hour,
 * and of a phone number, which is not kept, by the answer that has it.
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
/** As long as an answer about a name is believed before a first message. */
const shownMs = 3_600_000

export class Peers {
  readonly #store: AccountStore
  readonly #nowMs: () => number
  readonly #peers = new Map<ChatNumber, Peer>()
  /** By lower-case username: it belongs to the person who was last seen with it. */
  readonly #usernames = new Map<string, ChatNumber>()
  /** When Telegram last showed the names of a person in this session. */
  readonly #shownAt = new Map<ChatNumber, number>()
  #changed = new Set<ChatNumber>()

  private constructor(store: AccountStore, nowMs: () => number) {
    this.#store = store
    this.#nowMs = nowMs
  }

  /** `nowMs`: a clock that only goes forward. */
  static async load(store: AccountStore, nowMs = () => performance.now()): Promise<Peers> {
    const peers = new Peers(store, nowMs)
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
      if (isKept) this.#show(`${user.id}`, peerOf(user))
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
    this.#show(`${userId}`, { ...rest, name: fullName(firstName, lastName), ...(username && { username }) })
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
    const { name, username = null, kind = 'person' } = peer
    const person: Person = { id: number, name, username, phone: null, kind }
    const shownAt = this.#shownAt.get(number)
    const isShown = shownAt !== undefined && this.#nowMs() - shownAt < shownMs // guard: only a name that was shown is learned
    return isShown ? person : { ...person, username: null, stale: true }
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

  /** Telegram shows the person like this at this moment. */
  #show(number: ChatNumber, peer: Peer): void {
    this.#keep(number, peer)
    this.#shownAt.set(number, this.#nowMs())
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

  /** The person who had the name until now no longer shows it. What they are called instead is not known. */
  #take(name: string, number: ChatNumber): void {
    const former = this.#usernames.get(name)
    this.#usernames.set(name, number)
    const peer = former !== undefined && former !== number && this.#peers.get(former) // guard: a former owner does not show the name
    if (!peer) return
    this.#shownAt.delete(former) // guard: who lost a name may have another
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
