/**
 * The world's log on disk: one JSON document per line, appended before any session gets an answer. When `append` returns the
 * operating system has the line, so killing the process loses nothing; `sync` waits for the disk.
 */
import {
  closeSync,
  fsync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

export interface Log {
  append(entry: object): void
  /** Resolves when everything appended so far is on the disk. Callers that ask together share one fsync. */
  sync(): Promise<void>
  close(): Promise<void>
}

export const memoryLog: Log = {
  append: () => {},
  sync: () => Promise.resolve(),
  close: () => Promise.resolve(),
}

const newline = 0x0a
const fsyncFile = promisify(fsync)

/** Opens a directory's log and passes every line to `replay`, in order. */
export function openLog(data_dir: string, replay: (entry: unknown) => void): Log {
  mkdirSync(data_dir, { recursive: true, mode: 0o700 })
  const path = join(data_dir, 'world.ndjson')
  const file = openSync(path, 'a+', 0o600)
  try {
    const length = replayLines(path, replay)
    ftruncateSync(file, length)
    fsyncSync(file)
    syncDirectory(data_dir)
    return new FileLog(file, length)
  } catch (error) {
    closeSync(file)
    throw error
  }
}

/** Returns where the last complete line ends: a crash tore off what follows. */
function replayLines(path: string, replay: (entry: unknown) => void): number {
  const bytes = readFileSync(path)
  let start = 0
  for (let end = bytes.indexOf(newline); end !== -1; end = bytes.indexOf(newline, start)) {
    let entry: unknown
    try {
      entry = JSON.parse(bytes.toString('utf8', start, end))
    } catch (cause) {
      if (end === bytes.length - 1) return start
      throw new Error(`The sandbox log is damaged at byte ${start}: ${path}`, { cause })
    }
    replay(entry)
    start = end + 1
  }
  return start
}

/** Without it, a power cut may lose the name of a new file. */
function syncDirectory(path: string): void {
  for (const each of [path, dirname(path)]) {
    const directory = openSync(each, 'r')
    fsyncSync(directory)
    closeSync(directory)
  }
}

class FileLog implements Log {
  readonly #file: number
  #length: number
  #failure: Error | null = null
  #open = true
  #running: Promise<void> = Promise.resolve()
  /** The fsync that begins when the running one ends; it covers every caller that has asked by then. */
  #waiting: Promise<void> | null = null

  constructor(file: number, length: number) {
    this.#file = file
    this.#length = length
  }

  append(entry: object): void {
    this.#requireWritable()
    const line = Buffer.from(`${JSON.stringify(entry)}\n`)
    try {
      for (let written = 0; written < line.length; ) {
        written += writeSync(this.#file, line, written)
      }
      this.#length += line.length
    } catch (cause) {
      this.#takeBack(cause)
      throw new Error('The sandbox log cannot be written.', { cause })
    }
  }

  /** Truncates the half-written line, so that the log can be written again once the disk has room. */
  #takeBack(cause: unknown): void {
    try {
      ftruncateSync(this.#file, this.#length)
    } catch {
      throw this.#fail(cause)
    }
  }

  sync(): Promise<void> {
    this.#waiting ??= this.#flushAfter(this.#running)
    return this.#waiting
  }

  async close(): Promise<void> {
    if (!this.#open) return
    this.#open = false
    await this.sync().catch(() => {})
    closeSync(this.#file)
  }

  async #flushAfter(running: Promise<void>): Promise<void> {
    await running.catch(() => {})
    if (this.#waiting) this.#running = this.#waiting
    this.#waiting = null
    if (this.#failure) throw this.#failure
    try {
      await fsyncFile(this.#file)
    } catch (cause) {
      // What is on the disk is unknown now, so every later call fails too.
      throw this.#fail(cause)
    }
  }

  #fail(cause: unknown): Error {
    this.#failure = new Error('The sandbox log cannot be written.', { cause })
    return this.#failure
  }

  #requireWritable(): void {
    if (this.#failure) throw this.#failure
    if (!this.#open) throw new Error('The sandbox world is closed.')
  }
}
