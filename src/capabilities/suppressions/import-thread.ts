/** A thread that parses a file of the suppression list for `list-file.ts`, at a lower priority than every other thread. */
import { parentPort } from 'node:worker_threads'
import { decodeCsv } from '../../lib/csv.ts'
import { ApiError, type ErrorCode } from '../../lib/errors.ts'
import { lowerPriority } from '../../lib/threads.ts'
import { type FoundEntry, readTable, type SkippedRow } from './import-table.ts'

/** The next bytes of the file. Without bytes: the file has ended. */
export interface ImportPiece {
  readonly bytes?: Uint8Array
  /** Of invalid rows, only the first are named: the same number in every piece. */
  readonly namedMax: number
}

/** The rows that have become known with a piece. */
export interface ImportRows {
  readonly found: readonly FoundEntry[]
  readonly skipped: readonly SkippedRow[]
  /** How many more rows were invalid. */
  readonly unnamed: number
  /** Why the file cannot be imported. */
  readonly refusal?: { readonly code: ErrorCode; readonly detail: string }
}

lowerPriority()

let take: (piece: ImportPiece) => void = () => {}
const waiting: ImportPiece[] = []
parentPort?.on('message', (piece: ImportPiece) => {
  waiting.push(piece)
  take(piece)
})

let rows: { found: FoundEntry[]; skipped: SkippedRow[]; unnamed: number } | undefined
let invalid = 0
let namedMax = 0

/** Before it waits for the next piece, it answers the last one. */
async function* pieces(): AsyncGenerator<Buffer, void> {
  for (;;) {
    if (rows) parentPort?.postMessage(rows)
    rows = undefined
    if (waiting.length === 0) await new Promise<ImportPiece>((resolve) => (take = resolve))
    const piece = waiting.shift()
    rows = { found: [], skipped: [], unnamed: 0 }
    namedMax = piece?.namedMax ?? 0
    if (!piece?.bytes) return
    yield Buffer.from(piece.bytes.buffer, piece.bytes.byteOffset, piece.bytes.length)
  }
}

function skip(row: SkippedRow): void {
  if (!rows) return
  if (++invalid <= namedMax) rows.skipped.push(row)
  else rows.unnamed++
}

async function answerAll(): Promise<void> {
  for await (const known of readTable(decodeCsv(pieces()))) {
    for (const row of known) {
      if ('reason' in row) skip(row)
      else rows?.found.push(row)
    }
  }
  parentPort?.postMessage(rows)
}

await answerAll().catch((error) => {
  if (!(error instanceof ApiError)) throw error
  const refusal = { code: error.code, detail: error.message }
  parentPort?.postMessage({ found: [], skipped: [], unnamed: 0, refusal } satisfies ImportRows)
})
