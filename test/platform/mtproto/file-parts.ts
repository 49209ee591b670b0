/** Files that a client uploads in parts. Parts are hashed in order, and kept only of small files; a part that arrives early waits. */
import { createHash, type Hash } from 'node:crypto'
import { RpcFault } from './connection.ts'

const partBytesMax = 512 * 1024
const partsMax = 8000
const filesMax = 64
/** A client sends a few parts at the same time. */
const earlyMax = 32
const keptBytesMax = 1024 * 1024

interface OpenFile {
  readonly hash: Hash
  readonly early: Map<number, Uint8Array>
  next: number
  size: number
  /** Undefined: the file is too large to be kept. */
  kept: Uint8Array[] | undefined
}

export class FileParts {
  readonly #open = new Map<string, OpenFile>()

  add(file_id: string, part: number, bytes: Uint8Array): true {
    if (part < 0 || part >= partsMax) throw new RpcFault(400, 'FILE_PART_INVALID')
    if (bytes.length === 0) throw new RpcFault(400, 'FILE_PART_EMPTY')
    if (bytes.length > partBytesMax) throw new RpcFault(400, 'FILE_PART_TOO_BIG')
    const begun = { hash: createHash('sha256'), early: new Map(), next: 0, size: 0, kept: [] }
    const file: OpenFile = this.#open.get(file_id) ?? begun
    this.#open.set(file_id, file)
    const [oldest] = this.#open.keys()
    if (this.#open.size > filesMax && oldest !== undefined) this.#open.delete(oldest)
    if (part >= file.next) file.early.set(part, bytes.slice())
    for (let found = file.early.get(file.next); found; found = file.early.get(file.next)) {
      file.early.delete(file.next)
      file.hash.update(found)
      file.size += found.length
      if (file.size > keptBytesMax) file.kept = undefined
      file.kept?.push(found)
      file.next++
    }
    if (file.early.size > earlyMax) throw new RpcFault(400, 'FILE_PART_INVALID')
    return true
  }

  /** Valid for one message. */
  take(file_id: string, parts: number): { size: number; sha256: string; bytes: Buffer | undefined } {
    const file = this.#open.get(file_id)
    if (!file || file.next < parts) throw new RpcFault(400, `FILE_PART_${file?.next ?? 0}_MISSING`)
    this.#open.delete(file_id)
    if (file.next > parts) throw new RpcFault(400, 'FILE_PARTS_INVALID')
    const bytes = file.kept && Buffer.concat(file.kept)
    return { size: file.size, sha256: file.hash.digest('hex'), bytes }
  }
}
