/**
 * What mtcute stores, as one blob: the account's data centre and its auth key, which gives full control of the
 * account. Only a login or an import makes a blob (`login.ts`, `import.ts`); a session adds the keys of other data centres (`media-keys.ts`) and
 * changes nothing else. `peers.ts` keeps the peers.
 */
import { type ITelegramStorageProvider, MemoryStorage } from '@mtcute/core'
import { type BasicDcOption, serializeBasicDcOption } from '@mtcute/core/utils.js'
import { z } from 'zod'

const blobShape = z.strictObject({
  version: z.literal(1),
  /** The data centre that knows the key. */
  dc_id: z.int(),
  key: z.base64(),
  /** mtcute's own record of that data centre's address; without it, the default address. */
  places: z.record(z.string(), z.base64()),
  /** By number: the keys of other data centres that have files. */
  others: z.record(z.string(), z.base64()).optional(),
})

/** The keys under which mtcute stores its data centre. Salts and the like are not worth keeping. */
const placeKeys = ['dc_main', 'dc_media']

/** The storage of a session. Undefined: the blob is not ours. */
export function openSessionStorage(blob: Uint8Array): ITelegramStorageProvider | undefined {
  const session = parseBlob(blob)
  if (!session) return undefined
  const storage = emptyStorage()
  for (const [name, value] of Object.entries(session.places)) storage.kv.set(name, decode(value))
  const key = decode(session.key)
  return {
    ...storage,
    // guard: only the login writes keys
    authKeys: readOnlyKeys(session.dc_id, key),
  }
}

function parseBlob(blob: Uint8Array): z.infer<typeof blobShape> | undefined {
  try {
    return blobShape.safeParse(JSON.parse(Buffer.from(blob).toString('utf8'))).data
  } catch {
    return undefined
  }
}

export function findOwnDc(blob: Uint8Array): number | undefined {
  return parseBlob(blob)?.dc_id
}

export function findForeignKey(blob: Uint8Array, dc_id: number): Uint8Array | undefined {
  const key = parseBlob(blob)?.others?.[dc_id]
  return key === undefined ? undefined : decode(key)
}

export function addForeignKey(blob: Uint8Array, dc_id: number, key: Uint8Array): Uint8Array {
  const session = parseBlob(blob)
  if (!session) throw new Error('The blob is not ours.')
  const others = { ...session.others, [dc_id]: encode(key) }
  return Buffer.from(JSON.stringify({ ...session, others }))
}

/** The storage of downloads from another data centre. */
export function openForeignStorage(dc_id: number, key: Uint8Array | undefined): ITelegramStorageProvider {
  const storage = emptyStorage()
  if (key) storage.authKeys.set(dc_id, key)
  return storage
}

/** The storage of a login: in memory, until the login has succeeded. */
export function openLoginStorage(): ITelegramStorageProvider {
  return emptyStorage()
}

/** The result of a login, without the keys of data centres that it only passed through. */
export async function makeBlob(storage: ITelegramStorageProvider, dc_id: number): Promise<Uint8Array> {
  const key = await storage.authKeys.get(dc_id)
  if (!key) throw new Error('The login has no auth key.')
  const places: Record<string, string> = {}
  for (const name of placeKeys) {
    const value = await storage.kv.get(name)
    if (value) places[name] = encode(value)
  }
  const blob: z.infer<typeof blobShape> = { version: 1, dc_id, key: encode(key), places }
  return Buffer.from(JSON.stringify(blob))
}

/** The session of another program. Its data centre is where mtcute dials. */
export function importBlob(dc: BasicDcOption, key: Uint8Array): Uint8Array {
  const place = encode(serializeBasicDcOption(dc))
  const blob: z.infer<typeof blobShape> = {
    version: 1,
    dc_id: dc.id,
    key: encode(key),
    places: { dc_main: place, dc_media: place },
  }
  return Buffer.from(JSON.stringify(blob))
}

/** mtcute's own storage in memory, except for the two tables that we keep ourselves. */
function emptyStorage() {
  const { driver, kv, authKeys } = new MemoryStorage()
  return { driver, kv, authKeys, peers: noPeers, refMessages: noMessages }
}

function readOnlyKeys(dc_id: number, key: Uint8Array): ITelegramStorageProvider['authKeys'] {
  const ignore = () => {}
  return {
    get: (dc) => (dc === dc_id ? key : null),
    set: ignore,
    setTemp: ignore,
    getTemp: () => null,
    deleteByDc: ignore,
    deleteAll: ignore,
  }
}

const noPeers: ITelegramStorageProvider['peers'] = {
  store: () => {},
  getById: () => null,
  getByUsername: () => null,
  getByPhone: () => null,
  deleteAll: () => {},
}

const noMessages: ITelegramStorageProvider['refMessages'] = {
  store: () => {},
  getByPeer: () => null,
  delete: () => {},
  deleteByPeer: () => {},
  deleteAll: () => {},
}

function encode(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

function decode(text: string): Uint8Array {
  return Buffer.from(text, 'base64')
}
