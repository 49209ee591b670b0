/** Encrypted backups: what opens them, and what is refused before anything is restored. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BackupKey, type BackupLock, isEncryptedFile, prepareEncryption } from './backup-encryption.ts'
import { type BackupHeader, BackupWriter, openBackup } from './backup-file.ts'

let directory: string
let identity: string
let lock: BackupLock
let whole: Buffer
const path = (name: string) => join(directory, name)
const header: BackupHeader = {
  parley_version: '0.0.0',
  made_at: '2027-01-31T00:00:00.000Z',
  migrations: [],
  secret: 's'.repeat(43),
  secret_id: 'which',
}
/** More than one block of age, and nothing that gzip makes small. */
const rows = randomBytes(300_000)

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-encrypted-'))
  identity = await generateX25519Identity()
  lock = { recipients: [await identityToRecipient(identity)] }
  await write('whole', lock)
  whole = await readFile(path('whole'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

async function write(name: string, wanted: BackupLock): Promise<void> {
  const file = await open(path(name), 'wx')
  const writer = new BackupWriter(file, await prepareEncryption(wanted))
  writer.header(header)
  writer.table({ name: 'messages', columns: ['text'] })
  await writer.rows(rows)
  await writer.end({ tables: [{ name: 'messages', rows: 1 }], sequences: [] })
  await file.close()
}

/** The rows, and the kinds of all parts. */
async function read(name: string, key: BackupKey | undefined) {
  const backup = await openBackup(path(name), key)
  try {
    const kinds = []
    const found = []
    for await (const part of backup.parts()) {
      kinds.push(part.kind)
      if (part.kind === 'rows') found.push(Buffer.from(part.bytes))
    }
    return { header: backup.header, kinds: [...new Set(kinds)], rows: Buffer.concat(found) }
  } finally {
    await backup.close()
  }
}

describe('an encrypted backup', () => {
  test('for a public key opens with its private key, and shows nothing without', async () => {
    expect(await isEncryptedFile(path('whole'))).toBe(true)
    expect(whole.includes('parley-backup')).toBe(false)
    const found = await read('whole', { identities: [identity] })
    expect(found).toMatchObject({ header, kinds: ['header', 'table', 'rows', 'end'] })
    expect(found.rows.equals(rows)).toBe(true)
    await expect(read('whole', undefined)).rejects.toThrow('is encrypted')
  })

  test('refuses another private key, and a passphrase', async () => {
    const other = await generateX25519Identity()
    await expect(read('whole', { identities: [other] })).rejects.toThrow('does not open the backup')
    await expect(read('whole', { passphrase: 'a long passphrase' })).rejects.toThrow(
      'does not open the backup',
    )
    await expect(read('whole', { identities: ['mine'] })).rejects.toThrow('no private key')
    expect((await read('whole', { identities: [other, identity] })).rows.equals(rows)).toBe(true)
  })

  test('with a passphrase opens with it, and with no other', async () => {
    await write('secret', { passphrase: 'a long passphrase' })
    expect((await read('secret', { passphrase: 'a long passphrase' })).rows.equals(rows)).toBe(true)
    await expect(read('secret', { passphrase: 'another passphrase' })).rejects.toThrow(
      'does not open the backup',
    )
  })

  test('that was cut or changed anywhere is refused', async () => {
    const block = 64 * 1024 + 16
    const start = whole.length % block
    const lengths = [21, 40, 100, start, whole.length - block, whole.length - 17, whole.length - 1]
    expect(whole.length).toBeGreaterThan(2 * block)
    for (const length of lengths) {
      await writeFile(path('cut'), whole.subarray(0, length))
      await expect(read('cut', { identities: [identity] }), String(length)).rejects.toThrow(
        /damaged|no backup|not a backup/,
      )
    }
    for (const at of [30, 150, 400, whole.length >> 1, whole.length - 1]) {
      const changed = Buffer.from(whole)
      changed.writeUInt8(changed.readUInt8(at) ^ 4, at)
      await writeFile(path('changed'), changed)
      await expect(read('changed', { identities: [identity] }), String(at)).rejects.toThrow(
        /damaged|does not open/,
      )
    }
  })

  test('refuses a recipient that is no public key', async () => {
    await expect(prepareEncryption({ recipients: ['age1nonsense'] })).rejects.toThrow('no public key of age')
  })
})
