/** Files on their way to a message. Their bytes are counted and hashed, not kept. */
import { createHash, type Hash } from 'node:crypto'
import type { FileInfo } from '../port.ts'
import type { KeptFile } from './entries.ts'

/** How many uploads may be unsent; beyond it the oldest is dropped. */
const openMax = 64

interface OpenUpload {
  readonly file: FileInfo
  readonly hash: Hash
  received: number
}

export class Uploads {
  readonly #open = new Map<string, OpenUpload>()
  readonly #ready = new Map<string, KeptFile>()
  #last = 0

  begin({ file_name, media_type, size }: FileInfo): string {
    const handle = `upload_${++this.#last}`
    this.#open.set(handle, {
      file: { file_name, media_type, size },
      hash: createHash('sha256'),
      received: 0,
    })
    dropOldest(this.#open)
    return handle
  }

  /** False if there is no such upload. */
  add(handle: string, data: Uint8Array): boolean {
    const upload = this.#open.get(handle)
    if (!upload) return false
    upload.hash.update(data)
    upload.received += data.length
    return true
  }

  /** The file, if as many bytes arrived as were announced. */
  finish(handle: string): FileInfo | undefined {
    const upload = this.#open.get(handle)
    this.#open.delete(handle)
    if (!upload || upload.received !== upload.file.size) return undefined
    this.#ready.set(handle, { ...upload.file, sha256: upload.hash.digest('hex') })
    dropOldest(this.#ready)
    return upload.file
  }

  /** Adds a file that arrived complete in another way. */
  keep(file: KeptFile): string {
    const handle = `upload_${++this.#last}`
    this.#ready.set(handle, file)
    dropOldest(this.#ready)
    return handle
  }

  /** Valid for one send. */
  take(handle: string): KeptFile | undefined {
    const file = this.#ready.get(handle)
    this.#ready.delete(handle)
    return file
  }
}

function dropOldest(uploads: Map<string, unknown>): void {
  const [oldest] = uploads.keys()
  if (uploads.size > openMax && oldest !== undefined) uploads.delete(oldest)
}
