import type { tl } from '@mtcute/core'
import Long from 'long'
import { describe, expect, test } from 'vitest'
import { type Client, lookUp, setScene, textOf, until } from '../data-centre-fixture.ts'
import { askCentre } from '../sandbox-fixture.ts'
import { serviceId } from './service-chat.ts'

const kindsOf = ({ pushed }: Client) => pushed.map(({ _ }) => _)

function getDialogs(request: Partial<tl.messages.RawGetDialogsRequest> = {}) {
  return {
    ...{ _: 'messages.getDialogs' as const, offsetDate: 0, offsetId: 0, limit: 100, hash: Long.ZERO },
    offsetPeer: { _: 'inputPeerEmpty' as const },
    ...request,
  }
}

describe('two devices of one account', () => {
  test('both get what happens; the random id of a message only the device that sent it', async () => {
    const { stage, account_id, client, write } = await setScene()
    const phone = stage.client(account_id)
    await client.state()
    await phone.state()
    const mara = await lookUp(client, 'mara_lind')
    await client.call(textOf(mara, 'Hello', 7))
    write('Hi')
    await until(() => client.pushed.length === 1 && phone.pushed.length === 3)
    expect(kindsOf(client)).toEqual(['updateNewMessage'])
    expect(kindsOf(phone)).toEqual(['updateNewMessage', 'updateReadMessagesContents', 'updateNewMessage'])

    const all = { _: 'updates.getDifference', pts: 1, date: 0, qts: 0 } as const
    const idsOf = (difference: tl.updates.TypeDifference) =>
      'otherUpdates' in difference ? difference.otherUpdates.map(({ _ }) => _) : []
    expect(idsOf(await client.call(all))).toEqual(['updateMessageID'])
    expect(idsOf(await phone.call(all))).toEqual([])
  })

  test('an edit and a deletion come in the answer, and to the other device as pushes', async () => {
    const { stage, account_id, client } = await setScene()
    const phone = stage.client(account_id)
    await phone.state()
    const mara = await lookUp(client, 'mara_lind')
    await client.call(textOf(mara, 'Hello', 7))
    const edit = { _: 'messages.editMessage', peer: mara, id: 1, message: 'Hello, Mara' } as const
    expect(await client.call(edit)).toMatchObject({ updates: [{ _: 'updateEditMessage', pts: 4 }] })
    expect(await client.error(edit)).toBe('400 MESSAGE_NOT_MODIFIED')
    const removal = { _: 'messages.deleteMessages' as const, revoke: true, id: [1] }
    expect(await client.call(removal)).toMatchObject({ pts: 5, ptsCount: 1 })
    await until(() => phone.pushed.length === 4)
    expect(kindsOf(phone).slice(2)).toEqual(['updateEditMessage', 'updateDeleteMessages'])
    expect(client.pushed).toEqual([])
  })

  test('a chat is read as far as the client says, and the other device gets how far', async () => {
    const { stage, account_id, client, write } = await setScene()
    const phone = stage.client(account_id)
    await phone.state()
    write('One')
    write('Two')
    const mara = await lookUp(client, 'mara_lind')
    await client.call({ _: 'messages.readHistory', peer: mara, maxId: 1 })
    await until(() => phone.pushed.length === 3)
    expect(phone.pushed.at(-1)).toMatchObject({ _: 'updateReadHistoryInbox', maxId: 1, stillUnreadCount: 1 })
    await client.call({ _: 'messages.readHistory', peer: mara, maxId: 0 })
    await until(() => phone.pushed.length === 4)
    expect(phone.pushed.at(-1)).toMatchObject({ maxId: 2, stillUnreadCount: 0 })
  })

  test('the parts of a file may come over any of its connections', async () => {
    const { stage, account_id, client } = await setScene()
    const phone = stage.client(account_id)
    const mara = await lookUp(client, 'mara_lind')
    const part = {
      _: 'upload.saveFilePart',
      fileId: Long.fromNumber(5),
      bytes: new Uint8Array(1024),
    } as const
    expect(await phone.call({ ...part, filePart: 1 })).toBe(true)
    expect(await client.call({ ...part, filePart: 0 })).toBe(true)
    const sent = await client.call({
      _: 'messages.sendMedia',
      ...{ peer: mara, message: '', randomId: Long.fromNumber(8) },
      media: {
        _: 'inputMediaUploadedDocument',
        ...{ mimeType: 'text/plain', attributes: [] },
        file: { _: 'inputFile', id: part.fileId, parts: 2, name: 'a.txt', md5Checksum: '' },
      },
    })
    expect(sent).toMatchObject({ _: 'updates' })
  })
})

describe('errors that pass', () => {
  test('a 401 strikes one call, and the next is answered', async () => {
    const { stage, client, account_id } = await setScene()
    const ask = askCentre(stage.centre)
    await ask('addRefusal', { on: 'updates.getState', error: '401 AUTH_KEY_UNREGISTERED', account_id })
    expect(await client.error({ _: 'updates.getState' })).toBe('401 AUTH_KEY_UNREGISTERED')
    expect(await client.state()).toMatchObject({ pts: 1 })
    await ask('addRefusal', { on: 'any', error: '500 AUTH_RESTART', times: 3 })
    expect(await ask('clearRefusals', {})).toEqual({ cleared: 1 })
    expect(await client.state()).toMatchObject({ pts: 1 })
  })
})

