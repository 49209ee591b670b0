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
  subtle,
} from 'node:crypto'

/**
 * Keys that never change: what they signed is stored for good, or has to be found again. The database stores each, sealed, and
 * its value outlives the secret that it was first derived from.
 */
export const storedPurposes = ['random_id', 'audit', 'tombstone', 'login_number'] as const
export type StoredPurpose = (typeof storedPurposes)[number]

/** Signed and handed out: not stored, and valid while a process knows the secret that signed it. */
export const signedPurposes = ['device', 'cursor', 'backup', 'doctor'] as const
/** Sealed: in the database, but for `session`, which is a cookie of ten minutes. */
export const sealedPurposes = [
  'session',
  'webhook',
  'platform_session',
  'proxy',
  'account_login',
  'stored_key',
] as const

/** Each purpose has its own key, so that a leak of one says nothing about another. */
export type SealedPurpose = (typeof sealedPurposes)[number]
export type SignedPurpose = StoredPurpose | (typeof signedPurposes)[number]

/** A secret and its subkeys. */
class Root {
  readonly #root: Buffer
  readonly #keys = new Map<string, KeyObject>()
  /** Identifies the secret without revealing anything about it: from a subkey that has no other use. */
  readonly id: string

  constructor(text: string) {
    this.#root = createHash('sha256').update(text).digest()
    this.id = signWith(this.key('backup'), ['secret']).toString('hex')
  }

  key(purpose: SealedPurpose | SignedPurpose): KeyObject {
    const known = this.#keys.get(purpose)
    if (known) return known
    const key = createSecretKey(this.bytes(purpose))
    this.#keys.set(purpose, key)
    return key
  }

  bytes(purpose: string): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#root, 'parley', purpose, 32))
  }
}

/** What a sealed value was, and the secret it was sealed with. */
export interface OpenedValue {
  readonly plain: Buffer
  readonly secret_id: string
}

/**
 * The secrets that this process was given: its own, and during a rotation the old one as well. All of them open and verify. The
 * database says which one seals and signs (`db/secret-use.ts`), so that no process uses one that another does not know yet.
 */
export class Secrets {
  readonly #roots: readonly Root[]
  #sealing: Root
  /** How many rotations the choice of `#sealing` comes from. */
  #turn = -1
  #stored: ReadonlyMap<StoredPurpose, KeyObject> = new Map()

  constructor(secret: string, old?: string) {
    const own = new Root(secret)
    this.#roots = old === undefined ? [own] : [own, new Root(old)]
    this.#sealing = own
  }

  /** The given secrets, its own first. */
  get ids(): readonly string[] {
    return this.#roots.map(({ id }) => id)
  }

  /** The one that seals and signs. */
  get id(): string {
    return this.#sealing.id
  }

  /**
   * Seals with this secret from now on. An answer of the database that is older than the last one changes nothing. False: this
   * process does not know the secret.
   */
  sealWith({ secret_id, turn }: { readonly secret_id: string; readonly turn: number }): boolean {
    const root = this.#roots.find(({ id }) => id === secret_id)
    if (!root) return false
    if (turn < this.#turn) return true // guard: an older answer about the secret in use
    this.#turn = turn
    this.#sealing = root
    return true
  }

  /** The value of a key that never changes, as far as it is derived from the secret in use. */
  derive(purpose: StoredPurpose): Buffer {
    return this.#sealing.bytes(purpose)
  }

  /** Whether the stored keys were opened. If not, the instance was set up with another secret. */
  get isTied(): boolean {
    return this.#stored.size > 0
  }

  /** From now on these are used in place of the derived ones. */
  useStored(keys: ReadonlyMap<StoredPurpose, Uint8Array>): void {
    this.#stored = new Map(
      [...keys].map(([purpose, bytes]) => [purpose, createSecretKey(Buffer.from(bytes))]),
    )
  }

  /** HMAC-SHA256. Parts are length-prefixed: no two lists of parts share a signature. */
  sign(purpose: SignedPurpose, ...parts: readonly string[]): Buffer {
    return signWith(this.#storedKey(purpose) ?? this.#sealing.key(purpose), parts)
  }

  /** What each known secret would sign: a value that was handed out before a rotation still verifies. */
  signatures(purpose: SignedPurpose, ...parts: readonly string[]): readonly Buffer[] {
    const stored = this.#storedKey(purpose)
    const keys = stored ? [stored] : this.#roots.map((root) => root.key(purpose)) // guard: signatures of the old secret
    return keys.map((key) => signWith(key, parts))
  }

  #storedKey(purpose: SignedPurpose): KeyObject | undefined {
    return this.#stored.get(purpose as StoredPurpose) // guard: a stored key is used
  }

  /** AES-256-GCM, bound to the place where it is stored: a value moved to another row does not open. */
  seal(purpose: SealedPurpose, place: string, plain: Uint8Array): Buffer {
    const iv = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', this.#sealing.key(purpose), iv).setAAD(Buffer.from(place))
    const sealed = Buffer.concat([cipher.update(plain), cipher.final()])
    return Buffer.concat([iv, cipher.getAuthTag(), sealed])
  }

  /** Throws if none of the known secrets opens it. */
  open(purpose: SealedPurpose, place: string, sealed: Uint8Array): Buffer {
    return this.openAny(purpose, place, sealed).plain
  }

  openAny(purpose: SealedPurpose, place: string, sealed: Uint8Array): OpenedValue {
    const others = this.#roots.filter((root) => root !== this.#sealing)
    let failure: unknown
    for (const root of [this.#sealing, ...others]) {
      try {
        return { plain: openWith(root.key(purpose), place, sealed), secret_id: root.id }
      } catch (error) {
        failure ??= error
      }
    }
    throw failure
  }
}

function signWith(key: KeyObject, parts: readonly string[]): Buffer {
  const message = parts.map((part) => `${Buffer.byteLength(part)}:${part}`).join('')
  return createHmac('sha256', key).update(message).digest()
}

function openWith(key: KeyObject, place: string, sealed: Uint8Array): Buffer {
  const bytes = Buffer.from(sealed)
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12), { authTagLength: 16 })
  decipher.setAAD(Buffer.from(place)).setAuthTag(bytes.subarray(12, 28))
  return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()])
}

/** How a secret is named to operators: enough of its id to tell two apart. */
export function shortId(secret_id: string): string {
  return secret_id.slice(0, 8)
}

export function sha256(data: string | Uint8Array): Buffer {
  return hash('sha256', data, 'buffer')
}

/** A shorter text is hashed in a millisecond. */
const longText = 256 * 1024

/** The same of a text that may be long, which another thread hashes: eight megabytes take 30 ms. */
export async function sha256Beside(text: string): Promise<Buffer> {
  if (text.length <= longText) return sha256(text)
  return Buffer.from(await subtle.digest('SHA-256', Buffer.from(text)))
}
