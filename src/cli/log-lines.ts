/**
 * Writes the lines of the log, and never waits for its reader. While the disk is full or the pipe is not read, it keeps lines,
 * then drops and counts them, and logs the count when it can write again.
 */
import { writeSync } from 'node:fs'
import type { DestinationStream } from 'pino'

/** Lines are written in batches, because a write for each one costs a thread switch. */
const batchBytes = 4_096
const flushMs = 100
/** A full pipe has room again as soon as its reader reads. */
const retryMs = 10
/** How many bytes to keep while nothing can be written: about four thousand lines. */
const heldBytesMax = 1024 * 1024 // limit: held log lines
/** How long the exiting process may wait for a slow reader. */
const lastMsMax = 500

export interface LogLines extends DestinationStream {
  /** Writes what can be written now. The log calls it after a fatal line, and `flush` when it is asked to. */
  flushSync(): void
  flush(): void
  /** Writes the rest, within half a second, and stops the timers. */
  close(): void
}

/** If `fd` is a pipe, it must be non-blocking. */
export function writeLines(fd: number): LogLines {
  let lines: string[] = []
  let linesBytes = 0
  let dropped = 0
  /** The rest of a batch that is partly written. It is never dropped, because that would tear a line. */
  let rest = Buffer.alloc(0)
  let retry: NodeJS.Timeout | undefined

  function hold(line: string): void {
    lines.push(line)
    linesBytes += Buffer.byteLength(line)
  }

  function logDropped(): void {
    if (dropped === 0) return
    const line = { level: 'warn', time: new Date().toISOString(), dropped, msg: 'Parley dropped log lines' }
    dropped = 0
    hold(`${JSON.stringify(line)}\n`)
  }

  /** Undefined once everything is written, otherwise the error code. */
  function flush(): string | undefined {
    try {
      for (;;) {
        if (rest.length === 0) {
          if (lines.length === 0) logDropped()
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
      logDropped()
      hold(line)
      if (linesBytes >= batchBytes && retry === undefined) flushSoon()
    },
    flushSync: flushSoon,
    flush: flushSoon, // guard: the welcome follows the log
    close,
  }
}

/** Nothing ever notifies it, so waiting on it is a sleep. */
const clock = new Int32Array(new SharedArrayBuffer(4))
