/**
 * One sandbox world: its people, accounts and chats, its due acts, and its log. `account-acts.ts` and `person-acts.ts` hold what
 * accounts and people do; every change goes through `commit`.
 */
import { ApiError } from '../../lib/errors.ts'
import { apply } from './apply.ts'
import type { Delivery, Entry, FloodRule, JournalEntry } from './entries.ts'
import { type Fault, type FaultQuestion, findFault, makeFault, type NewFault } from './faults.ts'
import { type Log, memoryLog, openLog } from './log.ts'
import {
  answerOf,
  changed,
  digitsOf,
  makePerson,
  type NewPerson,
  type PersonChange,
  type WorldPerson,
} from './people.ts'
import { type Account, type Due, type Happening, State } from './state.ts'
import { type Clock, systemClock } from './world-clock.ts'

interface WorldOptions {
  /** Null keeps the world in memory only. */
  readonly data_dir: string | null
  readonly seed?: number
  readonly clock?: Clock
  /** Whether to accept each random id of an account once, and answer repeats with the first message. */
  readonly dedupe?: boolean
}

/** The one session an account has at a time, as the world sees it. */
interface Occupant {
  /** The account's stream may have something new. */
  wake(): void
  /** Another session has taken the account over. */
  evict(reason: string): void
}

interface NewAccount {
  readonly account_id: string
  readonly name: string
  readonly username?: string | undefined
  readonly phone?: string | undefined
}

interface NewGroup {
  readonly account_id: string
  readonly name: string
  readonly username?: string | undefined
  readonly members?: readonly number[] | undefined
}

/** A message of the past, from either side. No person reacts to it and no session gets an update. */
interface SeedMessage {
  readonly account_id: string
  readonly chat_id: number
  /** Null: the account wrote it. */
  readonly person_id: number | null
  readonly text: string
  readonly at: Date
  /** Whether the other side has read it; true by default. */
  readonly read?: boolean
}

export function openWorld(options: WorldOptions): World {
  const state = new State()
  const log =
    options.data_dir === null
      ? memoryLog
      : openLog(options.data_dir, (entry) => {
          // Only `commit` writes the log, so a line that parses is an entry.
          apply(state, entry as Entry)
        })
  const { seed = 1, clock = systemClock, dedupe = false } = options
  return new World({ state, log, seed, clock, dedupe })
}

export class World {
  readonly state: State
  readonly seed: number
  readonly clock: Clock
  readonly dedupe: boolean
  /** Called when the first due time may have changed. */
  onDueChanged: (() => void) | null = null
  /** Called after each entry, but not for those of the log that a start reads. */
  onCommitted: ((entry: Entry) => void) | null = null
  readonly #log: Log
  /** By account, then by device. */
  readonly #occupants = new Map<string, Map<string, Occupant>>()
  #unsynced: Promise<void> | null = null

  constructor(parts: { state: State; log: Log; seed: number; clock: Clock; dedupe: boolean }) {
    this.state = parts.state
    this.#log = parts.log
    this.seed = parts.seed
    this.clock = parts.clock
    this.dedupe = parts.dedupe
  }

  /** Writes the entry to the log, applies it, then wakes the sessions concerned. */
  commit(entry: Entry): void {
    const dueBefore = this.state.dues[0]
    this.#log.append(entry)
    apply(this.state, entry)
    if ('seq' in entry) this.#startSync()
    if (this.state.dues[0] !== dueBefore) this.onDueChanged?.()
    if ('account_id' in entry) this.#wake(entry.account_id)
    this.onCommitted?.(entry)
  }

  /** Resolves when the whole journal is on the disk. No session gets an answer to an accepted call before that. */
  async durable(): Promise<void> {
    await this.#unsynced
  }

  #startSync(): void {
    const sync = this.#log.sync()
    this.#unsynced = sync
    const done = () => {
      if (this.#unsynced === sync) this.#unsynced = null
    }
    // A failure rejects the callers that wait in `durable`, and every later one.
    sync.then(done, () => {})
  }

  nowText(): string {
    return this.clock.now().toISOString()
  }

  addPerson(given: NewPerson, person_id = this.state.last_person_id + 1): WorldPerson {
    if (given.username !== undefined) this.#requireFreeUsername(given.username)
    const person = makePerson(person_id, given)
    this.commit({ entry: 'person', person })
    return person
  }

