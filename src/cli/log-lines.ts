/**
 * Writes the lines of the log, and never waits for whoever takes them: on a disk that is full or a pipe that nobody reads,
 * lines are held, then dropped and counted, and the count is told when there is room again.
 */
import { writeSync } from 'node:fs'
import type { DestinationStream } from 'pino'

/** Lines are written in batches, because a write for each of them costs a switch of threads. */
const batchBytes = 4_096
const flushMs = 100
/** A pipe that is full has room again as soon as its reader reads. */
const retryMs = 10
/** How much is held while nothing can be written: about four thousand lines. */
const heldBytesMax = 1024 * 1024 // limit: held log lines
/** How long the end of the process may wait for a slow reader. */
const lastMsMax = 500

export interface LogLines extends DestinationStream {
  /** Writes what can be written at once. The log asks for it after a fatal line. */
  flushSync(): void
  /** Writes what is left, within half a second, and lets go. */
  close(): void
}

/** The descriptor of a pipe must not be a blocking one. */
export function writeLines(fd: number): LogLines {
  let lines: string[] = []
  let linesBytes = 0
  let dropped = 0
  /** What is left of a batch whose beginning is written already: dropping it would tear a line. */
  let rest = Buffer.alloc(0)
  let retry: NodeJS.Timeout | undefined

  function hold(line: string): void {
    lines.push(line)
    linesBytes += Buffer.byteLength(line)
  }

  function tellDropped(): void {
    if (dropped === 0) return
    const told = { level: 'warn', time: new Date().toISOString(), dropped, msg: 'log lines were dropped' }
    dropped = 0
    hold(`${JSON.stringify(told)}\n`)
  }

  /** Undefined once everything is written, otherwise why it is not. */
  function flush(): string | undefined {
    try {
      for (;;) {
        if (rest.length === 0) {
          if (lines.length === 0) tellDropped()
          if (lines.length === 0) return undefined
          rest = Buffer.from(lines.join(''))
          lines = []
          linesBytes = 0
        }
        rest = rest.subarray(writeSync(fd, rest))
      }
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? 'unknown'
    }
  }

  function flushSoon(): void {
    clearTimeout(retry)
    retry = undefined
    const problem = flush()
    if (problem) retry = setTimeout(flushSoon, problem === 'EAGAIN' ? retryMs : flushMs).unref()
  }

  function close(): void {
    clearInterval(timer)
    clearTimeout(retry)
    process.off('exit', close)
    const until = performance.now() + lastMsMax
    while (flush() === 'EAGAIN' && performance.now() < until) Atomics.wait(clock, 0, 0, retryMs)
  }

  const timer = setInterval(flushSoon, flushMs).unref()
  process.on('exit', close)
  return {
    write(line) {
      if (rest.length + linesBytes + Buffer.byteLength(line) > heldBytesMax) {
        dropped++
        return
      }
      tellDropped()
      hold(line)
      if (linesBytes >= batchBytes && retry === undefined) flushSoon()
    },
    flushSync: flushSoon,
    close,
  }
}

/** Nobody ever wakes it, so that waiting on it is a sleep. */
const clock = new Int32Array(new SharedArrayBuffer(4))
