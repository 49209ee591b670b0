/** Identifiers, generated in the application because PostgreSQL before 18 has no UUIDv7. */
import { hash, randomBytes, randomUUID } from 'node:crypto'
import { sha256 } from './secrets.ts'

let lastMs = 0
let counter = 0

/** A UUIDv7: sorts by creation time, strictly so within one process. */
export function newId(): string {
  // Its last 62 bits are as random as ours must be, and Node draws many at once.
  const random = randomUUID()
  const now = Date.now()
  if (now > lastMs) {
    lastMs = now
    counter = Number.parseInt(random.slice(0, 3), 16) & 0x7ff
  } else if (++counter > 0xfff) {
    lastMs += 1
    counter = 0
  }
  const time = lastMs.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter.toString(16).padStart(3, '0')}${random.slice(18)}`
}

/** A UUIDv8: the same parts always give the same one, other parts never do. */
export function derivedId(...parts: readonly string[]): string {
  const hex = sha256(JSON.stringify(parts)).toString('hex')
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** A UUIDv5 (RFC 9562): the same name in the same namespace gives the same UUID in every program. */
export function namedId(namespace: string, name: string): string {
  const bytes = Buffer.concat([Buffer.from(namespace.replaceAll('-', ''), 'hex'), Buffer.from(name)])
  const hex = hash('sha1', bytes, 'hex')
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** The namespace that RFC 9562 reserves for URLs. */
export const urlNamespace = '6ba7b811-9dad-11d1-80b4-00c04fd430c8'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Random base62 characters, each equally likely. */
export function randomText(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < 248 && text.length < length) text += alphabet[byte % 62]
    }
  }
  return text
}

/** A number as base62, padded to a fixed width. */
export function base62(value: number, width: number): string {
  let text = ''
  for (let rest = value; text.length < width; rest = Math.floor(rest / 62)) text = alphabet[rest % 62] + text
  return text
}

export function newAccountId(): string {
  return `acc_${randomText(20)}`
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function isUuid(text: string): boolean {
  return uuid.test(text)
}