  /** A username or phone number that somebody else has passes to this person at once. */
  changePerson(person_id: number, change: PersonChange): WorldPerson {
    const before = this.requirePerson(person_id)
    const person = changed(before, change)
    const former = new Map<number, WorldPerson>()
    const takeFrom = (holder: number | undefined, lost: PersonChange) => {
      if (holder === undefined || holder === person_id) return
      former.set(holder, changed(former.get(holder) ?? this.requirePerson(holder), lost))
    }
    const { usernames, phones } = this.state
    if (person.username !== null) takeFrom(usernames.get(person.username.toLowerCase()), { username: null })
    if (person.phone !== null) takeFrom(phones.get(digitsOf(person.phone)), { phone: null })
    this.commit({ entry: 'person_changed', person, former: [...former.values()] })
    for (const account_id of this.#occupants.keys()) this.#wake(account_id)
    return person
  }

  /** The account in this world; the first call creates it. */
  addAccount({ account_id, name, username, phone }: NewAccount): Account {
    const known = this.state.accounts.get(account_id)
    if (known) return known
    if (username !== undefined) this.#requireFreeUsername(username)
    if (phone !== undefined) this.#requireFreePhone(phone)
    const person = makePerson(this.state.last_person_id + 1, {
      name,
      phone,
      username: username ?? this.#freeUsername(name),
      kind: 'person',
    })
    this.commit({ entry: 'account', account_id, person })
    return this.requireAccount(account_id)
  }

  /** The account that logs in with this phone number. */
  findAccountByPhone(phone: string): Account | undefined {
    const person_id = this.state.phones.get(digitsOf(phone))
    const account_id = person_id === undefined ? undefined : this.state.account_of_person.get(person_id)
    return account_id === undefined ? undefined : this.state.accounts.get(account_id)
  }

  addGroup({ account_id, name, username, members }: NewGroup): number {
    this.requireAccount(account_id)
    if (username !== undefined) this.#requireFreeUsername(username)
    for (const person_id of members ?? []) this.requirePerson(person_id)
    const chat_id = this.state.last_group_id - 1
    this.commit({
      entry: 'group',
      account_id,
      chat_id,
      name,
      username: username ?? null,
      members: [...new Set(members)],
    })
    return chat_id
  }

  seedMessage({ account_id, chat_id, person_id, text, at, read }: SeedMessage): number {
    const message_id = this.requireAccount(account_id).last_message_id + 1
    this.requireChat(account_id, chat_id)
    if (person_id !== null) this.requirePerson(person_id)
    const entry = { entry: 'seeded', account_id, chat_id, message_id, person_id, text } as const
    this.commit({ ...entry, read: read ?? true, at: at.toISOString() })
    return message_id
  }

  setFloodRule(account_id: string, rule: FloodRule | null): void {
    this.requireAccount(account_id)
    this.commit({ entry: 'flood_rule', account_id, rule })
  }

  addFault(given: NewFault): Fault {
    const fault = makeFault(this.state.last_fault_id + 1, given)
    this.commit({ entry: 'fault', fault })
    return fault
  }

  clearFaults(): void {
    this.commit({ entry: 'faults_cleared' })
  }

  /** The fault that takes effect here, and uses up one of its times. */
  takeFault(question: FaultQuestion): Fault | undefined {
    const fault = findFault(this.state.faults, question)
    if (fault && fault.times > 0) this.commit({ entry: 'fault_used', fault_id: fault.fault_id })
    return fault
  }

  /** How the next update will enter the account's stream. */
  takeDelivery(account_id: string): { delivery?: Delivery } {
    const fault = this.takeFault({ on: 'updates', account_id, stream: true })
    if (!fault) return {}
    if (fault.fault === 'twice') return { delivery: { twice: true } }
    const late = new Date(this.clock.now().getTime() + fault.seconds * 1000)
    return { delivery: { late_until: late.toISOString() } }
  }

  /** Everything the platform accepted, in order, after the entry with this number. */
  journal(after: number): readonly JournalEntry[] {
    return this.state.journal.slice(after)
  }

  counts(): { people: number; accounts: number; messages: number; journal: number; due: number } {
    const { people, accounts, journal, dues } = this.state
    let messages = 0
    for (const account of accounts.values()) messages += account.chat_of_message.size
    return {
      people: people.size,
      accounts: accounts.size,
      messages,
      journal: journal.length,
      due: dues.length,
    }
  }

  nextDueAt(): Date | null {
    const due = this.state.dues[0]
    return due ? new Date(due.at) : null
  }

  /** Does everything due by now, in order, each at its own time. */
  runDue(now: Date): void {
    const until = now.toISOString()
    for (let due = this.state.dues[0]; due && due.at <= until; due = this.state.dues[0]) this.#run(due)
  }

  #run({ due_id, account_id, at, act }: Due): void {
    // A timer may be late, but a reaction never carries a time before the message it reacts to.
    const { last_at, last_message_id } = this.requireAccount(account_id)
    const when = last_at > at && last_at <= this.nowText() ? last_at : at
    if (act.kind === 'stream') {
      this.commit({ entry: 'streamed', due_id })
      this.#wake(account_id)
      return
    }
    const common = { account_id, chat_id: act.chat_id, at: when, due_id, ...this.takeDelivery(account_id) }
    if (act.kind === 'read') {
      this.commit({ entry: 'read_by_them', up_to_message_id: act.message_id, ...common })
      return
    }
    const person = this.requirePerson(act.person_id)
    const text = answerOf(person, this.seed, due_id)
    const message_id = last_message_id + 1
    this.commit({ entry: 'written', message_id, person_id: person.person_id, text, ...common })
  }

