/** The set-up of the conformance suite: the platform under test, its other side, and accounts that know people. */

import type { AccountRef, Chat, Platform, Session, Submission } from '../../src/platform/port.ts'
import { expectAccepted, Recorder } from './conformance-recorder.ts'

/** A platform to test, and its other side: the people, and the faults. */
export interface Fixture {
  readonly platform: Platform
  readonly others: OtherSide
  /** Whether updates carry unread counts, and groups their members. Otherwise both are null. */
  readonly showsCounts: boolean
  /** The longest text next to a file; null if the platform sets no limit of its own. */
  readonly captionLengthMax: number | null
  /** A position of which the platform no longer has the updates. */
  readonly lostPosition: string
  /** An account that may connect and has never done so. */
  newAccount(): Promise<Omit<AccountRef, 'position'>>
  close(): Promise<void>
}

export interface OtherSide {
  addPerson(person: {
    name: string
    username?: string
    phone?: string
    phone_visible_to?: string[]
    behaviour?: 'silent' | 'blocks'
  }): Promise<number>
  addGroup(group: {
    account_id: string
    name: string
    username?: string
    members?: number[]
  }): Promise<number>
  write(message: { account_id: string; person_id: number; text?: string; file?: SentFile }): Promise<number>
  read(mark: { account_id: string; person_id: number }): Promise<number>
  edit(edit: {
    account_id: string
    person_id: number
    message_id: number
    text: string
    file?: SentFile
  }): Promise<void>
  remove(message: { account_id: string; person_id: number; message_id: number }): Promise<void>
  /** Takes effect once, for the given account only. */
  fault(fault: { on: string; fault: string; seconds?: number; account_id: string }): Promise<void>
  /** The texts of the account's accepted messages, in order. */
  sentTexts(account_id: string): Promise<string[]>
}

/** A file of `size` bytes that follow from its seed, or of the bytes given in base64. */
export interface SentFile {
  kind?: 'photo' | 'voice' | 'video' | 'sticker' | 'file'
  file_name?: string
  media_type?: string
  size?: number
  seed?: number
  data?: string
  width?: number
  height?: number
  seconds?: number
  timer_seconds?: number
  dc?: number
}

export interface Scene {
  readonly account: Omit<AccountRef, 'position'>
  readonly account_id: string
  readonly person_id: number
  readonly chat_id: Chat['id']
  readonly session: Session
  readonly recorder: Recorder
}

export class Stage {
  readonly platform: Platform
  readonly others: OtherSide
  readonly fixture: Fixture
  readonly #sessions: Session[] = []
  #number = 0

  constructor(fixture: Fixture) {
    this.fixture = fixture
    this.platform = fixture.platform
    this.others = fixture.others
  }

  newAccount(): Promise<Omit<AccountRef, 'position'>> {
    return this.fixture.newAccount()
  }

  /** A number for names that no other test uses. */
  nextNumber(): number {
    return ++this.#number
  }

  /** Continues where the recorder's last session ended. */
  async connect(account: Omit<AccountRef, 'position'>, recorder: Recorder): Promise<Session> {
    const { position } = recorder
    const session = expectAccepted(await this.platform.connect({ ...account, position }, recorder))
    this.#sessions.push(session)
    return session
  }

  /** A connected account that knows one person. */
  async setScene(): Promise<Scene> {
    const account = await this.newAccount()
    const n = this.nextNumber()
    const username = `person_${n}`
    const person_id = await this.others.addPerson({ name: `Person ${n}`, username })
    const recorder = new Recorder()
    const session = await this.connect(account, recorder)
    const person = expectAccepted(await session.resolve({ kind: 'username', value: username }))
    const chat = expectAccepted(await session.openChat(person.id))
    return { account, account_id: account.account_id, person_id, chat_id: chat.id, session, recorder }
  }

  async close(): Promise<void> {
    for (const session of this.#sessions) await session.close()
    await this.fixture.close()
  }
}

let lastRandomId = -(2n ** 62n)

/** A text for the scene's person, with its own random id. */
export function messageIn({ chat_id }: Scene, text: string): Submission {
  return { chat_id, text, file: null, random_id: String(++lastRandomId) }
}
