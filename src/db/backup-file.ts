/**
 * The format of a backup file: a line with the format number, a gzip stream of frames, and a line with the SHA-256 of all
 * before it. The reader checks the last line before it uses the rest, so a truncated or altered file restores nothing.
 *
 * An encrypted backup is a file of age with all of this inside (`backup-encryption.ts`).
 *
 * A frame is its kind (a byte), its length (four bytes) and its content: one header, then for each table its name and
 * columns, its rows as PostgreSQL writes them, and one frame with the counts.
 */
import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { z } from 'zod'
import { Refusal } from '../lib/errors.ts'
import { freeBuffer } from '../lib/free-buffer.ts'
import { type BackupKey, decryptFile, type EncryptBytes, isEncrypted } from './backup-encryption.ts'

export const backupFormat = 1
const magic = 'parley-backup '
const firstLine = `${magic}${backupFormat}\n`
/** `sha256`, a blank, 64 digits, a line feed. */
const lastLineBytes = 6 + 1 + 64 + 1
const blockBytes = 64 * 1024
const frameHeadBytes = 5
const frameBytesMax = 4 * 1024 * 1024
/** For text and hexadecimal digits, higher levels take several times as long to save a few per cent. */
const gzipLevel = 3

const kinds = { header: 0x48, table: 0x54, rows: 0x52, end: 0x45 } as const

const header = z.object({
  parley_version: z.string(),
  made_at: z.string(),
  migrations: z.array(z.object({ name: z.string(), checksum: z.string() })),
  /** The data directory's secret; null when it comes from the environment, which keeps it elsewhere. */
  secret: z.string().min(32).nullable(),
  /** Identifies the secret without revealing anything about it. */
  secret_id: z.string(),
  /** The one before it, if the backup was made during a rotation. */
  old_secret: z.string().min(32).nullable().optional(),
  old_secret_id: z.string().optional(),
})
const table = z.object({ name: z.string(), columns: z.array(z.string()) })
const end = z.object({
  tables: z.array(z.object({ name: z.string(), rows: z.int() })),
  sequences: z.array(z.object({ name: z.string(), last_value: z.string(), is_called: z.boolean() })),
})

export type BackupHeader = Readonly<z.infer<typeof header>>
export type BackupTable = Readonly<z.infer<typeof table>>
export type BackupEnd = Readonly<z.infer<typeof end>>

/** Writes frames to an open, empty file. */
export class BackupWriter {
  readonly #gzip = createGzip({ level: gzipLevel, chunkSize: blockBytes })
  readonly #done: Promise<void>
  #block = Buffer.allocUnsafeSlow(blockBytes)
  #used = frameHeadBytes
  #drained: Promise<void> | undefined
  #failure: Error | undefined

  constructor(file: FileHandle, encrypt: EncryptBytes = (plain) => plain) {
    this.#done = pipeline(this.#gzip, withChecksum, encrypt, async (bytes: AsyncIterable<Uint8Array>) => {
      for await (const block of bytes) await file.writeFile(block)
      await file.sync()
    })
    this.#done.catch((error) => {
      this.#failure = error
    })
  }

  /** Why it failed, if it did. The error of a connection that is cut because of it says less. */
  get failure(): Error | undefined {
    return this.#failure
  }

  header(header: BackupHeader): void {
    this.#frame(kinds.header, Buffer.from(JSON.stringify(header)))
  }

  table(table: BackupTable): void {
    this.#frame(kinds.table, Buffer.from(JSON.stringify(table)))
  }

  /** Gathers rows into blocks, however long one is. If it returns a promise, wait for it. */
  rows(bytes: Buffer): Promise<void> | undefined {
    for (let at = 0; at < bytes.length; ) {
      const copied = bytes.copy(this.#block, this.#used, at)
      at += copied
      this.#used += copied
      if (this.#used === blockBytes) this.#flush()
    }
    return this.#drained
  }

  /** Resolves once everything is on the disk. */
  async end(end: BackupEnd): Promise<void> {
    this.#frame(kinds.end, Buffer.from(JSON.stringify(end)))
    this.#gzip.end()
    await this.#done
  }

  /** Abandons the file. */
  async abandon(): Promise<void> {
    this.#gzip.destroy()
    await this.#done.catch(() => {})
  }

  #frame(kind: number, content: Buffer): void {
    this.#flush()
    this.#write(Buffer.concat([frameHead(kind, content.length), content]))
  }

  #flush(): void {
    const length = this.#used - frameHeadBytes
    if (length === 0) return
    const block = this.#block
    frameHead(kinds.rows, length).copy(block)
    this.#write(block.subarray(0, this.#used), () => freeBuffer(block))
    this.#block = Buffer.allocUnsafeSlow(blockBytes)
    this.#used = frameHeadBytes
  }

  #write(bytes: Buffer, written?: () => void): void {
    if (this.#gzip.write(bytes, written) || this.#drained) return
    this.#drained = this.#untilDrained()
    // A caller that waits gets the error; otherwise `end` reports it.
    this.#drained.catch(() => {})
  }

  async #untilDrained(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#gzip.once('drain', resolve)
    // A full disk never drains: its error ends the wait.
    await Promise.race([promise, this.#done])
    this.#drained = undefined
  }
}

