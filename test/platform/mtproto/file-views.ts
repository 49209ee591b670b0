/** How a client sees the file of a message. */
import { createHash } from 'node:crypto'
import type { tl } from '@mtcute/core'
import Long from 'long'
import type { WorldFile } from '../../../src/platform/sandbox/entries.ts'
import type { Post } from '../../../src/platform/sandbox/state.ts'

/** The data centre of a file that names none. */
const firstDc = 2
/** Telegram's name for the largest size of a photo. */
export const wholeSize = 'y'

/** Another file under the same message has another id. */
export function fileIdOf({ message_id }: Post, { size, seed = 0, data = '' }: WorldFile): Long {
  const digest = createHash('sha256').update(`${size} ${seed} ${data}`).digest()
  return new Long(message_id, digest.readUInt32LE(0) & 0x7fffffff)
}

export function viewFile(post: Post, file: WorldFile, date: number): tl.TypeMessageMedia {
  const numbers = {
    id: fileIdOf(post, file),
    accessHash: Long.ONE,
    fileReference: new Uint8Array(0),
    date,
    dcId: file.dc ?? firstDc,
  }
  const { size, media_type: mimeType, width: w = 1, height: h = 1, timer_seconds } = file
  const timer = timer_seconds !== undefined && { ttlSeconds: timer_seconds }
  if (file.kind === 'photo') {
    const sizes: tl.TypePhotoSize[] = [
      { _: 'photoStrippedSize', type: 'i', bytes: new Uint8Array(8) },
      { _: 'photoSizeProgressive', type: wholeSize, w, h, sizes: [1, size] },
    ]
    return { _: 'messageMediaPhoto', photo: { _: 'photo', ...numbers, sizes }, ...timer }
  }
  const document = {
    _: 'document' as const,
    ...numbers,
    mimeType,
    size,
    attributes: attributesOf(file, { w, h }),
  }
  return { _: 'messageMediaDocument', document, ...timer }
}

function attributesOf(
  { kind, file_name: fileName, seconds: duration = 0 }: WorldFile,
  sides: { readonly w: number; readonly h: number },
): tl.TypeDocumentAttribute[] {
  const named = { _: 'documentAttributeFilename', fileName } as const
  if (kind === 'voice') return [{ _: 'documentAttributeAudio', voice: true, duration }]
  if (kind === 'video') return [{ _: 'documentAttributeVideo', duration, ...sides }, named]
  if (kind !== 'sticker') return [named]
  return [
    { _: 'documentAttributeImageSize', ...sides },
    { _: 'documentAttributeSticker', alt: '', stickerset: { _: 'inputStickerSetEmpty' } },
  ]
}
