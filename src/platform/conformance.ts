/** What every adapter must do, whichever platform is behind it. Run by each adapter's own test. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectAccepted, Recorder, within } from './conformance-recorder.ts'
import type { AccountRef, Message, Platform, Session } from './port.ts'

/** A platform to test, and its other side: the people, and what goes wrong. */
export interface Fixture {
  readonly platform: Platform
  readonly others: OtherSide
  /** An account that may connect and has never done so. */
  newAccount(): Promise<Omit<AccountRef, 'position'>>
  close(): Promise<void>
}

export interface OtherSide {
  addPerson(person: { name: string; username?: string; behaviour?: 'silent' | 'blocks' }): Promise<number>
  addGroup(group: {
    account_id: string
    name: string
    username?: string
    members?: number[]
  }): Promise<number>
  write(message: { account_id: string; person_id: number; text: string }): Promise<number>
  read(mark: { account_id: string; person_id: number }): Promise<number>
  edit(edit: { account_id: string; person_id: number; message_id: number; text: string }): Promise<void>
  remove(message: { account_id: string; person_id: number; message_id: number }): Promise<void>
  /** Strikes once, at the given account only. */
  fault(fault: { on: string; fault: string; seconds?: number; account_id: string }): Promise<void>
  /** The texts of the account's accepted messages, in order. */
  sentTexts(account_id: string): Promise<string[]>
}

interface Scene {
  readonly account: Omit<AccountRef, 'position'>
  readonly account_id: string
  readonly person_id: number
  readonly chat_id: string
  readonly session: Session
  readonly recorder: Recorder
}

