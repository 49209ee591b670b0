import { setTimeout as sleep } from 'node:timers/promises'
import type { tl } from '@mtcute/core'
import Long from 'long'
import { describe, expect, test } from 'vitest'
import { editMessage, readMessages, writeMessage } from '../../../src/platform/sandbox/person-acts.ts'
import { Client, lookUp, setScene, textOf, until } from '../data-centre-fixture.ts'

const account_id = 'acc_one'

const difference = (client: Client, pts: number) =>
  client.call({ _: 'updates.getDifference', pts, date: 0, qts: 0 })

describe('updates.getDifference', () => {
  test('comes in slices, each of which continues the one before', async () => {
    const { client, write } = await setScene()
    for (let n = 0; n < 250; n++) write(`${n}`)
    const texts: string[] = []
    const kinds: string[] = []
    for (let pts = 1; ; ) {
      const found = await difference(client, pts)
      kinds.push(found._)
      if (found._ === 'updates.differenceEmpty' || found._ === 'updates.differenceTooLong') break
      texts.push(...found.newMessages.flatMap((each) => (each._ === 'message' ? [each.message] : [])))
      pts = (found._ === 'updates.difference' ? found.state : found.intermediateState).pts
    }
    const slice = 'updates.differenceSlice'
    expect(kinds).toEqual([slice, slice, 'updates.difference', 'updates.differenceEmpty'])
    expect(texts).toEqual(Array.from({ length: 250 }, (_, n) => `${n}`))
  })

  test('is too long over more updates than the data centre keeps', async () => {
    const { client, write } = await setScene({ keep_updates: 10 })
    for (let n = 0; n < 11; n++) write(`${n}`)
    expect(await difference(client, 1)).toEqual({ _: 'updates.differenceTooLong', pts: 12 })
    expect(await difference(client, 2)).toMatchObject({ _: 'updates.difference', state: { pts: 12 } })
    const ahead = { _: 'updates.getDifference', pts: 13, date: 0, qts: 0 } as const
    expect(await client.error(ahead)).toBe('400 PERSISTENT_TIMESTAMP_INVALID')
  })

  test('names the senders of the messages, to whom the client can then write', async () => {
    const { client, write } = await setScene()
    write('Hi')
    const found = await difference(client, 1)
    const user = 'users' in found ? found.users.find((each) => each._ === 'user' && !each.self) : undefined
    if (user?._ !== 'user') throw new Error('No user.')
    const peer: tl.RawInputPeerUser = {
      _: 'inputPeerUser',
      userId: user.id,
      accessHash: user.accessHash ?? Long.ZERO,
    }
    expect(await client.error(textOf(peer, 'Hello', 1))).toContain('accepted')
  })
})

describe('pushes', () => {
  test('carry what people do, each with its pts', async () => {
    const { client, world, person_id, write } = await setScene()
    await client.state()
    const mara = await lookUp(client, 'mara_lind')
    const message_id = write('Hi')
    editMessage(world, { account_id, person_id, message_id, text: 'Hello' })
    await client.call(textOf(mara, 'Good morning', 1))
    readMessages(world, { account_id, person_id })
    await client.call({ _: 'messages.readHistory', peer: mara, maxId: 0 })
    await until(() => client.pushed.length === 4)
    expect(client.pushed).toMatchObject([
      { _: 'updateNewMessage', message: { message: 'Hi', out: false }, pts: 2, ptsCount: 1 },
      { _: 'updateEditMessage', message: { message: 'Hello' }, pts: 3 },
      { _: 'updateReadHistoryOutbox', maxId: 2, pts: 6 },
      { _: 'updateReadHistoryInbox', stillUnreadCount: 0, pts: 7 },
    ])
  })

  test('end when another connection of the same key replaces the session', async () => {
    const { stage, client } = await setScene()
    await client.state()
    await new Client(stage.centre.port, client.storage).state()
    await client.ended
  })

  test('wait while a connection is frozen, and so do its calls', async () => {
    const { client, world, write } = await setScene()
    await client.state()
    world.addFault({ on: 'updates', fault: 'freeze', seconds: 1 })
    write('Hi')
    await sleep(50)
    const state = client.state()
    expect(client.pushed).toEqual([])
    expect(await state).toMatchObject({ pts: 2 })
    await until(() => client.pushed.length === 1)
  })
})

