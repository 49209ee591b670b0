/** The server's side of MTProto 2.0: decrypts the messages of clients, encrypts its own. */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { u8 } from '@fuman/utils'
import { createAesIgeForMessage, type ICryptoProvider, TlBinaryWriter } from '@mtcute/core/utils.js'
import type Long from 'long'
import { readerAt } from './tl.ts'

interface DecryptedMessage {
  readonly salt: Long
  readonly session_id: Long
  readonly id: Long
  readonly seq: number
  readonly body: Uint8Array
}

/** Throws unless the packet is encrypted with this key. */
export function decrypt(crypto: ICryptoProvider, key: Uint8Array, packet: Uint8Array): DecryptedMessage {
  const messageKey = packet.subarray(8, 24)
  if (packet.length % 16 !== 8) throw new Error('Not whole blocks.')
  const plain = createAesIgeForMessage(crypto, key, messageKey, true).decrypt(packet.subarray(24))
  const expected = crypto.sha256(u8.concat2(key.subarray(88, 120), plain)).subarray(8, 24)
  if (!timingSafeEqual(messageKey, expected)) throw new Error('Not encrypted with this key.')
  const reader = readerAt(plain)
  const head = { salt: reader.long(), session_id: reader.long(), id: reader.long(true), seq: reader.uint() }
  const length = reader.uint()
  if (length > plain.length - reader.pos) throw new Error('Longer than its frame.')
  return { ...head, body: reader.raw(length) }
}

interface EncryptedMessage extends DecryptedMessage {
  readonly key: Uint8Array
  /** In hexadecimal. */
  readonly key_id: string
}

export function encrypt(crypto: ICryptoProvider, message: EncryptedMessage): Uint8Array {
  const { key, key_id, salt, session_id, id, seq, body } = message
  const padding = randomBytes(12 + ((16 - ((32 + body.length + 12) % 16)) % 16))
  const writer = TlBinaryWriter.manual(32 + body.length + padding.length)
  writer.long(salt)
  writer.long(session_id)
  writer.long(id)
  writer.uint(seq)
  writer.uint(body.length)
  writer.raw(body)
  writer.raw(padding)
  const plain = writer.result()
  const messageKey = crypto.sha256(u8.concat2(key.subarray(96, 128), plain)).subarray(8, 24)
  const encrypted = createAesIgeForMessage(crypto, key, messageKey, false).encrypt(plain)
  return u8.concat3(Buffer.from(key_id, 'hex'), messageKey, encrypted)
}
