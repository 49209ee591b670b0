/** The conformance suite on the life cycle of a session, and on look-ups. */
import { describe, expect, test } from 'vitest'
import { expectAccepted, Recorder, within } from './conformance-recorder.ts'
import { messageIn, type Stage } from './conformance-stage.ts'

export function sessionsConform(stage: () => Stage): void {
  describe('connect', () => {
    test('returns a live session of the account itself', async () => {
      const { session } = await stage().setScene()
      expect(session.self.kind).toBe('self')
      expect(await session.ping()).toBe(true)
    })

    test('without a position starts from now on', async () => {
      const { account, account_id, person_id, session } = await stage().setScene()
      await session.close()
      await stage().others.write({ account_id, person_id, text: 'before' })
      const recorder = new Recorder()
      await stage().connect(account, recorder)
      await stage().others.write({ account_id, person_id, text: 'after' })
      await recorder.until(() => recorder.texts.includes('after'))
      expect(recorder.texts).toEqual(['after'])
    })

    test('without a position reports where it starts, so that nothing after that is lost', async () => {
      const account = await stage().newAccount()
      const recorder = new Recorder()
      const session = await stage().connect(account, recorder)
      const person_id = await stage().others.addPerson({ name: 'Ada' })
      await recorder.until(() => recorder.position !== null)
      await session.close()
      await stage().others.write({ account_id: account.account_id, person_id, text: 'while away' })
      await stage().connect(account, recorder)
      await recorder.until(() => recorder.texts.length === 1)
      expect(recorder.texts).toEqual(['while away'])
    })

    test('from a position loses and repeats nothing', async () => {
      const scene = await stage().setScene()
      const { account, account_id, person_id, recorder } = scene
      await stage().others.write({ account_id, person_id, text: '0' })
      await recorder.until(() => recorder.texts.length === 1)
      let session = scene.session
      const expected = ['0']
      for (let round = 1; round <= 5; round++) {
        expected.push(`${round} while connected`, `${round} while away`)
        await stage().others.write({ account_id, person_id, text: `${round} while connected` })
        await session.close()
        await stage().others.write({ account_id, person_id, text: `${round} while away` })
        session = await stage().connect(account, recorder)
      }
      await recorder.until(() => recorder.texts.length >= expected.length)
      expect(recorder.texts).toEqual(expected)
      expect(recorder.messages.every(({ live }) => live)).toBe(true)
    })

    test('from a position that the platform no longer has reports a gap, and where it continues', async () => {
      const { account, account_id, person_id, session } = await stage().setScene()
      await session.close()
      const { lostPosition } = stage().fixture
      const recorder = new Recorder(lostPosition)
      const lost = await stage().connect(account, recorder)
      await recorder.until(() => recorder.of('gap').length > 0)
      expect(recorder.of('gap')).toEqual([{ kind: 'gap', chat_id: null }])
      await recorder.until(() => recorder.position !== lostPosition)
      await lost.close()
      const next = recorder.continued()
      await stage().connect(account, next)
      await stage().others.write({ account_id, person_id, text: 'after the gap' })
      await next.until(() => next.texts.length > 0)
      expect(next.texts).toEqual(['after the gap'])
      expect(next.of('gap')).toEqual([])
    })

    test('takes the account over when called a second time', async () => {
      const { account, account_id, person_id, session, recorder } = await stage().setScene()
      const second = new Recorder()
      const newer = await stage().connect(account, second)
      expect(await within(2000, recorder.closedReason)).toMatchObject({ status: 'lost' })
      expect(await session.ping()).toBe(false)
      expect(await session.contacts()).toMatchObject({ kind: 'not_written' })
      expect(await newer.ping()).toBe(true)
      await stage().others.write({ account_id, person_id, text: 'hello' })
      await second.until(() => second.texts.includes('hello'))
      expect(recorder.texts).toEqual([])
    })

    test('reports when the platform refuses, is flooded or cannot be reached', async () => {
      const account = await stage().newAccount()
      const { account_id } = account
      const attempt = () => stage().platform.connect({ ...account, position: null }, new Recorder())
      await stage().others.fault({ on: 'connect', fault: 'refuse', account_id })
      expect(await attempt()).toMatchObject({ kind: 'refused', reason: 'needs_login' })
      await stage().others.fault({ on: 'connect', fault: 'flood_wait', seconds: 7, account_id })
      expect(await attempt()).toEqual({ kind: 'flood_wait', retry_after_seconds: 7, stops: 'reading' })
      await stage().others.fault({ on: 'connect', fault: 'unavailable', account_id })
      expect(await attempt()).toMatchObject({ kind: 'not_written' })
    })
  })

  describe('close', () => {
    test('ends every call with not_written and is not reported as a loss', async () => {
      const scene = await stage().setScene()
      const { session, recorder, chat_id } = scene
      await session.close()
      await session.close()
      expect(await session.send(messageIn(scene, 'too late'))).toMatchObject({ kind: 'not_written' })
      expect(await session.history({ chat_id, before: null, limit: 10 })).toMatchObject({
        kind: 'not_written',
      })
      expect(await session.setReadState(chat_id, false)).toMatchObject({ kind: 'not_written' })
      expect(await session.ping()).toBe(false)
      expect(recorder.closedWith).toBeNull()
      expect(await stage().others.sentTexts(scene.account_id)).toEqual([])
    })

    test('leaves what was in flight unknown', async () => {
      const scene = await stage().setScene()
      const { account_id, session } = scene
      await stage().others.fault({ on: 'send', fault: 'timeout_after', account_id })
      const sending = session.send(messageIn(scene, 'did it arrive?'))
      await expect.poll(() => stage().others.sentTexts(account_id)).toEqual(['did it arrive?'])
      await session.close()
      expect(await within(2000, sending)).toMatchObject({ kind: 'unknown' })
    })
  })

  describe('resolve', () => {
    test('finds a username in any case, and returns who it is', async () => {
      const { session } = await stage().setScene()
      const username = `Ada_${stage().nextNumber()}`
      const id = String(await stage().others.addPerson({ name: 'Ada', username }))
      for (const value of [username, username.toLowerCase(), username.toUpperCase()]) {
        const person = expectAccepted(await session.resolve({ kind: 'username', value }))
        expect(person).toMatchObject({ id, name: 'Ada', kind: 'person', username })
      }
    })

    test('distinguishes bots and ourselves from people', async () => {
      const { session } = await stage().setScene()
      const bot = `helper_${stage().nextNumber()}_bot`
      await stage().others.addPerson({ name: 'Helper', username: bot })
      expect(expectAccepted(await session.resolve({ kind: 'username', value: bot })).kind).toBe('bot')
      const value = session.self.username ?? ''
      expect(expectAccepted(await session.resolve({ kind: 'username', value })).kind).toBe('self')
    })

    test('refuses a name that belongs to no person', async () => {
      const { account_id, session } = await stage().setScene()
      const username = `public_group_${stage().nextNumber()}`
      await stage().others.addGroup({ account_id, name: 'Public', username })
      const resolve = (value: string) => session.resolve({ kind: 'username', value })
      expect(await resolve(username)).toMatchObject({ kind: 'refused', reason: 'identity_ineligible' })
      expect(await resolve('nobody_at_all')).toMatchObject({ kind: 'refused', reason: 'username_not_found' })
    })
  })

  describe('resolve and askPerson', () => {
    const named = (value: string) => ({ kind: 'username', value }) as const

    test('a person in a chat of the account is shown under the name they have now, without a look-up', async () => {
      const { account_id, session } = await stage().setScene()
      const [first, taken] = [`First_${stage().nextNumber()}`, `taken_${stage().nextNumber()}`]
      const person_id = await stage().others.addPerson({ name: 'Mara', username: first })
      await stage().others.write({ account_id, person_id, text: 'Hello' })
      const ask = async (value: string) =>
        expectAccepted(await session.askPerson(String(person_id), named(value)))
      await expect.poll(() => ask(first.toLowerCase())).toMatchObject({ has_name: true })
      expect(await ask(taken)).toMatchObject({ person: { username: first }, has_name: false })
      const by_id = { kind: 'id', value: String(person_id) } as const
      expect(expectAccepted(await session.askPerson(String(person_id), by_id))).toMatchObject({
        person: { id: String(person_id), username: first },
        has_name: true,
      })
    })

    test('nobody answers for a person whom the account has never seen, and nobody is looked up by id', async () => {
      const { session } = await stage().setScene()
      const username = `far_${stage().nextNumber()}`
      const person_id = await stage().others.addPerson({ name: 'Far', username })
      expect(expectAccepted(await session.askPerson(String(person_id), named(username)))).toBeNull()
      expect(await session.resolve({ kind: 'id', value: String(person_id) })).toMatchObject({
        kind: 'refused',
        reason: 'username_not_found',
      })
    })

    test('a look-up finds a person by a phone number that they do not show', async () => {
      const { session } = await stage().setScene()
      const phone = `+4930${5_550_000 + stage().nextNumber()}`
      const id = String(await stage().others.addPerson({ name: 'Hidden', phone, phone_visible_to: [] }))
      const found = expectAccepted(await session.resolve({ kind: 'phone', value: phone }))
      expect(found).toMatchObject({ id, phone: null })
      const asked = expectAccepted(await session.askPerson(id, { kind: 'phone', value: phone }))
      expect(asked?.has_name ?? false).toBe(false)
    })
  })

  describe('openChat', () => {
    test('returns the private chat, the same each time', async () => {
      const { person_id, session, chat_id } = await stage().setScene()
      const chat = expectAccepted(await session.openChat(String(person_id)))
      expect(chat).toMatchObject({ id: chat_id, kind: 'private' })
      expect([0, null]).toContain(chat.unread_count)
      expect(chat.participants?.map(({ kind }) => kind).sort()).toEqual(['person', 'self'])
    })
  })
}
