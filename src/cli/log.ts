/** The log: JSON lines, or short lines at a terminal. It never contains a secret, a text or a phone number. */
import { type DestinationStream, type Logger, pino } from 'pino'
import type { Config } from '../config.ts'
import { version } from '../lib/version.ts'
import { writeLines } from './log-lines.ts'

/** A silent log opens no descriptor. */
export function makeLogger(
  level: Config['log_level'],
  stream: DestinationStream = level === 'silent' ? nowhere : destination(),
): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
    },
    stream,
  )
}

/** The first line of a log names the version and the role. A terminal gets none: the person has just typed the command. */
export function logVersion(log: Logger, role: string): void {
  if (!process.stdout.isTTY) log.info({ version, node: process.versions.node, role }, 'starting')
}

const nowhere: DestinationStream = { write: () => {} }

function destination(): DestinationStream {
  // Reading `process.stdout` makes a pipe's descriptor non-blocking.
  return process.stdout.isTTY ? { write: (line) => void process.stdout.write(shorten(line)) } : writeLines(1)
}

/** PostgreSQL error classes whose messages quote stored data. */
const quotesData = /^(22|23)/

interface LoggedError {
  readonly type: string
  readonly message?: string
  readonly code?: string
  readonly stack?: string
  readonly cause?: LoggedError
  readonly table?: string
  readonly constraint?: string
}

/** An error without personal data: leaves out database messages that quote values of rows. */
function describeError(error: unknown): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error }
  const { code, table, constraint } = error as Error &
    Record<'code' | 'table' | 'constraint', string | undefined>
  const secret = typeof code === 'string' && quotesData.test(code)
  const frames = error.stack?.split('\n').filter((line) => line.startsWith('    at ')) ?? []
  return {
    type: error.name,
    ...(!secret && { message: error.message }),
    ...(code && { code }),
    ...(table && { table }),
    ...(constraint && { constraint }),
    stack: frames.slice(0, 12).join('\n'),
    ...(error.cause instanceof Error && { cause: describeError(error.cause) }),
  }
}

/** `12:03:01 info  request GET /api/v1/me 200 3.1ms` */
function shorten(line: string): string {
  const { level, time, msg, ...rest } = JSON.parse(line)
  const at = time.slice(11, 19)
  if (msg === 'request') {
    const { method, path, status, ms, code } = rest
    return `${at} ${method} ${path} ${status}${code ? ` ${code}` : ''} ${ms}ms\n`
  }
  const fields = Object.entries(rest)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')
  return `${at} ${level} ${msg} ${fields}\n`
}