describe('channels and supergroups', () => {
  test('are dialogs with their own numbers, and pushes with their authors', async () => {
    const { stage, account_id, client, write } = await setScene()
    const ask = askCentre(stage.centre)
    await client.state()
    const { channel_id, chat_id } = stage.centre.addChannel({ title: 'Sailors', account_ids: [account_id] })
    await ask('writeInChannel', { channel_id, person_id: 5_000_000_001, text: 'Ahoy', count: 2 })
    write('Hi')
    await until(() => client.pushed.length === 3)
    expect(client.pushed).toMatchObject([
      { _: 'updateNewChannelMessage', pts: 2, message: { id: 1, peerId: { channelId: channel_id } } },
      { _: 'updateNewChannelMessage', pts: 3, message: { fromId: { userId: 5_000_000_002 } } },
      { _: 'updateNewMessage', pts: 2 },
    ])
    const found = await client.call(getDialogs({ folderId: 0 }))
    expect(found).toMatchObject({ _: 'messages.dialogs', dialogs: { length: 2 } })
    await ask('placeChat', { account_id, chat_id, archived: true })
    const main = await client.call(getDialogs({ folderId: 0 }))
    expect(main).toMatchObject({ dialogs: [{ _: 'dialogFolder', folder: { id: 1 } }, { _: 'dialog' }] })
    const archive = await client.call(getDialogs({ folderId: 1 }))
    expect(archive).toMatchObject({ dialogs: [{ peer: { channelId: channel_id }, folderId: 1, pts: 3 }] })
    const news = await client.call({ _: 'updates.getDifference', pts: 2, date: 1, qts: 0 })
    expect(news).toMatchObject({ otherUpdates: [{ _: 'updateChannelTooLong', channelId: channel_id }] })
  })

  test('a page continues after its offset peer: a channel needs its hash, and a peer from elsewhere misleads', async () => {
    const { stage, account_id, client, world } = await setScene()
    const at = (n: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, n)).toISOString()
    for (let n = 0; n < 30; n++) {
      const { channel_id } = stage.centre.addChannel({ title: `Channel ${n}`, account_ids: [account_id] })
      await stage.centre.writeInChannel({ channel_id, person_id: 1001, text: 'News', at: at(n) })
    }
    const { person_id } = world.addPerson({ name: 'First' })
    world.seedMessage({ account_id, chat_id: person_id, person_id, text: 'Hi', at: new Date(at(40)) })
    const page = async (request: Partial<tl.messages.RawGetDialogsRequest>) => {
      const found = await client.call(getDialogs({ folderId: 0, limit: 10, ...request }))
      if (found._ !== 'messages.dialogsSlice') throw new Error(found._)
      return found
    }
    const titles = ({ chats }: tl.messages.RawDialogsSlice) =>
      chats.flatMap((each) => (each._ === 'channel' ? [each.title] : []))
    const first = await page({})
    expect([first.count, titles(first).at(-1)]).toEqual([31, 'Channel 21'])
    const last = first.chats.at(-1)
    const message = first.messages.at(-1)
    if (last?._ !== 'channel' || message?._ !== 'message') throw new Error('The page ends with a channel.')
    const offset = { offsetDate: message.date, offsetId: message.id }
    const peer = {
      _: 'inputPeerChannel',
      channelId: last.id,
      accessHash: last.accessHash ?? Long.ZERO,
    } as const
    expect(titles(await page({ ...offset, offsetPeer: peer }))[0]).toBe('Channel 20')
    const hashless = await page({ ...offset, offsetPeer: { ...peer, accessHash: Long.ZERO } })
    expect(titles(hashless)).toEqual(titles(first))
    const user = first.users.find((each) => each._ === 'user' && each.id === person_id)
    if (user?._ !== 'user') throw new Error('The first chat is a person.')
    const person = { _: 'inputPeerUser', userId: user.id, accessHash: user.accessHash ?? Long.ZERO } as const
    expect(titles(await page({ ...offset, offsetPeer: person }))[0]).toBe('Channel 29')
    // A chat that has moved up since is still the end of its page.
    await stage.centre.writeInChannel({ channel_id: last.id, person_id: 1001, text: 'More', at: at(50) })
    expect(titles(await page({ ...offset, offsetPeer: peer }))[0]).toBe('Channel 20')
  })
})

test('the service chat brings a login code to every device, as a message', async () => {
  const { stage, client } = await setScene()
  stage.centre.addAccount({ account_id: 'acc_two', name: 'Second', phone: '+9996620007' })
  const device = stage.client('acc_two')
  await device.state()
  const settings = { _: 'codeSettings' } as const
  const wanted = { _: 'auth.sendCode', phoneNumber: '+9996620007', apiId: 1, apiHash: 'x', settings } as const
  await client.call(wanted)
  await until(() => device.pushed.length === 1)
  expect(device.pushed).toMatchObject([
    { message: { peerId: { userId: serviceId }, message: expect.stringContaining('12345') } },
  ])
})
