/**
 * The log on a real pipe and a real full device: it never waits, never tears a line, and says how many lines it
 * dropped.
 */
import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeLogger } from './log.ts'
import { type LogLines, writeLines } from './log-lines.ts'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'parley-log-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

/** A pipe whose two ends are both ours, and everything that is in it. */
function openPipe(): { fd: number; read: () => string } {
  const path = join(directory, `pipe-${Math.random()}`)
  execFileSync('mkfifo', [path])
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const read = () => {
    const piece = Buffer.alloc(1024 * 1024)
    const pieces: Buffer[] = []
    try {
      for (;;) pieces.push(Buffer.from(piece.subarray(0, readSync(fd, piece))))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
    return Buffer.concat(pieces).toString()
  }
  return { fd, read }
}

const line = (n: number) => `${JSON.stringify({ n, text: 'ü'.repeat(200) })}\n`

function writeMany(log: LogLines, from: number, to: number): void {
  for (let n = from; n < to; n++) log.write(line(n))
}

interface Read {
  readonly n?: number
  readonly dropped?: number
  readonly msg?: string
}

function parse(text: string): Read[] {
  expect(text.endsWith('\n')).toBe(true)
  return text
    .split('\n')
    .slice(0, -1)
    .map((one) => JSON.parse(one))
}

/** Reads until nothing more arrives. */
function drain(log: LogLines, read: () => string): string {
  let text = ''
  for (let piece = read(); piece; piece = read()) {
    text += piece
    log.flushSync()
  }
  return text
}

test.each(['no line is written', 'other lines are written'])(
  'drops lines on a pipe without a reader, and writes their number where they are missing, while %s',
  (meanwhile) => {
    const { fd, read } = openPipe()
    const log = writeLines(fd)
    writeMany(log, 0, 20_000)
    let text = ''
    if (meanwhile === 'other lines are written') {
      // There is room for some more, and much of what came before is not written yet.
      text += read()
      log.flushSync()
      writeMany(log, 20_000, 20_010)
      text += drain(log, read)
    } else {
      text += drain(log, read)
      expect(parse(text).at(-1)?.msg).toBe('Parley dropped log lines')
      writeMany(log, 20_000, 20_010)
    }
    log.close()
    text += read()
    closeSync(fd)
    const lines = parse(text)
    const at = lines.findIndex(({ dropped }) => dropped !== undefined)
    const { dropped = 0, msg } = lines[at] ?? {}
    expect(msg).toBe('Parley dropped log lines')
    // The log keeps some thousands of lines.
    expect(at).toBeGreaterThan(2_000)
    const expected = [...Array(at).keys(), undefined, ...Array.from({ length: 10 }, (_, n) => 20_000 + n)]
    expect(lines.map(({ n }) => n)).toEqual(expected)
    expect(at + dropped).toBe(20_000)
  },
)

test('loses nothing that fits when the reader of a pipe is slow', () => {
  const { fd, read } = openPipe()
  const log = writeLines(fd)
  writeMany(log, 0, 1_500)
  const text = drain(log, read)
  log.close()
  expect(parse(text).map(({ n }) => n)).toEqual([...Array(1_500).keys()])
  closeSync(fd)
})

test('does not delay the end of a process for a pipe without a reader', () => {
  const { fd } = openPipe()
  const log = writeLines(fd)
  writeMany(log, 0, 5_000)
  log.close()
  closeSync(fd)
})

test('writes nothing, throws nothing and ends on a full device', () => {
  const fd = openSync('/dev/full', 'w')
  const log = writeLines(fd)
  writeMany(log, 0, 20_000)
  log.flushSync()
  log.close()
  closeSync(fd)
})

test('does not fail when the reader has gone away', () => {
  const path = join(directory, 'gone')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
  const log = writeLines(fd)
  closeSync(reader)
  writeMany(log, 0, 100)
  log.close()
  closeSync(fd)
})

test('writes every line to a file, in order', () => {
  const path = join(directory, 'file')
  const fd = openSync(path, 'a')
  const log = writeLines(fd)
  writeMany(log, 0, 5_000)
  log.close()
  closeSync(fd)
  expect(parse(readFileSync(path, 'utf8')).map(({ n }) => n)).toEqual([...Array(5_000).keys()])
})

test('a logger that is asked to flush has written its lines at once', () => {
  const { fd, read } = openPipe()
  const lines = writeLines(fd)
  const log = makeLogger('info', lines)
  log.info('ready')
  log.flush()
  expect(parse(read())).toMatchObject([{ msg: 'ready' }])
  lines.close()
  closeSync(fd)
})
