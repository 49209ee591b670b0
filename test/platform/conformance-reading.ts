/** The conformance suite on reading, and the stream of updates. */
import { describe, expect, test } from 'vitest'
import type { ChatPage, ListedChat, Message } from '../../src/platform/port.ts'
import { expectAccepted, within } from './conformance-recorder.ts'
import { messageIn, type Stage } from './conformance-stage.ts'

export function readingConform(stage: () => Stage): void {
  describe('history', () => {
    test('comes newest first, in pages, and marks nothing read', async () => {
      const { account_id, person_id, session, chat_id } = await stage().setScene()
      for (let n = 1; n <= 7; n++) await stage().others.write({ account_id, person_id, text: `${n}` })
      const seen: Message[] = []
      for (let page = 0; page < 4; page++) {
        const last = seen.at(-1)
        const before = last ? { message_id: last.id } : null
        seen.push(...expectAccepted(await session.history({ chat_id, before, limit: 3 })))
      }
      expect(seen.map(({ text }) => text)).toEqual(['7', '6', '5', '4', '3', '2', '1'])
      const { chats } = expectAccepted(await session.chats({ after: null, limit: 10 }))
      expect(chats.find(({ chat }) => chat.id === chat_id)?.chat.unread_count).toBe(7)
    })

    test('of a chat the account does not have is refused', async () => {
      const { session } = await stage().setScene()
      const outcome = await session.history({ chat_id: '999999', before: null, limit: 3 })
      expect(outcome).toMatchObject({ kind: 'refused', reason: 'chat_unavailable' })
    })
  })

  describe('chats and contacts', () => {
    test('list every chat once, most recent first', async () => {
      const { account_id, session } = await stage().setScene()
      const ids: string[] = []
      for (let n = 0; n < 5; n++) {
        const person_id = await stage().others.addPerson({
          name: `Writer ${n}`,
          phone: `+4477009${stage().nextNumber()}${n}`,
        })
        await stage().others.write({ account_id, person_id, text: 'hi' })
        ids.unshift(String(person_id))
      }
      const seen: ListedChat[] = []
      let after: string | null = null
      do {
        const page: ChatPage = expectAccepted(await session.chats({ after, limit: 2 }))
        seen.push(...page.chats)
        after = page.next
      } while (after !== null)
      // The chat that was only opened is not listed.
      expect(seen.map(({ chat }) => chat.id).sort()).toEqual([...ids].sort())
      expect(seen.map(({ last }) => last?.text)).toEqual(ids.map(() => 'hi'))
      const contacts = expectAccepted(await session.contacts())
      expect(contacts.map(({ id }) => id)).toEqual(expect.arrayContaining(ids))
    })

    test('a group has a negative id and its members', async () => {
      const { account_id, person_id, session } = await stage().setScene()
      const id = await stage().others.addGroup({ account_id, name: 'Team', members: [person_id] })
      expect(id).toBeLessThan(0)
      const { chats } = expectAccepted(await session.chats({ after: null, limit: 10 }))
      const group = chats.find(({ chat }) => chat.id === String(id))?.chat
      expect(group).toMatchObject({ kind: 'group', name: 'Team' })
      const members = group?.participants?.map(({ id }) => id) ?? null
      const expected = stage().fixture.showsCounts ? expect.arrayContaining([String(person_id)]) : null
      expect(members).toEqual(expected)
    })
  })

  describe('setReadState', () => {
    test('marks read and unread, and reports it in the stream', async () => {
      const { account_id, person_id, session, recorder, chat_id } = await stage().setScene()
      for (let n = 1; n <= 3; n++) await stage().others.write({ account_id, person_id, text: `${n}` })
      expect(expectAccepted(await session.setReadState(chat_id, false))).toEqual({ unread_count: 0 })
      const marked = expectAccepted(await session.setReadState(chat_id, true))
      expect(marked.unread_count).toBeGreaterThan(0)
      await recorder.until(() => recorder.of('unread').length === 2)
      const counts = recorder.of('unread').map(({ unread_count }) => unread_count)
      expect(counts).toEqual([0, marked.unread_count])
    })
  })

  describe('updates', () => {
    test('report messages, edits, deletions and reads, in order', async () => {
      const scene = await stage().setScene()
      const { account_id, person_id, session, recorder, chat_id } = scene
      const { message_id: ours } = expectAccepted(await session.send(messageIn(scene, 'offer')))
      const theirs = await stage().others.write({ account_id, person_id, text: 'typo' })
      await stage().others.read({ account_id, person_id })
      await stage().others.edit({ account_id, person_id, message_id: theirs, text: 'no typo' })
      await stage().others.remove({ account_id, person_id, message_id: theirs })
      await recorder.until(() => recorder.of('deleted').length === 1)
      const incoming = recorder.messages.find((update) => !update.message.is_sender)
      expect(incoming).toMatchObject({
        live: true,
        chat: { id: chat_id, kind: 'private' },
        message: { id: String(theirs), text: 'typo', sender_id: String(person_id), edited_at: null },
      })
      expect(incoming?.chat.unread_count).toBe(stage().fixture.showsCounts ? 1 : null)
      expect(recorder.of('read_by_them')).toMatchObject([{ chat_id, up_to_message_id: ours }])
      const [edited] = recorder.of('edited')
      expect(edited).toMatchObject({ chat_id, message: { id: String(theirs), text: 'no typo' } })
      expect(edited?.message.edited_at).not.toBeNull()
      expect(recorder.of('deleted')[0]?.message_ids).toEqual([String(theirs)])
    })

    test('drop an edit that changes nothing shown', async () => {
      const { account_id, person_id, recorder } = await stage().setScene()
      const message_id = await stage().others.write({ account_id, person_id, text: 'as it is' })
      const edit = { account_id, person_id, message_id }
      await stage().others.edit({ ...edit, text: 'as it is' })
      await stage().others.edit({ ...edit, text: 'as it was' })
      await stage().others.edit({ ...edit, text: 'as it was' })
      await stage().others.write({ account_id, person_id, text: 'last' })
      await recorder.until(() => recorder.texts.length === 2)
      expect(recorder.of('edited').map(({ message }) => message.text)).toEqual(['as it was'])
    })

    test('wait until the batch before is stored', async () => {
      const { account_id, person_id, recorder } = await stage().setScene()
      await recorder.until(() => recorder.position !== null)
      const before = recorder.handed
      const release = recorder.hold()
      const expected = Array.from({ length: 250 }, (_, n) => `${n}`)
      for (const text of expected) await stage().others.write({ account_id, person_id, text })
      await recorder.until(() => recorder.handed > before)
      await new Promise((resolve) => setTimeout(resolve, 50))
      expect(recorder.handed).toBe(before + 1)
      release()
      await recorder.until(() => recorder.texts.length >= expected.length)
      expect(recorder.texts).toEqual(expected)
      expect(recorder.concurrentMax).toBe(1)
    })

    test('that the listener cannot store end the session, and come again in the next', async () => {
      const { account, account_id, person_id, recorder } = await stage().setScene()
      await stage().others.write({ account_id, person_id, text: 'first' })
      await recorder.until(() => recorder.texts.length === 1)
      recorder.fail()
      await stage().others.write({ account_id, person_id, text: 'second' })
      expect(await within(2000, recorder.closedReason)).toMatchObject({ status: 'lost' })
      const next = recorder.continued()
      await stage().connect(account, next)
      await next.until(() => next.texts.length === 1)
      expect(next.texts).toEqual(['second'])
    })
  })

  describe('a frozen connection', () => {
    test('is not live, holds its updates, and continues afterwards', async () => {
      const { account_id, person_id, session, recorder, chat_id } = await stage().setScene()
      await stage().others.fault({ on: 'history', fault: 'freeze', seconds: 2, account_id })
      const page = session.history({ chat_id, before: null, limit: 1 })
      await new Promise((resolve) => setTimeout(resolve, 50))
      await stage().others.write({ account_id, person_id, text: 'anybody there?' })
      const ping = session.ping()
      expect(await within(100, ping).catch(() => 'silent')).toBe('silent')
      expect(recorder.texts).toEqual([])
      expect(await within(30_000, ping)).toBe(true)
      expectAccepted(await within(30_000, page))
      await recorder.until(() => recorder.texts.includes('anybody there?'))
      expect(recorder.closedWith).toBeNull()
    })
  })
}
