/**
 * Erasures on this process's disk, beside the journals: a file that is only appended to and never deleted. A database that was restored
 * from an older copy has forgotten them, and the list repeats them. It has no names, only keyed hashes.
 */
import { open, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { crc32 } from 'node:zlib'
import { syncDirectory } from '../db/secret-file.ts'

const fileName = 'erasures.jsonl'

export const erasureListIn = (directory: string): string => join(directory, fileName)

interface Identified {
  readonly id: string
}

/** Resolves once they are on disk. Several processes of a disk append to one file, each its lines at once. */
export async function keepErasures(path: string, erasures: readonly Identified[]): Promise<void> {
  // An earlier write may have left half a line behind, so these begin on a line of their own.
  const text = `\n${erasures.map(lineOf).join('')}`
  const file = await open(path, 'a', 0o600)
  try {
    await file.appendFile(text)
    await file.datasync()
  } finally {
    await file.close()
  }
  // The file may be new, and what a crash takes out of its directory is lost.
  await syncDirectory(dirname(path)) // guard: a new list stays in its directory
}

export function beginErasures(directory: string): Promise<void> {
  return keepErasures(erasureListIn(directory), [])
}

function lineOf(erasure: Identified): string {
  const json = JSON.stringify(erasure)
  return `${json} ${checksumOf(json)}\n`
}

function checksumOf(json: string): string {
  return crc32(json).toString(16).padStart(8, '0')
}

/** Undefined: there is no list. A line that is damaged is skipped: `damaged` counts them. */
export async function readErasures<T extends Identified>(
  path: string,
): Promise<{ readonly erasures: readonly T[]; readonly damaged: number } | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error // guard: a list that cannot be read is not missing
  })
  if (text === undefined) return undefined
  const lines = text.split('\n')
  // If a crash cut off the last line, its erasure has not begun.
  lines.pop()
  const byId = new Map<string, T>()
  let damaged = 0
  for (const line of lines) {
    if (line === '') continue
    const erasure = readLine<T>(line)
    if (erasure) byId.set(erasure.id, erasure)
    else damaged++
  }
  return { erasures: [...byId.values()], damaged }
}

function readLine<T>(line: string): T | undefined {
  const [, json = '', sum] = /^(.*) ([0-9a-f]{8})$/.exec(line) ?? []
  if (checksumOf(json) !== sum) return undefined
  return JSON.parse(json)
}