/** The first line, what was zipped, and the last line. */
async function* withChecksum(zipped: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  const hash = createHash('sha256').update(firstLine)
  yield Buffer.from(firstLine)
  for await (const bytes of zipped) {
    hash.update(bytes)
    yield bytes
  }
  yield Buffer.from(`sha256 ${hash.digest('hex')}\n`)
}

function frameHead(kind: number, length: number): Buffer {
  const head = Buffer.from([kind, 0, 0, 0, 0])
  head.writeUInt32BE(length, 1)
  return head
}

export type BackupPart =
  | { readonly kind: 'header'; readonly header: BackupHeader }
  | { readonly kind: 'table'; readonly table: BackupTable }
  | { readonly kind: 'rows'; readonly bytes: Buffer }
  | { readonly kind: 'end'; readonly end: BackupEnd }

/** A complete backup: its checksum was right when it was opened. */
export interface OpenBackup {
  readonly header: BackupHeader
  /** All parts in order, from the beginning. */
  parts(): AsyncGenerator<BackupPart, void>
  close(): Promise<void>
}

/** `key` opens an encrypted file. */
export async function openBackup(path: string, key?: BackupKey): Promise<OpenBackup> {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    throw new Refusal(
      error.code === 'ENOENT'
        ? `The file ${path} does not exist.`
        : `The file ${path} cannot be read (${error.code}).`,
    )
  })
  try {
    const bytes = await openBytes(file, { path, key })
    const end = await requireWhole(bytes, path)
    const parts = () => readParts(bytes, { path, end })
    const first = await parts().next()
    if (first.done || first.value.kind !== 'header') throw damaged(path)
    return { header: first.value.header, parts, close: () => file.close() }
  } catch (error) {
    await file.close()
    throw error
  }
}

function damaged(path: string): Refusal {
  return new Refusal(
    `The backup ${path} is damaged: it was truncated or changed. Nothing was restored; use another backup.`,
  )
}

/** The bytes of a backup, decrypted. */
interface BackupBytes {
  readonly size: number
  read(range: { readonly start: number; readonly end: number }): AsyncIterable<Uint8Array>
}

async function openBytes(
  file: FileHandle,
  { path, key }: { path: string; key: BackupKey | undefined },
): Promise<BackupBytes> {
  const found = await file.stat()
  if (!found.isFile()) throw new Refusal(`${path} is not a backup of Parley.`)
  if (!(await isEncrypted(file))) {
    return { size: found.size, read: (range) => file.createReadStream({ ...range, autoClose: false }) }
  }
  if (!key) throw new Refusal(`The backup ${path} is encrypted.`)
  const refuse = (why: 'wrong_key' | 'damaged') => (why === 'damaged' ? damaged(path) : wrongKey(path))
  return decryptFile(file, { key, refuse })
}

