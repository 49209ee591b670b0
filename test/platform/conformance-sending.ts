/** The conformance suite on sending. */
import { describe, expect, test } from 'vitest'
import { expectAccepted, within } from './conformance-recorder.ts'
import { messageIn, type Stage } from './conformance-stage.ts'

export function sendingConform(stage: () => Stage): void {
  describe('send', () => {
    test('accepts a text, and shows it with its random id', async () => {
      const scene = await stage().setScene()
      const { session, recorder, account_id, chat_id } = scene
      const submission = messageIn(scene, 'Hello 👋 – “ünïcode”\nand a second line')
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
      expect(await stage().others.sentTexts(account_id)).toEqual([text])
    })

    test('accepts one file, and its handle once', async () => {
      const scene = await stage().setScene()
      const { session, recorder, account_id } = scene
      const attachment = { file_name: 'offer.pdf', media_type: 'application/pdf', size: 700_000 }
      const chunks = async function* () {
        for (let n = 0; n < 7; n++) yield new Uint8Array(100_000).fill(n)
      }
      const file = expectAccepted(await session.upload({ ...attachment, chunks: chunks() }))
      expectAccepted(await session.send({ ...messageIn(scene, ''), file }))
      await recorder.until(() => recorder.messages.length === 1)
      expect(recorder.messages[0]?.message.attachments).toEqual([{ ...attachment, index: 0, kind: 'file' }])
      const again = { ...messageIn(scene, 'Without the file it is another message'), file }
      expect(await session.send(again)).not.toMatchObject({ kind: 'accepted' })
      expect(await stage().others.sentTexts(account_id)).not.toContain(again.text)
    })

    test('refuses a caption over the limit before the call', async () => {
      const scene = await stage().setScene()
      const { session, account_id } = scene
      const { captionLengthMax } = stage().fixture
      const sendFile = async (text: string) => {
        const attachment = { file_name: 'a.txt', media_type: 'text/plain', size: 3 }
        const chunks = async function* () {
          yield new Uint8Array(3)
        }
        const file = expectAccepted(await session.upload({ ...attachment, chunks: chunks() }))
        return session.send({ ...messageIn(scene, text), file })
      }
      const longest = '👋'.repeat(captionLengthMax ?? 4096)
      if (captionLengthMax !== null) {
        // The fault strikes the first call, so it is still there afterwards if the caption made none.
        await stage().others.fault({ on: 'send', fault: 'flood_wait', seconds: 9, account_id })
        const outcome = await sendFile(`${longest}!`)
        expect(outcome).toMatchObject({ kind: 'refused', reason: 'message_invalid' })
        expect(await sendFile('')).toMatchObject({ kind: 'flood_wait' })
      }
      expectAccepted(await sendFile(longest))
      expect(await stage().others.sentTexts(account_id)).toEqual([longest])
    })

    test('returns refusals and flood waits, and nothing is sent', async () => {
      const scene = await stage().setScene()
      const { session, account_id } = scene
      await stage().others.fault({ on: 'send', fault: 'flood_wait', seconds: 17, account_id })
      expect(await session.send(messageIn(scene, 'a'))).toEqual({
        kind: 'flood_wait',
        retry_after_seconds: 17,
        stops: 'sends',
      })
      await stage().others.fault({ on: 'send', fault: 'refuse', account_id })
      expect(await session.send(messageIn(scene, 'b'))).toMatchObject({ kind: 'refused' })
      const username = `blocker_${stage().nextNumber()}`
      const blocker = await stage().others.addPerson({ name: 'Blocker', username, behaviour: 'blocks' })
      expectAccepted(await session.resolve({ kind: 'username', value: username }))
      const outcome = await session.send({ ...messageIn(scene, 'c'), chat_id: `${blocker}` })
      expect(outcome).toMatchObject({ kind: 'refused', reason: 'blocked_by_person' })
      expect(await stage().others.sentTexts(account_id)).toEqual([])
    })

    test('is unknown when the platform answers with an error', async () => {
      const scene = await stage().setScene()
      await stage().others.fault({ on: 'send', fault: 'unavailable', account_id: scene.account_id })
      expect(await scene.session.send(messageIn(scene, 'a'))).toMatchObject({ kind: 'unknown' })
    })

    test('is unknown when the connection is lost, and the next session shows the outcome', async () => {
      const scene = await stage().setScene()
      const { account, account_id, session, recorder } = scene
      await stage().others.write({ account_id, person_id: scene.person_id, text: 'hello' })
      await recorder.until(() => recorder.position !== null)
      await stage().others.fault({ on: 'send', fault: 'drop_after', account_id })
      const submission = messageIn(scene, 'cut off')
      expect(await session.send(submission)).toMatchObject({ kind: 'unknown' })
      expect(await within(2000, recorder.closedReason)).toMatchObject({ status: 'lost' })
      expect(await session.send(messageIn(scene, 'after'))).toMatchObject({ kind: 'not_written' })
      expect(await stage().others.sentTexts(account_id)).toEqual(['cut off'])
      expect(recorder.sentIds).toEqual([])
      const next = recorder.continued()
      await stage().connect(account, next)
      await next.until(() => next.sentIds.length > 0)
      expect(next.sentIds).toEqual([submission.random_id])
    })

    test('is submitted once even when no answer ever comes', async () => {
      const scene = await stage().setScene()
      const { account_id, session } = scene
      await stage().others.fault({ on: 'send', fault: 'timeout_before', account_id })
      const never = session.send(messageIn(scene, 'lost on the way'))
      expectAccepted(await session.send(messageIn(scene, 'the next')))
      await session.close()
      expect(await never).toMatchObject({ kind: 'unknown' })
      expect(await stage().others.sentTexts(account_id)).toEqual(['the next'])
    })
  })
}