export function conformance(name: string, makeFixture: () => Promise<Fixture>): void {
  describe(name, () => {
    let fixture: Fixture
    const sessions: Session[] = []
    let people = 0

    beforeAll(async () => {
      fixture = await makeFixture()
    })
    afterAll(async () => {
      for (const session of sessions) await session.close()
      await fixture.close()
    })

    async function connect(account: Omit<AccountRef, 'position'>, recorder: Recorder): Promise<Session> {
      const { position } = recorder
      const session = expectAccepted(await fixture.platform.connect({ ...account, position }, recorder))
      sessions.push(session)
      return session
    }

    /** A connected account that knows one person. */
    async function setScene(): Promise<Scene> {
      const account = await fixture.newAccount()
      const username = `person_${++people}`
      const person_id = await fixture.others.addPerson({ name: `Person ${people}`, username })
      const recorder = new Recorder()
      const session = await connect(account, recorder)
      const person = expectAccepted(await session.resolve({ kind: 'username', value: username }))
      const chat = expectAccepted(await session.openChat(person.id))
      return { account, account_id: account.account_id, person_id, chat_id: chat.id, session, recorder }
    }

    let lastRandomId = 0n
    const nextRandomId = () => String(++lastRandomId - 2n ** 62n)
    const message = (scene: Scene, text: string) => ({
      chat_id: scene.chat_id,
      text,
      file: null,
      random_id: nextRandomId(),
    })

    describe('connect', () => {
      test('gives a live session of the account itself', async () => {
        const { session } = await setScene()
        expect(session.self.kind).toBe('self')
        expect(await session.ping()).toBe(true)
      })

      test('without a position begins from now on', async () => {
        const { account, account_id, person_id, session } = await setScene()
        await session.close()
        await fixture.others.write({ account_id, person_id, text: 'before' })
        const recorder = new Recorder()
        await connect(account, recorder)
        await fixture.others.write({ account_id, person_id, text: 'after' })
        await recorder.until(() => recorder.texts.includes('after'))
        expect(recorder.texts).toEqual(['after'])
      })

      test('from a position loses and repeats nothing', async () => {
        const scene = await setScene()
        const { account, account_id, person_id, recorder } = scene
        await fixture.others.write({ account_id, person_id, text: '0' })
        await recorder.until(() => recorder.texts.length === 1)
        let session = scene.session
        const expected = ['0']
        for (let round = 1; round <= 5; round++) {
          expected.push(`${round} while connected`, `${round} while away`)
          await fixture.others.write({ account_id, person_id, text: `${round} while connected` })
          await session.close()
          await fixture.others.write({ account_id, person_id, text: `${round} while away` })
          session = await connect(account, recorder)
        }
        await recorder.until(() => recorder.texts.length >= expected.length)
        expect(recorder.texts).toEqual(expected)
        expect(recorder.messages.every(({ live }) => live)).toBe(true)
      })

      test('a second time takes the account over', async () => {
        const { account, account_id, person_id, session, recorder } = await setScene()
        const second = new Recorder()
        const newer = await connect(account, second)
        expect(await within(2000, recorder.closedReason)).toMatchObject({ status: 'lost' })
        expect(await session.ping()).toBe(false)
        expect(await session.contacts()).toMatchObject({ kind: 'not_written' })
        expect(await newer.ping()).toBe(true)
        await fixture.others.write({ account_id, person_id, text: 'hello' })
        await second.until(() => second.texts.includes('hello'))
        expect(recorder.texts).toEqual([])
      })

      test('says when the platform refuses, is flooded or cannot be reached', async () => {
        const account = await fixture.newAccount()
        const { account_id } = account
        const attempt = () => fixture.platform.connect({ ...account, position: null }, new Recorder())
        await fixture.others.fault({ on: 'connect', fault: 'refuse', account_id })
        expect(await attempt()).toEqual({ kind: 'refused', reason: 'needs_login' })
        await fixture.others.fault({ on: 'connect', fault: 'flood_wait', seconds: 7, account_id })
        expect(await attempt()).toEqual({ kind: 'flood_wait', retry_after_seconds: 7 })
        await fixture.others.fault({ on: 'connect', fault: 'unavailable', account_id })
        expect(await attempt()).toMatchObject({ kind: 'not_written' })
      })
    })

    describe('close', () => {
      test('ends every call with not_written and is not reported as a loss', async () => {
        const scene = await setScene()
        const { session, recorder, chat_id } = scene
        await session.close()
        await session.close()
        expect(await session.send(message(scene, 'too late'))).toMatchObject({ kind: 'not_written' })
        expect(await session.history({ chat_id, before: null, limit: 10 })).toMatchObject({
          kind: 'not_written',
        })
        expect(await session.setReadState(chat_id, false)).toMatchObject({ kind: 'not_written' })
        expect(await session.ping()).toBe(false)
        expect(recorder.closedWith).toBeNull()
        expect(await fixture.others.sentTexts(scene.account_id)).toEqual([])
      })

      test('leaves what was in flight unknown', async () => {
        const scene = await setScene()
        const { account_id, session } = scene
        await fixture.others.fault({ on: 'send', fault: 'timeout_after', account_id })
        const sending = session.send(message(scene, 'did it arrive?'))
        await expect.poll(() => fixture.others.sentTexts(account_id)).toEqual(['did it arrive?'])
        await session.close()
        expect(await within(2000, sending)).toMatchObject({ kind: 'unknown' })
      })
    })

    describe('resolve', () => {
      test('finds a username in any case, and says who it is', async () => {
        const { session } = await setScene()
        const id = String(await fixture.others.addPerson({ name: 'Ada', username: `Ada_${++people}` }))
        for (const value of [`Ada_${people}`, `aDA_${people}`]) {
          const person = expectAccepted(await session.resolve({ kind: 'username', value }))
          expect(person).toMatchObject({ id, name: 'Ada', kind: 'person', username: `Ada_${people}` })
        }
      })

      test('tells bots and ourselves from people', async () => {
        const { session } = await setScene()
        const bot = `helper_${++people}_bot`
        await fixture.others.addPerson({ name: 'Helper', username: bot })
        expect(expectAccepted(await session.resolve({ kind: 'username', value: bot })).kind).toBe('bot')
        const value = session.self.username ?? ''
        expect(expectAccepted(await session.resolve({ kind: 'username', value })).kind).toBe('self')
      })

      test('refuses what is nobody', async () => {
        const { account_id, session } = await setScene()
        const username = `public_group_${++people}`
        await fixture.others.addGroup({ account_id, name: 'Public', username })
        const resolve = (value: string) => session.resolve({ kind: 'username', value })
        expect(await resolve(username)).toEqual({ kind: 'refused', reason: 'identity_ineligible' })
        expect(await resolve('nobody_at_all')).toEqual({ kind: 'refused', reason: 'username_not_found' })
      })
    })

    describe('openChat', () => {
      test('gives the private chat, the same each time', async () => {
        const { person_id, session, chat_id } = await setScene()
        const chat = expectAccepted(await session.openChat(String(person_id)))
        expect(chat).toMatchObject({ id: chat_id, kind: 'private', unread_count: 0 })
        expect(chat.participants.map(({ kind }) => kind).sort()).toEqual(['person', 'self'])
      })
    })

    describe('send', () => {
      test('accepts a text, and shows it with its random id', async () => {
        const scene = await setScene()
        const { session, recorder, account_id, chat_id } = scene
        const submission = message(scene, 'Hello 👋 – “ünïcode”\nand a second line')
        const { message_id } = expectAccepted(await session.send(submission))
        await recorder.until(() => recorder.of('sent').length === 1)
        const { random_id, text } = submission
        expect(recorder.of('sent')[0]).toMatchObject({ random_id, chat_id, message_id })
        await recorder.until(() => recorder.messages.length === 1)
        expect(recorder.messages[0]?.message).toMatchObject({
          id: message_id,
          text,
          is_sender: true,
          random_id,
        })
        expect(await fixture.others.sentTexts(account_id)).toEqual([text])
      })

      test('accepts one file, and its handle once', async () => {
        const scene = await setScene()
        const { session, recorder } = scene
        const attachment = { file_name: 'offer.pdf', media_type: 'application/pdf', size: 700_000 }
        const chunks = async function* () {
          for (let n = 0; n < 7; n++) yield new Uint8Array(100_000).fill(n)
        }
        const file = expectAccepted(await session.upload({ ...attachment, chunks: chunks() }))
        expectAccepted(await session.send({ ...message(scene, ''), file }))
        await recorder.until(() => recorder.messages.length === 1)
        expect(recorder.messages[0]?.message.attachments).toEqual([attachment])
        expect(await session.send({ ...message(scene, ''), file })).not.toMatchObject({ kind: 'accepted' })
      })

      test('surfaces refusals and flood waits, and nothing is sent', async () => {
        const scene = await setScene()
        const { session, account_id } = scene
        await fixture.others.fault({ on: 'send', fault: 'flood_wait', seconds: 17, account_id })
        expect(await session.send(message(scene, 'a'))).toEqual({
          kind: 'flood_wait',
          retry_after_seconds: 17,
        })
        await fixture.others.fault({ on: 'send', fault: 'refuse', account_id })
        expect(await session.send(message(scene, 'b'))).toMatchObject({ kind: 'refused' })
        const username = `blocker_${++people}`
        const blocker = await fixture.others.addPerson({ name: 'Blocker', username, behaviour: 'blocks' })
        expectAccepted(await session.resolve({ kind: 'username', value: username }))
        const outcome = await session.send({ ...message(scene, 'c'), chat_id: String(blocker) })
        expect(outcome).toEqual({ kind: 'refused', reason: 'blocked_by_person' })
        expect(await fixture.others.sentTexts(account_id)).toEqual([])
      })

      test('is unknown when the platform answers with an error', async () => {
        const scene = await setScene()
        await fixture.others.fault({ on: 'send', fault: 'unavailable', account_id: scene.account_id })
        expect(await scene.session.send(message(scene, 'a'))).toMatchObject({ kind: 'unknown' })
      })

      test('is unknown when the connection is lost, and the next session shows what became of it', async () => {
        const scene = await setScene()
        const { account, account_id, session, recorder } = scene
        await fixture.others.write({ account_id, person_id: scene.person_id, text: 'hello' })
        await recorder.until(() => recorder.position !== null)
        await fixture.others.fault({ on: 'send', fault: 'drop_after', account_id })
        const submission = message(scene, 'cut off')
        expect(await session.send(submission)).toMatchObject({ kind: 'unknown' })
        expect(await within(2000, recorder.closedReason)).toMatchObject({ status: 'lost' })
        expect(await session.send(message(scene, 'after'))).toMatchObject({ kind: 'not_written' })
        expect(await fixture.others.sentTexts(account_id)).toEqual(['cut off'])
        expect(recorder.sentIds).toEqual([])
        const next = recorder.continued()
        await connect(account, next)
        await next.until(() => next.sentIds.length > 0)
        expect(next.sentIds).toEqual([submission.random_id])
      })

      test('is submitted once even when nothing ever answers', async () => {
        const scene = await setScene()
        const { account_id, session } = scene
        await fixture.others.fault({ on: 'send', fault: 'timeout_before', account_id })
        const never = session.send(message(scene, 'lost on the way'))
        expectAccepted(await session.send(message(scene, 'the next')))
        await session.close()
        expect(await never).toMatchObject({ kind: 'unknown' })
        expect(await fixture.others.sentTexts(account_id)).toEqual(['the next'])
      })
    })

    describe('history', () => {
      test('comes newest first, in pages, and marks nothing read', async () => {
        const { account_id, person_id, session, chat_id } = await setScene()
        for (let n = 1; n <= 7; n++) await fixture.others.write({ account_id, person_id, text: `${n}` })
        const seen: Message[] = []
        for (let page = 0; page < 4; page++) {
          const last = seen.at(-1)
          const before = last ? { message_id: last.id } : null
          seen.push(...expectAccepted(await session.history({ chat_id, before, limit: 3 })))
        }
        expect(seen.map(({ text }) => text)).toEqual(['7', '6', '5', '4', '3', '2', '1'])
        const { chats } = expectAccepted(await session.chats({ after: null, limit: 10 }))
        expect(chats.find(({ id }) => id === chat_id)?.unread_count).toBe(7)
      })

      test('of a chat the account does not have is refused', async () => {
        const { session } = await setScene()
        const outcome = await session.history({ chat_id: '999999', before: null, limit: 3 })
        expect(outcome).toEqual({ kind: 'refused', reason: 'chat_unavailable' })
      })
    })

    describe('chats and contacts', () => {
      test('list every chat once, most recent first', async () => {
        const { account_id, session } = await setScene()
        const ids: string[] = []
        for (let n = 0; n < 5; n++) {
          const person_id = await fixture.others.addPerson({ name: `Writer ${n}` })
          await fixture.others.write({ account_id, person_id, text: 'hi' })
          ids.unshift(String(person_id))
        }
        const seen: string[] = []
        let after: string | null = null
        do {
          const page: { chats: readonly { id: string }[]; next: string | null } = expectAccepted(
            await session.chats({ after, limit: 2 }),
          )
          seen.push(...page.chats.map(({ id }) => id))
          after = page.next
        } while (after !== null)
        expect(new Set(seen).size).toBe(6)
        expect(seen.slice(0, 5).sort()).toEqual([...ids].sort())
        const contacts = expectAccepted(await session.contacts())
        expect(contacts.map(({ id }) => id)).toEqual(expect.arrayContaining(ids))
      })

      test('a group has a negative id and its members', async () => {
        const { account_id, person_id, session } = await setScene()
        const id = await fixture.others.addGroup({ account_id, name: 'Team', members: [person_id] })
        expect(id).toBeLessThan(0)
        const { chats } = expectAccepted(await session.chats({ after: null, limit: 10 }))
        const group = chats.find((chat) => chat.id === String(id))
        expect(group).toMatchObject({ kind: 'group', name: 'Team' })
        expect(group?.participants.map((person) => person.id)).toContain(String(person_id))
      })
    })

    describe('setReadState', () => {
      test('marks read and unread, and says so in the stream', async () => {
        const { account_id, person_id, session, recorder, chat_id } = await setScene()
        for (let n = 1; n <= 3; n++) await fixture.others.write({ account_id, person_id, text: `${n}` })
        expect(expectAccepted(await session.setReadState(chat_id, false))).toEqual({ unread_count: 0 })
        const marked = expectAccepted(await session.setReadState(chat_id, true))
        expect(marked.unread_count).toBeGreaterThan(0)
        await recorder.until(() => recorder.of('unread').length === 2)
        const counts = recorder.of('unread').map(({ unread_count }) => unread_count)
        expect(counts).toEqual([0, marked.unread_count])
      })
    })

    describe('updates', () => {
      test('tell of messages, edits, deletions and reading, in order', async () => {
        const scene = await setScene()
        const { account_id, person_id, session, recorder, chat_id } = scene
        const { message_id: ours } = expectAccepted(await session.send(message(scene, 'offer')))
        const theirs = await fixture.others.write({ account_id, person_id, text: 'typo' })
        await fixture.others.read({ account_id, person_id })
        await fixture.others.edit({ account_id, person_id, message_id: theirs, text: 'no typo' })
        await fixture.others.remove({ account_id, person_id, message_id: theirs })
        await recorder.until(() => recorder.of('deleted').length === 1)
        const incoming = recorder.messages.find((update) => !update.message.is_sender)
        expect(incoming).toMatchObject({
          live: true,
          chat: { id: chat_id, kind: 'private', unread_count: 1 },
          message: { id: String(theirs), text: 'typo', sender_id: String(person_id), edited_at: null },
        })
        expect(recorder.of('read_by_them')).toMatchObject([{ chat_id, up_to_message_id: ours }])
        const [edited] = recorder.of('edited')
        expect(edited).toMatchObject({ chat_id, message: { id: String(theirs), text: 'no typo' } })
        expect(edited?.message.edited_at).not.toBeNull()
        expect(recorder.of('deleted')[0]?.message_ids).toEqual([String(theirs)])
      })

      test('wait until the batch before has been taken', async () => {
        const { account_id, person_id, recorder } = await setScene()
        const release = recorder.hold()
        const expected = Array.from({ length: 250 }, (_, n) => `${n}`)
        for (const text of expected) await fixture.others.write({ account_id, person_id, text })
        await recorder.until(() => recorder.handed > 0)
        await new Promise((resolve) => setTimeout(resolve, 50))
        expect(recorder.handed).toBe(1)
        release()
        await recorder.until(() => recorder.texts.length >= expected.length)
        expect(recorder.texts).toEqual(expected)
        expect(recorder.concurrentMax).toBe(1)
      })

      test('that the listener cannot take end the session, and come again in the next', async () => {
        const { account, account_id, person_id, recorder } = await setScene()
        await fixture.others.write({ account_id, person_id, text: 'first' })
        await recorder.until(() => recorder.texts.length === 1)
        recorder.fail()
        await fixture.others.write({ account_id, person_id, text: 'second' })
        expect(await within(2000, recorder.closedReason)).toMatchObject({ status: 'lost' })
        const next = recorder.continued()
        await connect(account, next)
        await next.until(() => next.texts.length === 1)
        expect(next.texts).toEqual(['second'])
      })
    })

    describe('a frozen connection', () => {
      test('is not live, holds its updates, and goes on afterwards', async () => {
        const { account_id, person_id, session, recorder, chat_id } = await setScene()
        await fixture.others.fault({ on: 'history', fault: 'freeze', seconds: 0.6, account_id })
        const page = session.history({ chat_id, before: null, limit: 1 })
        await new Promise((resolve) => setTimeout(resolve, 50))
        await fixture.others.write({ account_id, person_id, text: 'anybody there?' })
        const ping = session.ping()
        expect(await within(300, ping).catch(() => 'silent')).toBe('silent')
        expect(recorder.texts).toEqual([])
        expect(await within(3000, ping)).toBe(true)
        expectAccepted(await within(3000, page))
        await recorder.until(() => recorder.texts.includes('anybody there?'))
        expect(recorder.closedWith).toBeNull()
      })
    })
  })
}
