/** Subkeys of the instance secret, and what they seal or sign. */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  hash,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'

/** Each purpose has its own key, so that a leak or rotation of one says nothing about another. */
type Purpose =
  | 'session'
  | 'device'
  | 'webhook'
  | 'cursor'
  | 'random_id'
  | 'audit'
  | 'platform_session'
  | 'proxy'
  | 'account_login'
  | 'backup'
  | 'doctor'

export class Secrets {
  readonly #root: Buffer
  readonly #keys = new Map<Purpose, KeyObject>()

  constructor(root: string) {
    this.#root = createHash('sha256').update(root).digest()
  }

  #key(purpose: Purpose): KeyObject {
    const known = this.#keys.get(purpose)
    if (known) return known
    const key = createSecretKey(Buffer.from(hkdfSync('sha256', this.#root, 'parley', purpose, 32)))
    this.#keys.set(purpose, key)
    return key
  }

  /** HMAC-SHA256. Parts are length-prefixed: no two lists of parts share a signature. */
  sign(purpose: Purpose, ...parts: readonly string[]): Buffer {
    const message = parts.map((part) => `${Buffer.byteLength(part)}:${part}`).join('')
    return createHmac('sha256', this.#key(purpose)).update(message).digest()
  }

  /** AES-256-GCM, bound to the place where it is stored: a value moved to another row does not open. */
  seal(purpose: Purpose, place: string, plain: Uint8Array): Buffer {
    const iv = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', this.#key(purpose), iv).setAAD(Buffer.from(place))
    const sealed = Buffer.concat([cipher.update(plain), cipher.final()])
    return Buffer.concat([iv, cipher.getAuthTag(), sealed])
  }

  open(purpose: Purpose, place: string, sealed: Uint8Array): Buffer {
    const bytes = Buffer.from(sealed)
    const decipher = createDecipheriv('aes-256-gcm', this.#key(purpose), bytes.subarray(0, 12), {
      authTagLength: 16,
    })
    decipher.setAAD(Buffer.from(place)).setAuthTag(bytes.subarray(12, 28))
    return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()])
  }
}

export function sha256(data: string | Uint8Array): Buffer {
  return hash('sha256', data, 'buffer')
}
