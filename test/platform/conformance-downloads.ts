/** The conformance suite on downloads. */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Download, downloadChunkBytes, type Outcome } from '../../src/platform/port.ts'
import { readFile } from '../../src/platform/sandbox/file-bytes.ts'
import { expectAccepted } from './conformance-recorder.ts'
import { messageIn, type Scene, type SentFile, type Stage } from './conformance-stage.ts'

/** The hash of a seeded file as the other side made it. */
export function hashOf(size: number, seed: number): string {
  const hash = createHash('sha256')
  const file = { index: 0, kind: 'file', file_name: '', media_type: '', size, seed } as const
  for (let at = 0; at < size; at += downloadChunkBytes) hash.update(readFile(file, at, downloadChunkBytes))
  return hash.digest('hex')
}

interface ReadFile {
  readonly sizes: readonly number[]
  readonly sha256: string
  /** The outcome that ended the chunks early, if one did. */
  readonly end: Outcome<Uint8Array> | null
}

export async function readAll({ chunks }: Download): Promise<ReadFile> {
  const hash = createHash('sha256')
  const sizes: number[] = []
  for await (const chunk of chunks) {
    if (chunk.kind !== 'accepted') return { sizes, sha256: hash.digest('hex'), end: chunk }
    hash.update(chunk.value)
    sizes.push(chunk.value.length)
  }
  return { sizes, sha256: hash.digest('hex'), end: null }
}

