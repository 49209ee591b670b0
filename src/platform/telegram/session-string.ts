/**
 * Session strings of other programs: Telethon and gramjs (`1`, then base64 of the data centre, its address and the key), and
 * Pyrogram (base64url of the data centre, then the key). The address in a string is ignored: Parley dials its own list.
 */

export interface SessionString {
  readonly dc_id: number
  readonly key: Uint8Array
  /** Whether it belongs to Telegram's test servers; null: the string does not say. */
  readonly test: boolean | null
}

const keyBytes = 256

/** Telethon packs an address into 4 or 16 bytes; gramjs writes it as text after its length. Two more bytes are the port. */
const addressBytesMax = 2 + 64

/** Where the key begins and how long the whole is: with an api_id, with a 64-bit user id, and the oldest. */
const pyrogramForms = [
  { length: 271, key: 6, test: 5 },
  { length: 267, key: 2, test: 1 },
  { length: 263, key: 2, test: 1 },
] as const

/** Undefined: it is none of them. */
export function readSessionString(text: string): SessionString | undefined {
  const given = text.trim()
  const found = given.startsWith('1') ? readTelethon(given.slice(1)) : readPyrogram(given)
  // Telegram has five data centres. A key of equal bytes is a placeholder.
  const isPlausible = found && found.dc_id >= 1 && found.dc_id <= 5 && new Set(found.key).size > 1 // guard: a session string is checked
  return isPlausible ? found : undefined
}

function readTelethon(text: string): SessionString | undefined {
  const bytes = decode(text)
  const address = bytes ? bytes.length - keyBytes - 3 : 0
  if (!bytes || address < 4 || address > addressBytesMax) return undefined
  return { dc_id: bytes[0] ?? 0, key: bytes.subarray(-keyBytes), test: null }
}

function readPyrogram(text: string): SessionString | undefined {
  const bytes = decode(text)
  const form = pyrogramForms.find(({ length }) => length === bytes?.length)
  if (!bytes || !form) return undefined
  const key = bytes.subarray(form.key, form.key + keyBytes)
  return { dc_id: bytes[0] ?? 0, key, test: bytes[form.test] === 1 }
}

/** Either alphabet, with or without padding. Node skips what is not base64, so it is looked at first. */
function decode(text: string): Buffer | undefined {
  return /^[\w+/-]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : undefined
}
