import { createHash, randomBytes } from 'node:crypto'
import type { tl } from '@mtcute/core'
import Long from 'long'
import { describe, expect, test } from 'vitest'
import type { NewFault } from '../../../src/platform/sandbox/faults.ts'
import { deleteMessage, writeMessage } from '../../../src/platform/sandbox/person-acts.ts'
import { type Client, lookUp, setScene, textOf, until } from '../data-centre-fixture.ts'

const account_id = 'acc_one'

/** The scene after the client's first calls: its position, Mara as a peer, and what she was sent. */
async function setSendingScene(options: Parameters<typeof setScene>[0] = {}) {
  const scene = await setScene(options)
  const { world, client } = scene
  const { pts } = await client.state()
  const mara = await lookUp(client, 'mara_lind')
  const sent = () => world.journal(0).flatMap(({ kind, text }) => (kind === 'send' ? [text] : []))
  const fault = (given: NewFault) => world.addFault(given)
  return { ...scene, pts, mara, sent, fault }
}

async function differenceAfter(client: Client, pts: number) {
  const found = await client.call({ _: 'updates.getDifference', pts, date: 0, qts: 0 })
  if (!('otherUpdates' in found)) throw new Error(`An unexpected ${found._}.`)
  const ids = found.otherUpdates.flatMap((each) =>
    each._ === 'updateMessageID' ? [String(each.randomId)] : [],
  )
  const texts = found.newMessages.flatMap((each) => (each._ === 'message' ? [each.message] : []))
  return { found, ids, texts }
}

describe('messages.sendMessage', () => {
  test('is accepted, and its connection gets it in the answer alone', async () => {
    const { client, pts, mara, world, person_id, sent } = await setSendingScene()
    const answer = await client.call(textOf(mara, 'Hello', 7))
    expect(answer).toMatchObject({ _: 'updateShortSentMessage', id: 1, pts: pts + 2, ptsCount: 2 })
    writeMessage(world, { account_id, person_id, text: 'Hi' })
    await until(() => client.pushed.length > 0)
    expect(client.pushed).toMatchObject([
      { _: 'updateNewMessage', message: { message: 'Hi' }, pts: pts + 3, ptsCount: 1 },
    ])
    expect(sent()).toEqual(['Hello'])
  })

  test('whose answer is lost is proven by updateMessageID in the difference of the next connection', async () => {
    const { stage, client, pts, mara, sent, fault } = await setSendingScene()
    fault({ on: 'send', fault: 'drop_after' })
    await expect(client.call(textOf(mara, 'Hello', 7))).rejects.toThrow('over')
    const next = stage.client(undefined, client.storage)
    expect(await differenceAfter(next, pts)).toMatchObject({ ids: ['7'], texts: ['Hello'] })
    expect(sent()).toEqual(['Hello'])
  })

  test('is proven also when its message was deleted since', async () => {
    const { client, pts, mara, world, person_id } = await setSendingScene()
    await client.call(textOf(mara, 'Hello', 7))
    deleteMessage(world, { account_id, person_id, message_id: 1 })
    expect(await differenceAfter(client, pts)).toMatchObject({ ids: ['7'], texts: [] })
  })

  test('enters the stream later or twice when a fault says so', async () => {
    const { client, pts, mara, world, fault } = await setSendingScene()
    fault({ on: 'updates', fault: 'late', seconds: 60 })
    fault({ on: 'updates', fault: 'twice' })
    expect(await client.call(textOf(mara, 'Late', 7))).toMatchObject({ pts, ptsCount: 0 })
    expect(await client.call(textOf(mara, 'Twice', 8))).toMatchObject({ pts: pts + 2, ptsCount: 2 })
    await until(() => client.pushed.length === 3)
    world.runDue(new Date(Date.now() + 60_000))
    await until(() => client.pushed.length === 6)
    expect(client.pushed).toMatchObject([
      { message: { message: 'Twice' }, pts: pts + 3 },
      { id: 2 },
      { pts: pts + 4 },
      { message: { message: 'Late' }, pts: pts + 5 },
      { id: 1 },
      { pts: pts + 6 },
    ])
  })

  test('is refused by name, and a fault can choose the name', async () => {
    const { client, mara, world, fault, sent } = await setSendingScene()
    const blocking = world.addPerson({ name: 'No', username: 'nobody_here', behaviour: 'blocks' })
    const refusing = await lookUp(client, 'nobody_here')
    expect(blocking.person_id).toBe(refusing.userId)
    expect(await client.error(textOf(refusing, 'Hello', 1))).toBe('400 USER_IS_BLOCKED')
    expect(await client.error(textOf(mara, ' ', 2))).toBe('400 MESSAGE_EMPTY')
    expect(await client.error(textOf(mara, 'x'.repeat(4097), 3))).toBe('400 MESSAGE_TOO_LONG')
    expect(await client.error(textOf({ ...mara, userId: mara.userId + 1 }, 'x', 4))).toBe(
      '400 PEER_ID_INVALID',
    )
    fault({ on: 'send', fault: 'refuse', error: 'PEER_FLOOD' })
    expect(await client.error(textOf(mara, 'Hello', 5))).toBe('400 PEER_FLOOD')
    fault({ on: 'send', fault: 'refuse', error: '406 PRIVACY_PREMIUM_REQUIRED' })
    expect(await client.error(textOf(mara, 'Hello', 6))).toBe('406 PRIVACY_PREMIUM_REQUIRED')
    fault({ on: 'send', fault: 'flood_wait', seconds: 17 })
    expect(await client.error(textOf(mara, 'Hello', 7))).toBe('420 FLOOD_WAIT_17')
    fault({ on: 'send', fault: 'unavailable' })
    expect(await client.error(textOf(mara, 'Hello', 8))).toBe('500 INTERNAL')
    expect(sent()).toEqual([])
  })

  test('needs the access hash that this account got for the person', async () => {
    const { stage, mara, world, sent } = await setSendingScene()
    world.addAccount({ account_id: 'acc_two', name: 'Support' })
    const other = stage.client('acc_two')
    expect(await other.error(textOf(mara, 'Hello', 1))).toBe('400 PEER_ID_INVALID')
    expect(await other.error(textOf(await lookUp(other, 'mara_lind'), 'Hello', 1))).toContain('accepted')
    expect(sent()).toEqual(['Hello'])
  })
})

