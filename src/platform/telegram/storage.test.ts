import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { makeBlob, openLoginStorage, openSessionStorage } from './storage.ts'

async function loggedIn() {
  const storage = openLoginStorage()
  const key = new Uint8Array(randomBytes(256))
  await storage.authKeys.set(2, new Uint8Array(256))
  await storage.authKeys.set(4, key)
  await storage.kv.set('dc_main', new Uint8Array([1, 2, 3]))
  await storage.kv.set('salts', new Uint8Array([9]))
  return { key, blob: await makeBlob(storage, 4) }
}

test('a login stores the key of one data centre, and where that is', async () => {
  const { key, blob } = await loggedIn()
  const storage = openSessionStorage(blob)
  expect(await storage?.authKeys.get(4)).toEqual(Buffer.from(key))
  expect(await storage?.authKeys.get(2)).toBeNull()
  expect(await storage?.kv.get('dc_main')).toEqual(Buffer.from([1, 2, 3]))
  expect(await storage?.kv.get('salts')).toBeNull()
})

test('a session neither writes nor deletes a key', async () => {
  const { key, blob } = await loggedIn()
  const storage = openSessionStorage(blob)
  await storage?.authKeys.set(4, null)
  await storage?.authKeys.deleteByDc(4)
  await storage?.authKeys.deleteAll()
  expect(await storage?.authKeys.get(4)).toEqual(Buffer.from(key))
})

test.each(['', 'garbage', '{}', '{"version":2,"dc_id":2,"key":"","places":{}}'])(
  '%j is not a blob of ours',
  (text) => {
    expect(openSessionStorage(Buffer.from(text))).toBeUndefined()
  },
)