function wrongKey(path: string): Refusal {
  return new Refusal(`This passphrase or key does not open the backup ${path}. Nothing was restored.`)
}

/** Returns where the frames end. Reads the whole file once. */
async function requireWhole(file: BackupBytes, path: string): Promise<number> {
  const head = await readRange(file, { start: 0, end: firstLine.length - 1 })
  const format = /^parley-backup (\d+)\n/.exec(head.toString('latin1'))
  if (!head.toString('latin1').startsWith(magic)) throw new Refusal(`${path} is not a backup of Parley.`)
  if (format && Number(format[1]) > backupFormat) {
    throw new Refusal(`The backup ${path} was created by a newer Parley. Restore it with that version.`)
  }
  const end = file.size - lastLineBytes
  if (!format || end < firstLine.length) throw damaged(path)
  const hash = createHash('sha256')
  const last: Uint8Array[] = []
  let left = end
  for await (const bytes of file.read({ start: 0, end: file.size - 1 })) {
    hash.update(bytes.subarray(0, left))
    if (bytes.length > left) last.push(bytes.subarray(left))
    left = Math.max(0, left - bytes.length)
  }
  if (Buffer.concat(last).toString('latin1') !== `sha256 ${hash.digest('hex')}\n`) throw damaged(path)
  return end
}

async function readRange(file: BackupBytes, range: { start: number; end: number }): Promise<Buffer> {
  const found = []
  for await (const bytes of file.read(range)) found.push(bytes)
  return Buffer.concat(found)
}

async function* readParts(
  file: BackupBytes,
  { path, end }: { path: string; end: number },
): AsyncGenerator<BackupPart, void> {
  const zipped = file.read({ start: firstLine.length, end: end - 1 })
  const gunzip = createGunzip({ chunkSize: blockBytes })
  const done = pipeline(zipped, gunzip)
  done.catch(() => {})
  try {
    yield* parseFrames(gunzip)
  } catch (error) {
    // With a right checksum, only a file made by hand can still be wrong.
    const { code } = error as NodeJS.ErrnoException
    const ours = error instanceof SyntaxError || error instanceof z.ZodError || code?.startsWith('Z_')
    throw ours ? damaged(path) : error
  } finally {
    gunzip.destroy()
    await done.catch(() => {})
  }
}

/** Yields rows as they arrive; gathers JSON content first. */
async function* parseFrames(stream: AsyncIterable<Buffer>): AsyncGenerator<BackupPart, void> {
  let head = Buffer.alloc(0)
  let content: Buffer[] = []
  let left = 0
  for await (const piece of stream) {
    for (let at = 0; at < piece.length; ) {
      if (head.length < frameHeadBytes) {
        const more = piece.subarray(at, at + frameHeadBytes - head.length)
        head = Buffer.concat([head, more])
        at += more.length
        if (head.length < frameHeadBytes) break
        left = head.readUInt32BE(1)
        if (left === 0 || left > frameBytesMax) throw new SyntaxError('The length of a frame is invalid.')
        continue
      }
      const part = piece.subarray(at, at + left)
      at += part.length
      left -= part.length
      if (head[0] === kinds.rows) yield { kind: 'rows', bytes: part }
      else content.push(Buffer.from(part))
      if (left > 0) continue
      if (head[0] !== kinds.rows) yield parseContent(head[0], Buffer.concat(content))
      head = Buffer.alloc(0)
      content = []
    }
  }
  if (head.length > 0) throw new SyntaxError('The last frame is incomplete.')
}

function parseContent(kind: number | undefined, content: Buffer): BackupPart {
  const value = JSON.parse(content.toString('utf8'))
  if (kind === kinds.header) return { kind: 'header', header: header.parse(value) }
  if (kind === kinds.table) return { kind: 'table', table: table.parse(value) }
  if (kind === kinds.end) return { kind: 'end', end: end.parse(value) }
  throw new SyntaxError('The kind of a frame is unknown.')
}