  /** The happenings after a position, oldest first; none if this world has not reached it. */
  streamAfter(account_id: string, position: number, limit: number): readonly Happening[] {
    return this.requireAccount(account_id).stream.slice(position, position + limit)
  }

  /**
   * Makes this the only session of the account's device, and ends the former one. An account of the sandbox has one device. Call
   * the returned function to give it up.
   */
  occupy(account_id: string, occupant: Occupant, device = ''): () => void {
    const devices = this.#occupants.get(account_id) ?? new Map<string, Occupant>()
    this.#occupants.set(account_id, devices)
    const former = devices.get(device)
    devices.set(device, occupant)
    former?.evict('The account was connected from elsewhere.')
    return () => {
      if (devices.get(device) === occupant) devices.delete(device)
    }
  }

  #wake(account_id: string): void {
    for (const occupant of this.#occupants.get(account_id)?.values() ?? []) occupant.wake()
  }

  requireAccount(account_id: string): Account {
    const account = this.state.accounts.get(account_id)
    if (!account) throw new ApiError('not_found', { detail: 'The sandbox has no such account.' })
    return account
  }

  requirePerson(person_id: number): WorldPerson {
    const person = this.state.people.get(person_id)
    if (!person) throw new ApiError('not_found', { detail: 'The sandbox has no such person.' })
    return person
  }

  /** Accepts a group of this account, or any person. */
  requireChat(account_id: string, chat_id: number): void {
    if (chat_id > 0) this.requirePerson(chat_id)
    else if (this.state.groups.get(chat_id)?.account_id !== account_id) {
      throw new ApiError('not_found', { detail: 'The account has no such group.' })
    }
  }

  async close(): Promise<void> {
    for (const devices of this.#occupants.values()) {
      for (const occupant of devices.values()) occupant.evict('The sandbox is closing.')
    }
    await this.#log.close()
  }

  #requireFreeUsername(username: string): void {
    if (this.state.usernames.has(username.toLowerCase())) {
      throw new ApiError('invalid_request', { detail: `The username ${username} is taken.` })
    }
  }

  #requireFreePhone(phone: string): void {
    if (this.state.phones.has(digitsOf(phone))) {
      throw new ApiError('invalid_request', { detail: `The phone number ${phone} is taken.` })
    }
  }

  #freeUsername(name: string): string {
    const word = name
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '_')
      .replace(/^[_0-9]+|_+$/g, '')
      .slice(0, 20)
    const stem = word.length < 5 ? `${word || 'the'}_account` : word
    for (let n = 1; ; n++) {
      const username = n === 1 ? stem : `${stem}_${n}`
      if (!this.state.usernames.has(username)) return username
    }
  }
}
