/** Errors and stalls that the real service answers with, at the data centre: over the wire, through mtcute, to what a session makes of them. */
import { describe, expect, test } from 'vitest'
import { hashOf } from '../../../test/platform/conformance-downloads.ts'
import { openMediaScene } from '../../../test/platform/media-scene.ts'
import { writeMessage } from '../sandbox/person-acts.ts'

const until = (isDone: () => boolean) => expect.poll(isDone, { timeout: 30_000 }).toBe(true)

/** A session that has a chat with the person. */
async function open() {
  const scene = await openMediaScene()
  const { world, account_id, person_id, connect } = scene
  const write = (text: string) => writeMessage(world, { account_id, person_id, text })
  write('Hello')
  const { session, recorder } = await connect()
  await session.chats({ after: null, limit: 50 })
  let random_id = 0
  const send = () =>
    session.send({ chat_id: `${person_id}`, text: 'Hi', file: null, random_id: `${++random_id}` })
  return { ...scene, session, recorder, write, send }
}

describe('a send that Telegram answers with', () => {
  test.each([
    ['YOU_BLOCKED_USER', 'chat_unavailable'],
    ['USER_ID_INVALID', 'chat_unavailable'],
    ['CHAT_INVALID', 'chat_unavailable'],
    ['INPUT_REQUEST_TOO_LONG', 'message_invalid'],
  ])('%s is refused, and the session goes on', async (error, reason) => {
    const { centre, send, recorder, session } = await open()
    centre.refusals.add({ on: 'messages.sendMessage', error })
    expect(await send()).toEqual({ kind: 'refused', reason, detail: error })
    expect(await send()).toMatchObject({ kind: 'accepted' })
    expect(await session.ping()).toBe(true)
    expect(recorder.closedWith).toBeNull()
  })

  test('an error that no list has stays unknown, and keeps its name', async () => {
    const { centre, send } = await open()
    const error = 'CHAT_INVALID_BY_MOONLIGHT'
    centre.refusals.add({ on: 'messages.sendMessage', error })
    expect(await send()).toEqual({ kind: 'unknown', reason: error, error })
  })
})

describe('a frozen account', () => {
  const appeals = expect.stringMatching(
    /A new login does not help\. Appeal in the official app.*FROZEN_METHOD_INVALID/,
  )

  test('that sends is restricted, with how to appeal', async () => {
    const { centre, send, recorder } = await open()
    centre.refusals.add({ on: 'messages.sendMessage', error: '420 FROZEN_METHOD_INVALID' })
    expect(await send()).toEqual({ kind: 'refused', reason: 'restricted', detail: 'FROZEN_METHOD_INVALID' })
    await until(() => recorder.closedWith !== null)
    expect(recorder.closedWith).toEqual({ status: 'restricted', reason: appeals })
  })
})

describe('a download that Telegram answers with', () => {
  test.each(['FILEREF_UPGRADE_NEEDED', '406 FILEREF_UPGRADE_NEEDED', 'DC_ID_INVALID'])(
    '%s is gone, and the next one arrives',
    async (error) => {
      const { centre, session, sendFile, fetch, recorder } = await open()
      const place = sendFile({ size: 900, seed: 1 })
      centre.refusals.add({ on: 'upload.getFile', error })
      expect(await fetch(session, place)).toMatchObject({ kind: 'refused', reason: 'file_unavailable' })
      expect(await fetch(session, place)).toBe(hashOf(900, 1))
      expect(recorder.closedWith).toBeNull()
    },
  )
})

describe('a difference that is asked for after a while away', () => {
  /** What the next session gets of a message that was written meanwhile. */
  async function away(prepare: (centre: Awaited<ReturnType<typeof open>>['centre']) => void) {
    const scene = await open()
    const { session, recorder, write, centre, connect } = scene
    await until(() => recorder.position !== null)
    await session.close()
    write('While you were away')
    prepare(centre)
    const next = recorder.continued()
    return { ...scene, next, back: await connect(next) }
  }

  test('PERSISTENT_TIMESTAMP_OUTDATED asks for patience: nothing is missing', async () => {
    const error = '500 PERSISTENT_TIMESTAMP_OUTDATED'
    const { next } = await away(({ refusals }) =>
      refusals.add({ on: 'updates.getDifference', error, times: 3 }),
    )
    await until(() => next.texts.length === 1)
    expect(next.texts).toEqual(['While you were away'])
    expect(next.of('gap')).toEqual([])
    expect(next.closedWith).toBeNull()
  })

  test('PERSISTENT_TIMESTAMP_INVALID is a gap, which the session reports before it ends', async () => {
    const { next } = await away(({ refusals }) =>
      refusals.add({ on: 'updates.getDifference', error: 'PERSISTENT_TIMESTAMP_INVALID' }),
    )
    await until(() => next.closedWith !== null)
    expect(next.of('gap')).toHaveLength(1)
    expect(next.closedWith).toMatchObject({ status: 'restricted' })
  })

  test('that does not advance ends the session after a few slices, and the next one gets everything', async () => {
    const stalls = { on: 'updates.getDifference', times: 50 }
    const { centre, next, connect } = await away((each) => each.stalls.add(stalls))
    await until(() => next.closedWith !== null)
    expect(next.closedWith).toMatchObject({ status: 'lost' })
    expect(next.texts).toEqual([])
    // Not all of them were needed.
    expect(centre.stalls.clear()).toBe(1)
    const later = next.continued()
    await connect(later)
    await until(() => later.texts.length === 1)
    expect(later.of('gap')).toEqual([])
    expect(later.closedWith).toBeNull()
  })

  test('that stalls once and then advances costs nothing', async () => {
    const { next } = await away(({ stalls }) => stalls.add({ on: 'updates.getDifference', times: 2 }))
    await until(() => next.texts.length === 1)
    expect(next.closedWith).toBeNull()
  })
})