export function downloadsConform(stage: () => Stage): void {
  async function sendFile(scene: Scene, file: SentFile) {
    const { account_id, person_id, chat_id } = scene
    const id = await stage().others.write({ account_id, person_id, file })
    return { id, place: { chat_id, message_id: String(id), index: 0 } }
  }

  describe('download', () => {
    test.each([1, 262_143, 262_144, 262_145, 700_000])('returns a file of %i bytes whole', async (size) => {
      const scene = await stage().setScene()
      const { place } = await sendFile(scene, { size, seed: size, file_name: 'offer.pdf' })
      const download = expectAccepted(await scene.session.download(place))
      expect(download.size).toBe(size)
      const { sizes, sha256, end } = await readAll(download)
      expect(end).toBeNull()
      expect(sha256).toBe(hashOf(size, size))
      expect(sizes.slice(0, -1).every((each) => each === downloadChunkBytes)).toBe(true)
    })

    test('messages say what their files are', async () => {
      const scene = await stage().setScene()
      const { recorder } = scene
      const photo = {
        kind: 'photo',
        media_type: 'image/jpeg',
        size: 9,
        seed: 1,
        width: 640,
        height: 480,
      } as const
      const voice = { kind: 'voice', media_type: 'audio/ogg', size: 9, seed: 2, seconds: 7 } as const
      for (const file of [photo, voice]) await sendFile(scene, file)
      await recorder.until(() => recorder.messages.length === 2)
      const [one, two] = recorder.messages.map(({ message }) => message.attachments)
      expect(one).toEqual([
        {
          index: 0,
          kind: 'photo',
          file_name: 'photo',
          media_type: 'image/jpeg',
          size: 9,
          width: 640,
          height: 480,
        },
      ])
      expect(two).toEqual([
        { index: 0, kind: 'voice', file_name: 'voice', media_type: 'audio/ogg', size: 9, seconds: 7 },
      ])
    })

    test('is refused if the file does not exist, or no longer does', async () => {
      const scene = await stage().setScene()
      const { account_id, person_id, session, recorder, chat_id } = scene
      const gone = { kind: 'refused', reason: 'file_unavailable' }
      const text = await stage().others.write({ account_id, person_id, text: 'no file' })
      expect(await session.download({ chat_id, message_id: String(text), index: 0 })).toMatchObject(gone)
      const { id, place } = await sendFile(scene, { size: 9, seed: 1 })
      expect(await session.download({ ...place, index: 1 })).toMatchObject(gone)
      expect(await session.download({ ...place, message_id: '999999' })).toMatchObject(gone)
      await stage().others.remove({ account_id, person_id, message_id: id })
      expect(await session.download(place)).toMatchObject(gone)
      expect(recorder.closedWith).toBeNull()
    })

    test('of a file with a timer is refused, and the message does not show it', async () => {
      const scene = await stage().setScene()
      const { recorder, session } = scene
      const { place } = await sendFile(scene, { kind: 'photo', size: 9, seed: 1, timer_seconds: 10 })
      await recorder.until(() => recorder.messages.length === 1)
      expect(recorder.messages[0]?.message.attachments).toEqual([])
      expect(await session.download(place)).toMatchObject({ kind: 'refused', reason: 'file_unavailable' })
    })

    test('after an edit returns the new file', async () => {
      const scene = await stage().setScene()
      const { account_id, person_id, session } = scene
      const { id, place } = await sendFile(scene, { size: 300_000, seed: 1 })
      const edit = { account_id, person_id, message_id: id, text: 'better' }
      await stage().others.edit({ ...edit, file: { size: 400_000, seed: 2 } })
      const download = expectAccepted(await session.download(place))
      expect(await readAll(download)).toMatchObject({ sha256: hashOf(400_000, 2), end: null })
    })

    test('returns a flood wait, and works afterwards', async () => {
      const scene = await stage().setScene()
      const { account_id, session } = scene
      const { place } = await sendFile(scene, { size: 9, seed: 1 })
      await stage().others.fault({ on: 'download', fault: 'flood_wait', seconds: 40, account_id })
      const wait = { kind: 'flood_wait', retry_after_seconds: 40, stops: 'reading' }
      const outcome = await session.download(place)
      expect(outcome.kind === 'accepted' ? (await readAll(outcome.value)).end : outcome).toEqual(wait)
      const download = expectAccepted(await session.download(place))
      expect(await readAll(download)).toMatchObject({ sha256: hashOf(9, 1), end: null })
    })

    test('runs two at a time, and ends when its reader stops', async () => {
      const scene = await stage().setScene()
      const places = [
        (await sendFile(scene, { size: 1_500_000, seed: 1 })).place,
        (await sendFile(scene, { size: 1_000_000, seed: 2 })).place,
      ]
      const reads = places.map(async (place) => readAll(expectAccepted(await scene.session.download(place))))
      const left = expectAccepted(await scene.session.download(places[0] ?? (places[1] as never)))
      for await (const _ of left.chunks) break
      const [one, two] = await Promise.all(reads)
      expect(one?.sha256).toBe(hashOf(1_500_000, 1))
      expect(two?.sha256).toBe(hashOf(1_000_000, 2))
    })

    test('ends with the session, and is not written after it', async () => {
      const scene = await stage().setScene()
      const { place } = await sendFile(scene, { size: 5_000_000, seed: 1 })
      const download = expectAccepted(await scene.session.download(place))
      const reading = readAll(download)
      await scene.session.close()
      const { end } = await reading
      expect(end?.kind === 'unknown' || end?.kind === 'not_written').toBe(true)
      expect(await scene.session.download(place)).toMatchObject({ kind: 'not_written' })
    })

    test('of a file that the account itself sent does not disturb the session', async () => {
      const scene = await stage().setScene()
      const { session, recorder, chat_id } = scene
      const bytes = async function* () {
        yield new Uint8Array(9)
      }
      const upload = { file_name: 'own.pdf', media_type: 'application/pdf', size: 9, chunks: bytes() }
      const file = expectAccepted(await session.upload(upload))
      const { message_id } = expectAccepted(await session.send({ ...messageIn(scene, ''), file }))
      const outcome = await session.download({ chat_id, message_id, index: 0 })
      expect(['accepted', 'refused']).toContain(outcome.kind)
      expect(await session.ping()).toBe(true)
      expect(recorder.closedWith).toBeNull()
    })
  })
}
