/** Encrypts a backup in the format of age (age-encryption.org/v1), which other programs open too. Streams, block by block. */
import { type FileHandle, open } from 'node:fs/promises'
import { Refusal } from '../lib/errors.ts'

/** What opens an encrypted backup: a passphrase, or the private key of a recipient, `AGE-SECRET-KEY-1…`. */
export type BackupKey = { readonly passphrase: string } | { readonly identities: readonly string[] }
/** What encrypts one: a passphrase, or the public keys of those who may open it, `age1…`. */
export type BackupLock = { readonly passphrase: string } | { readonly recipients: readonly string[] }

const firstBytes = 'age-encryption.org/v1\n'
/** More than a header with dozens of recipients has. */
const headerBytesMax = 64 * 1024
const blockBytes = 64 * 1024

export async function isEncrypted(file: FileHandle): Promise<boolean> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(firstBytes.length), 0, firstBytes.length, 0)
  return buffer.toString('latin1', 0, bytesRead) === firstBytes
}

/** False also for a file that cannot be read: opening it says why. */
export async function isEncryptedFile(path: string): Promise<boolean> {
  const file = await open(path, 'r').catch(() => undefined)
  try {
    return file !== undefined && (await isEncrypted(file).catch(() => false))
  } finally {
    await file?.close()
  }
}

export type EncryptBytes = (plain: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>

/** Refuses a recipient that is not one. */
export async function prepareEncryption(lock: BackupLock): Promise<EncryptBytes> {
  const { Encrypter } = await import('age-encryption')
  const encrypter = new Encrypter()
  if ('passphrase' in lock) encrypter.setPassphrase(lock.passphrase)
  else for (const recipient of lock.recipients) addRecipient(encrypter, recipient)
  return async function* (plain) {
    yield* await encrypter.encrypt(ReadableStream.from(plain))
  }
}

function addRecipient(encrypter: { addRecipient(s: string): void }, recipient: string): void {
  try {
    encrypter.addRecipient(recipient)
  } catch {
    // It may be the private key.
    throw new Refusal('A recipient is no public key of age: they begin with age1.') // guard: a recipient is not repeated
  }
}

export interface DecryptedFile {
  readonly size: number
  /** The plain bytes of this range, which are checked as they are read. */
  read(range: { readonly start: number; readonly end: number }): AsyncIterable<Uint8Array>
}

/** Opens only the header: a wrong passphrase or key is refused here. */
export async function decryptFile(
  file: FileHandle,
  { key, refuse }: { key: BackupKey; refuse: (why: 'wrong_key' | 'damaged') => Refusal },
): Promise<DecryptedFile> {
  const { Decrypter } = await import('age-encryption')
  const { buffer, bytesRead } = await file.read(Buffer.alloc(headerBytesMax), 0, headerBytesMax, 0)
  const decrypter = new Decrypter()
  if ('passphrase' in key) decrypter.addPassphrase(key.passphrase)
  else for (const identity of key.identities) addIdentity(decrypter, identity)
  // A passphrase costs a second, so it is used once.
  const fileKey = await decrypter.decryptHeader(buffer.subarray(0, bytesRead)).catch((error: Error) => {
    throw refuse(error.message.startsWith('no identity matched') ? 'wrong_key' : 'damaged') // guard: a wrong key opens no backup
  })
  const open = async () => {
    const again = new Decrypter()
    again.addIdentity({ unwrapFileKey: () => fileKey })
    return again.decrypt(ReadableStream.from(blocksOf(file)))
  }
  const { size } = await file.stat()
  const sized = await open()
  const plainSize = tryOr(
    () => sized.size(size),
    () => refuse('damaged'),
  )
  await sized.cancel()
  return {
    size: plainSize,
    async *read({ start, end }) {
      let at = 0
      try {
        for await (const bytes of await open()) {
          const from = Math.max(0, start - at)
          const part = bytes.subarray(from, Math.max(from, end + 1 - at))
          at += bytes.length
          if (part.length > 0) yield part
          if (at > end && end + 1 < plainSize) return
        }
      } catch {
        throw refuse('damaged') // guard: a cut encrypted file is refused
      }
    },
  }
}

/** A reader may stop early, which a stream of Node reports as an error. */
async function* blocksOf(file: FileHandle): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; ; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(blockBytes), 0, blockBytes, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

function tryOr<T>(work: () => T, refuse: () => Refusal): T {
  try {
    return work()
  } catch {
    throw refuse()
  }
}

function addIdentity(decrypter: { addIdentity(s: string): void }, identity: string): void {
  try {
    decrypter.addIdentity(identity)
  } catch {
    throw new Refusal('The identity is no private key of age: they begin with AGE-SECRET-KEY-1.')
  }
}