describe('a request that is received and not answered', () => {
  test('is not sent again, because the data centre reports that it has it', async () => {
    const { client, mara, sent, fault } = await setSendingScene()
    fault({ on: 'send', fault: 'slow', seconds: 2 })
    await client.call(textOf(mara, 'Hello', 7))
    expect(sent()).toEqual(['Hello'])
  })

  test.each([
    { dedupe: true, messages: ['Hello'] },
    { dedupe: false, messages: ['Hello', 'Hello'] },
  ])('with the fault resend is sent again: de-duplication $dedupe', async ({ dedupe, messages }) => {
    const { client, mara, sent, fault } = await setSendingScene({ dedupe })
    fault({ on: 'send', fault: 'resend' })
    const answer = await client.call(textOf(mara, 'Hello', 7))
    expect(answer).toMatchObject({ _: 'updateShortSentMessage', id: messages.length })
    expect(sent()).toEqual(messages)
  })
})

describe('de-duplication', () => {
  test('answers a repeated random id with the first message, and accepts the same id from another account', async () => {
    const { stage, client, mara, world, sent } = await setSendingScene({ dedupe: true })
    const first = await client.call(textOf(mara, 'Hello', 7))
    expect(await client.call(textOf(mara, 'Other', 7))).toEqual({ ...first, ptsCount: 0 })
    world.addAccount({ account_id: 'acc_two', name: 'Support' })
    const other = stage.client('acc_two')
    await other.call(textOf(await lookUp(other, 'mara_lind'), 'Third', 7))
    expect(sent()).toEqual(['Hello', 'Third'])
  })
})

describe('a server salt', () => {
  test('that changes makes the client repeat its request, which is processed once', async () => {
    const { stage, client, mara, sent } = await setSendingScene()
    stage.centre.changeSalts()
    await client.call(textOf(mara, 'Hello', 7))
    expect(sent()).toEqual(['Hello'])
  })
})

describe('messages.sendMedia', () => {
  test.each([1, 262_144, 10 * 1024 * 1024 + 1])('accepts a file of %i bytes in parts', async (size) => {
    const { client, mara, world } = await setSendingScene()
    const bytes = randomBytes(size)
    const media = await upload(client, bytes)
    const request = { _: 'messages.sendMedia', peer: mara, message: 'The offer', media } as const
    const answer = await client.call({ ...request, randomId: Long.fromNumber(7) })
    expect(answer).toMatchObject({ updates: [{ id: 1 }, { message: { message: 'The offer', media: {} } }] })
    const file_sha256 = createHash('sha256').update(bytes).digest('hex')
    expect(world.journal(0)).toMatchObject([{ text: 'The offer', file_sha256 }])
    expect(await client.error({ ...request, randomId: Long.fromNumber(8) })).toBe('400 FILE_PART_0_MISSING')
    const long = { ...request, media: await upload(client, bytes), message: 'x'.repeat(1025) }
    expect(await client.error({ ...long, randomId: Long.ONE })).toBe('400 MEDIA_CAPTION_TOO_LONG')
  })
})

/** In parts of 256 KiB, the last one first. */
async function upload(client: Client, bytes: Buffer): Promise<tl.RawInputMediaUploadedDocument> {
  const id = Long.fromBytesLE([...randomBytes(8)])
  const partBytes = 256 * 1024
  const parts = Math.ceil(bytes.length / partBytes)
  const isBig = bytes.length > 10 * 1024 * 1024
  const order = Array.from({ length: parts }, (_, part) => part)
  for (const some of Array.from({ length: Math.ceil(parts / 4) }, (_, n) => order.slice(n * 4, n * 4 + 4))) {
    const calls = some.reverse().map((filePart) => {
      const part = bytes.subarray(filePart * partBytes, (filePart + 1) * partBytes)
      const request = { fileId: id, filePart, bytes: part }
      return isBig
        ? client.call({ _: 'upload.saveBigFilePart', ...request, fileTotalParts: parts })
        : client.call({ _: 'upload.saveFilePart', ...request })
    })
    expect(new Set(await Promise.all(calls))).toEqual(new Set([true]))
  }
  return {
    _: 'inputMediaUploadedDocument',
    file: isBig
      ? { _: 'inputFileBig', id, parts, name: 'offer.pdf' }
      : { _: 'inputFile', id, parts, name: 'offer.pdf', md5Checksum: '' },
    mimeType: 'application/pdf',
    attributes: [{ _: 'documentAttributeFilename', fileName: 'offer.pdf' }],
  }
}
