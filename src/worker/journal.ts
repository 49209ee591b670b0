/**
 * What this process is about to submit and what became of it, on its own disk: the memory that survives a crash of the
 * process, and a database that went back in time. Intents are flushed before the platform hears of them; several
 * accounts share one flush. Outcomes need no flush.
 */
import { type FileHandle, mkdir, open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Remembered } from '../access/ledger/restore-counter.ts'
import type { Outcome } from '../platform/port.ts'

export interface Intent extends Remembered {
  readonly entry: 'intent'
}

export interface Known {
  readonly entry: 'outcome'
  readonly id: string
  readonly token: string
  readonly outcome: Outcome<unknown>
}

export type Entry = Intent | Known

export interface Journal {
  /** Resolves when it is on disk. */
  intend(entry: Remembered): Promise<void>
  /** Resolves when it is written, which a killed process does not undo. */
  conclude(entry: Omit<Known, 'entry'>): Promise<void>
  close(): Promise<void>
}

const bytesMax = 64 * 1024 * 1024
const keepMs = 30 * 86_400_000

export async function openJournal(directory: string, worker_id: string): Promise<Journal> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  let part = 0
  let size = 0
  let file = await openPart()
  let waiting: Line[] = []
  let writing: Promise<void> | undefined

  function openPart(): Promise<FileHandle> {
    return open(join(directory, `${worker_id}.${part++}.jsonl`), 'a', 0o600)
  }

  function append(entry: Entry, flush: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      waiting.push({ text: `${JSON.stringify(entry)}\n`, flush, resolve, reject })
      writing ??= write()
    })
  }

  /** Everything that waits goes out together; what comes meanwhile waits for the next turn. */
  async function write(): Promise<void> {
    while (waiting.length > 0) {
      const lines = waiting
      waiting = []
      try {
        // A write that failed may have left half a line behind: what comes after it stands on a line of its own.
        const text = `\n${lines.map((line) => line.text).join('')}`
        await file.appendFile(text)
        size += text.length
        for (const line of lines) if (!line.flush) line.resolve()
        if (lines.some(({ flush }) => flush)) await file.datasync()
        for (const line of lines) line.resolve()
        if (size > bytesMax) await turn()
      } catch (error) {
        for (const line of lines) line.reject(error)
      }
    }
    // In the same breath as the last look: whoever comes after it begins anew.
    writing = undefined
  }

  async function turn(): Promise<void> {
    const full = file
    file = await openPart()
    size = 0
    await full.close()
  }

  return {
    intend: (entry) => append({ entry: 'intent', ...entry }, true),
    conclude: (entry) => append({ entry: 'outcome', ...entry }, false),
    async close() {
      await writing
      await file.close()
    },
  }
}

interface Line {
  readonly text: string
  readonly flush: boolean
  resolve(): void
  reject(error: unknown): void
}

export interface JournalFile {
  readonly name: string
  readonly worker_id: string
  readonly size: number
  /** It was replayed after its process had ended. */
  readonly done: boolean
}

/** The journals of this disk, of whatever process; those past keeping are removed. */
export async function listJournals(directory: string): Promise<JournalFile[]> {
  const names = await readdir(directory).catch(() => [])
  const files: JournalFile[] = []
  for (const name of names.sort()) {
    const [, worker_id, done] = /^([0-9a-f-]{36})\.\d+\.jsonl(\.done)?$/.exec(name) ?? []
    if (!worker_id) continue
    const { mtimeMs, size } = await stat(join(directory, name))
    if (done && Date.now() - mtimeMs > keepMs) await unlink(join(directory, name))
    else files.push({ name, worker_id, size, done: done !== undefined })
  }
  return files
}

/** A last line that was cut off by a crash was never acted upon. */
export async function readJournal(directory: string, { name }: JournalFile): Promise<Entry[]> {
  const text = await readFile(join(directory, name), 'utf8')
  const lines = text.split('\n')
  return lines.flatMap((line): Entry[] => {
    if (line === '') return []
    try {
      return [JSON.parse(line)]
    } catch {
      return []
    }
  })
}

export async function markReplayed(directory: string, { name, done }: JournalFile): Promise<void> {
  if (!done) await rename(join(directory, name), join(directory, `${name}.done`))
}
