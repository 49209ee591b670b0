/** Tables from files: their bytes as text, and their text as rows (`rules/csv.ts`). */
import { isUtf8 } from 'node:buffer'
import { type CsvRow, notUtf8, RowReader, TableFault } from '../rules/csv.ts'
import { ApiError } from './errors.ts'

/**
 * Yields the rows that end in each piece of the text, whatever its pieces are: a step for each row would take longer than
 * reading it. Refuses what is not a table.
 */
export async function* parseCsv(
  pieces: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<readonly CsvRow[], void> {
  const reader = new RowReader()
  for await (const piece of pieces) yield asRefusal(() => reader.read(piece))
  yield asRefusal(() => reader.end())
}

/** A table that cannot be read is the caller's fault. */
export function asRefusal<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof TableFault)) throw error
    throw new ApiError('invalid_request', { detail: error.message })
  }
}

const pieceBytes = 32 * 1024
const [lf, cr] = [0x0a, 0x0d]

/** The text of a file in small pieces: parsing one holds up nobody for long. Refuses bytes that are not UTF-8 with their line. */
export async function* decodeCsv(chunks: AsyncIterable<Buffer>): AsyncGenerator<string, void> {
  let held: Buffer = Buffer.alloc(0)
  let line = 1
  let before = 0
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += pieceBytes) {
      const bytes = Buffer.concat([held, chunk.subarray(at, at + pieceBytes)])
      const whole = bytes.subarray(0, wholeCharacters(bytes))
      held = bytes.subarray(whole.length)
      if (!isUtf8(whole)) throw refuseBytes(line + countLineEnds(soundLines(whole), before))
      line += countLineEnds(whole, before)
      before = whole.at(-1) ?? before
      yield whole.toString()
    }
  }
  if (held.length > 0) throw refuseBytes(line)
}

function refuseBytes(line: number): ApiError {
  return new ApiError('invalid_request', { detail: notUtf8(line) })
}

/** How many bytes there are without a last character that the next bytes complete. */
function wholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] as number
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}

/** The bytes up to the first line that is not UTF-8. */
function soundLines(bytes: Buffer): Buffer {
  let start = 0
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] !== lf && bytes[at] !== cr) continue
    if (!isUtf8(bytes.subarray(start, at))) break
    start = at + 1
  }
  return bytes.subarray(0, start)
}

function countLineEnds(bytes: Buffer, previous: number): number {
  let count = 0
  let before = previous
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (byte === cr || (byte === lf && before !== cr)) count++
    before = byte
  }
  return count
}