describe('reading', () => {
  test('messages.getDialogs pages by offset, with each last message and the count', async () => {
    const { client, world } = await setScene()
    for (let n = 0; n < 250; n++) {
      const { person_id } = world.addPerson({ name: `Person ${n}` })
      writeMessage(world, {
        account_id,
        person_id,
        text: `${n}`,
        at: new Date(1e12 + n * 1000).toISOString(),
      })
    }
    const texts: string[] = []
    let offset: { offsetDate: number; offsetId: number; offsetPeer: tl.TypeInputPeer } = {
      offsetDate: 0,
      offsetId: 0,
      offsetPeer: { _: 'inputPeerEmpty' },
    }
    for (let pages = 0; pages < 3; pages++) {
      const request = { _: 'messages.getDialogs', folderId: 0, limit: 100, hash: Long.ZERO } as const
      const found = await client.call({ ...request, ...offset })
      if (found._ !== 'messages.dialogsSlice') throw new Error(found._)
      expect(found.count).toBe(250)
      const last = found.messages.at(-1)
      const user = found.users.findLast((each) => each._ === 'user' && !each.self)
      if (last?._ !== 'message' || user?._ !== 'user') throw new Error('No last message.')
      texts.push(...found.messages.flatMap((each) => (each._ === 'message' ? [each.message] : [])))
      const { accessHash = Long.ZERO } = user
      const offsetPeer = { _: 'inputPeerUser', userId: user.id, accessHash } as const
      offset = { offsetDate: last.date, offsetId: last.id, offsetPeer }
      // The last chat of the page moves up: the next page stays the same.
      writeMessage(world, { account_id, person_id: user.id, text: 'moved', at: new Date(2e12).toISOString() })
    }
    expect(texts).toEqual(expect.arrayContaining(Array.from({ length: 250 }, (_, n) => `${n}`)))
    const archive = { _: 'messages.getDialogs', folderId: 1, limit: 100, hash: Long.ZERO } as const
    const { dialogs } = (await client.call({
      ...archive,
      offsetDate: 0,
      offsetId: 0,
      offsetPeer: { _: 'inputPeerEmpty' },
    })) as tl.messages.RawDialogs
    expect(dialogs).toEqual([])
  })

  test('returns history, single messages, contacts and people', async () => {
    const { client, write } = await setScene()
    for (let n = 0; n < 5; n++) write(`${n}`)
    const mara = await lookUp(client, 'mara_lind')
    const page = { offsetDate: 0, addOffset: 0, limit: 2, maxId: 0, minId: 0, hash: Long.ZERO }
    const history = { _: 'messages.getHistory', peer: mara, offsetId: 4, ...page } as const
    expect(await client.call(history)).toMatchObject({ count: 5, messages: [{ id: 3 }, { id: 2 }] })
    const some = {
      _: 'messages.getMessages',
      id: [3, 99].map((id) => ({ _: 'inputMessageID', id }) as const),
    } as const
    expect(await client.call({ ...some, id: [...some.id] })).toMatchObject({
      messages: [{ message: '2' }, { _: 'messageEmpty' }],
    })
    expect(await client.call({ _: 'contacts.getContacts', hash: Long.ZERO })).toMatchObject({
      users: [{ id: mara.userId, firstName: 'Mara Lind' }],
    })
    expect(await client.call({ _: 'contacts.resolvePhone', phone: '4420' })).toMatchObject({
      peer: { userId: mara.userId },
    })
    const self = await client.call({ _: 'users.getUsers', id: [{ _: 'inputUserSelf' }] })
    expect(self).toMatchObject([{ firstName: 'Sales desk', self: true }])
    const nobody = { _: 'contacts.resolveUsername', username: 'nobody_at_all' } as const
    expect(await client.error(nobody)).toBe('400 USERNAME_NOT_OCCUPIED')
    expect(await client.error({ _: 'contacts.resolvePhone', phone: '4421' })).toBe('400 PHONE_NOT_OCCUPIED')
    expect(await client.error({ _: 'help.getInviteText' })).toBe('400 METHOD_INVALID')
  })

  test('a person without messages has an empty history, and nothing to mark as read', async () => {
    const { client, world } = await setScene()
    const mara = await lookUp(client, 'mara_lind')
    const page = { offsetDate: 0, addOffset: 0, limit: 2, maxId: 0, minId: 0, hash: Long.ZERO, offsetId: 0 }
    expect(await client.call({ _: 'messages.getHistory', peer: mara, ...page })).toMatchObject({
      messages: [],
    })
    expect(await client.call({ _: 'messages.readHistory', peer: mara, maxId: 0 })).toMatchObject({
      ptsCount: 0,
    })
    world.addFault({ on: 'history', fault: 'refuse' })
    expect(await client.error({ _: 'messages.getHistory', peer: mara, ...page })).toBe('400 PEER_ID_INVALID')
  })

  test('a flood wait on look-ups or on reading applies to these alone', async () => {
    const { client, world, write } = await setScene()
    write('Hi')
    const mara = await lookUp(client, 'mara_lind')
    world.addFault({ on: 'resolve', fault: 'flood_wait', seconds: 80_000, times: 0 })
    world.addFault({ on: 'chats', fault: 'flood_wait', seconds: 30, times: 0 })
    const lookup = { _: 'contacts.resolveUsername', username: 'mara_lind' } as const
    expect(await client.error(lookup)).toBe('420 FLOOD_WAIT_80000')
    const list = {
      _: 'messages.getDialogs',
      offsetDate: 0,
      offsetId: 0,
      limit: 100,
      hash: Long.ZERO,
    } as const
    expect(await client.error({ ...list, offsetPeer: { _: 'inputPeerEmpty' } })).toBe('420 FLOOD_WAIT_30')
    expect(await client.error(textOf(mara, 'Hello', 1))).toContain('accepted')
  })
})
