/** The RSA key by which clients recognise the data centre: one per data directory, or one for the process. */
import {
  constants,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  privateDecrypt,
} from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ICryptoProvider, parsePublicKey } from '@mtcute/core/utils.js'

const privateName = 'mtproto-private.pem'
const publicName = 'mtproto.pem'

let ofProcess: KeyObject | undefined

export class ServerKey {
  readonly public_pem: string
  /** In hexadecimal digits. */
  readonly fingerprint: string
  readonly #private: KeyObject

  constructor(crypto: ICryptoProvider, key: KeyObject) {
    this.#private = key
    this.public_pem = String(createPublicKey(key).export({ type: 'pkcs1', format: 'pem' }))
    this.fingerprint = parsePublicKey(crypto, this.public_pem).fingerprint
  }

  decrypt(data: Uint8Array): Uint8Array {
    return privateDecrypt({ key: this.#private, padding: constants.RSA_NO_PADDING }, data)
  }
}

/** Returns the path of the public half, for `PARLEY_TELEGRAM_DC`. */
export function openServerKey(crypto: ICryptoProvider, data_dir: string): { key: ServerKey; file: string } {
  const path = join(data_dir, privateName)
  if (!existsSync(path)) {
    writeFileSync(path, makeKey(crypto).export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 })
  }
  const key = new ServerKey(crypto, createPrivateKey(readFileSync(path)))
  const file = join(data_dir, publicName)
  writeFileSync(file, key.public_pem)
  return { key, file }
}

/** Without a directory: making a key takes a quarter of a second, so tests in one process share it. */
export function processKey(crypto: ICryptoProvider): ServerKey {
  ofProcess ??= makeKey(crypto)
  return new ServerKey(crypto, ofProcess)
}

function makeKey(crypto: ICryptoProvider): KeyObject {
  for (;;) {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048, publicExponent: 65537 })
    // mtcute looks a fingerprint up without its leading zeros and would never find one that has them.
    if (!new ServerKey(crypto, privateKey).fingerprint.startsWith('0')) return privateKey
  }
}
