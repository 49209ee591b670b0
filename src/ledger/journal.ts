/**
 * What this process is about to submit, and each outcome, on its own disk. It survives a crash of the process and a
 * database that was restored from an older copy. Intents are flushed before the call to the platform; several accounts
 * share one flush. Outcomes need no flush.
 */
import { type FileHandle, mkdir, open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Sources } from '../app.ts'
import type { Outcome } from '../platform/port.ts'
import type { JournaledOperation } from './put-back.ts'

export interface Intent extends JournaledOperation {
  readonly entry: 'intent'
  /** When the line was written, in real time. Lines of earlier versions have none. */
  readonly at?: string
}

interface OutcomeEntry {
  readonly entry: 'outcome'
  readonly id: string
  readonly token: string
  readonly outcome: Outcome<unknown>
  readonly at?: string
}

export type Entry = Intent | OutcomeEntry

export interface Journal {
  /** Resolves once it is on disk. */
  intend(entry: JournaledOperation): Promise<void>
  /** Resolves once it is written; killing the process does not undo that. */
  conclude(entry: Omit<OutcomeEntry, 'entry' | 'at'>): Promise<void>
  /** Whether it can be written. Tries the disk if the last write failed. */
  isWritable(): Promise<boolean>
  /** Whether the last write failed. */
  isFailing(): boolean
  close(): Promise<void>
}

const bytesMax = 64 * 1024 * 1024
const keepMs = 30 * 86_400_000

export async function openJournal(
  directory: string,
  worker_id: string,
  { date }: Pick<Sources, 'date'> = { date: () => new Date() },
): Promise<Journal> {
  const now = () => date().toISOString()
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const writer = new Writer(directory, worker_id)
  await writer.open()
  return {
    intend: (entry) => writer.append({ entry: 'intent', at: now(), ...entry }, true),
    conclude: (entry) => writer.append({ entry: 'outcome', at: now(), ...entry }, false),
    isWritable: () => writer.isWritable(),
    isFailing: () => writer.failed,
    close: () => writer.close(),
  }
}

interface Line {
  readonly text: string
  readonly flush: boolean
  resolve(): void
  reject(error: unknown): void
}

class Writer {
  readonly #directory: string
  readonly #worker_id: string
  #part = 0
  #size = 0
  #file: FileHandle | undefined
  #waiting: Line[] = []
  #writing: Promise<void> | undefined
  #failed = false

  constructor(directory: string, worker_id: string) {
    this.#directory = directory
    this.#worker_id = worker_id
  }

  async open(): Promise<void> {
    this.#file = await open(join(this.#directory, `${this.#worker_id}.${this.#part++}.jsonl`), 'a', 0o600)
  }

  append(entry: Entry, flush: boolean): Promise<void> {
    return this.#add(lineOf(entry), flush)
  }

  #add(text: string, flush: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ text, flush, resolve, reject })
      this.#writing ??= this.#write()
    })
  }

  /** Writes all waiting lines together; lines that arrive meanwhile wait for the next round. */
  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#waiting
      this.#waiting = []
      try {
        await this.#writeLines(lines)
        this.#failed = false
      } catch (error) {
        this.#failed = true
        for (const line of lines) line.reject(error) // guard: a failed line is not written
      }
    }
    // No await since the last check of the queue, so a line that arrives later starts a new round.
    this.#writing = undefined
  }

  async #writeLines(lines: readonly Line[]): Promise<void> {
    if (!this.#file) throw new Error('The journal is closed.')
    // A failed write may have left half a line behind, so every batch begins on a line of its own.
    const text = `\n${lines.map((line) => line.text).join('')}`
    await this.#file.appendFile(text)
    this.#size += text.length
    for (const line of lines) if (!line.flush) line.resolve()
    if (lines.some(({ flush }) => flush)) await this.#file.datasync() // guard: journal is flushed
    for (const line of lines) line.resolve()
    if (this.#size > bytesMax) await this.#turn()
  }

  async #turn(): Promise<void> {
    const full = this.#file
    await this.open()
    this.#size = 0
    await full?.close()
  }

  get failed(): boolean {
    return this.#failed
  }

  async isWritable(): Promise<boolean> {
    if (!this.#failed) return true
    // Readers skip empty lines.
    return this.#add('\n', true).then(
      () => true,
      () => false,
    )
  }

  async close(): Promise<void> {
    await this.#writing
    await this.#file?.close()
    this.#file = undefined
  }
}

/** JSON, a space, and its checksum. */
function lineOf(entry: Entry): string {
  const json = JSON.stringify(entry)
  return `${json} ${checksumOf(json)}\n`
}

function checksumOf(json: string): string {
  return crc32(json).toString(16).padStart(8, '0')
}

export interface JournalFile {
  readonly name: string
  readonly worker_id: string
  readonly size: number
  /** It was replayed after its process ended, and has not grown since. */
  readonly done: boolean
}

/** The journals on this disk, of any process. Removes those past their retention. */
export async function listJournals(directory: string): Promise<JournalFile[]> {
  for (let tries = 1; ; tries++) {
    try {
      return await listOnce(directory)
    } catch (error) {
      // Another process has renamed one as done meanwhile; it must not be skipped.
      if (!isMissing(error) || tries === 10) throw error
    }
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

async function listOnce(directory: string): Promise<JournalFile[]> {
  const names = await readdir(directory).catch((error) => {
    if (isMissing(error)) return []
    throw error // guard: a directory that cannot be read is not empty
  })
  const files: JournalFile[] = []
  for (const name of names.sort()) {
    const [, worker_id, size_done, done_of_old] =
      /^([0-9a-f-]{36})\.\d+\.jsonl(?:\.(\d+)\.done|(\.done))?$/.exec(name) ?? []
    if (!worker_id) continue
    const { mtimeMs, size } = await stat(join(directory, name))
    const done = done_of_old !== undefined || Number(size_done) === size // guard: a journal that grew is not done
    // guard: only replayed journals are removed
    if (done && Date.now() - mtimeMs > keepMs) await unlink(join(directory, name))
    else files.push({ name, worker_id, size, done })
  }
  return files
}

interface JournalText {
  readonly entries: Entry[]
  /** Lines that are neither whole nor the torn end of the file: their content is lost. */
  readonly damaged: number
}

export async function readJournal(directory: string, { name }: JournalFile): Promise<JournalText> {
  const lines = (await readFile(join(directory, name), 'utf8')).split('\n')
  // If a crash cut off the last line, no process acted on it.
  lines.pop()
  const entries: Entry[] = []
  let damaged = 0
  for (const line of lines) {
    if (line === '') continue
    const entry = readLine(line)
    if (entry) entries.push(entry)
    else damaged++
  }
  return { entries, damaged }
}

/** Lines of earlier versions have no checksum. */
function readLine(line: string): Entry | undefined {
  const [, json = line, sum] = /^(.*) ([0-9a-f]{8})$/.exec(line) ?? []
  if (sum !== undefined && checksumOf(json) !== sum) return undefined // guard: checksum of a line
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

/** The size says how far it was replayed: a process that was taken for dead may still write to it. */
export async function markReplayed(directory: string, { name, size, done }: JournalFile): Promise<void> {
  const bare = name.replace(/\.\d+\.done$/, '')
  if (!done) await rename(join(directory, name), join(directory, `${bare}.${size}.done`))
}
