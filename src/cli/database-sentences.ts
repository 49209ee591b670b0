/** What is wrong with the database of DATABASE_URL, in a sentence for the person who sets it up. */
import { ApiError, Refusal } from '../lib/errors.ts'
import { findCertificateFault } from './certificates.ts'

/** The refusal that explains a failure to open the database, or the error itself. */
export function explainDatabase(error: unknown): unknown {
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: { readonly code?: unknown } }
  if (error instanceof ApiError && error.code === 'store_unavailable') {
    return new Refusal(`The database of DATABASE_URL does not respond: ${reasonOf(error)}.`)
  }
  if (error instanceof ApiError && error.code === 'schema_unavailable' && cause?.code === '42501') {
    return new Refusal(
      `The role of DATABASE_URL lacks a right: ${(cause as Error).message}. docs/scaling.md has the grants that it needs.`,
    )
  }
  if (error instanceof ApiError && error.code === 'schema_unavailable') {
    return new Refusal('The database has not been set up yet. Run `parley migrate` first.')
  }
  // Statements are named after their text: in a server process of our own no name is taken, and none is missing.
  if (isPoolerCode(code)) return new Refusal(pooledByTransaction) // guard: names that a pooler mixes up
  if (code === '42501') {
    return new Refusal(
      'The database is not migrated to this version, and the role of DATABASE_URL cannot migrate it: that needs CREATE on ' +
        'the database (for the extension btree_gin) and on the schema public, and the tables. Run `parley migrate` with ' +
        'the role that owns them.',
    )
  }
  return error
}

/** The refusal for a fault of the database's environment that reached the command line as it was; undefined: it is none. */
export function explainEnvironment(error: unknown): Refusal | undefined {
  const { code, message } = error as { readonly code?: unknown; readonly message?: string }
  if (typeof code !== 'string' || !(error instanceof Error)) return undefined
  if (isPoolerCode(code)) return new Refusal(pooledByTransaction)
  const known = environment.find(([pattern]) => pattern.test(code))
  return known && new Refusal(`${known[1]} (${code}: ${message}).${known[2]}`)
}

const again = ' Nothing was changed; run the command again.'

/** By SQLSTATE, or by the code of the operating system. */
const environment: readonly (readonly [code: RegExp, found: string, todo: string])[] = [
  [/^53100$|^ENOSPC$|^EDQUOT$/, 'The disk is full', ' Free disk space, and run the command again.'],
  [/^EROFS$/, 'The disk is read-only', ' Mount it for writing, or choose another directory.'],
  [
    /^53300$/,
    'The database allows no more connections',
    ' Lower PARLEY_POOL_SIZE, or raise max_connections.',
  ],
  [/^53/, 'The database server has run out of a resource', ' Its log says which.'],
  [/^40/, 'Other transactions were in the way', again],
  [/^(57014|25P03|55P03)$/, 'The database cancelled a statement that took or waited too long', again],
  [
    /^(08|57P|57|58|25006)/,
    'The database server ended the connection or does not accept one',
    ' Run the command again.',
  ],
  [
    /^(ECONNRESET|EPIPE|ECONNREFUSED|ETIMEDOUT)$/,
    'The connection to the database was lost',
    ' Run the command again.',
  ],
]

/** Under pooling by transaction a prepared statement exists where another client made it, and is missing where we made it. */
function isPoolerCode(code: unknown): boolean {
  return code === '42P05' || code === '26000'
}

export const pooledByTransaction =
  'DATABASE_URL leads to a pooler that works by transaction or statement: two connections share one server process. ' +
  'Parley holds locks and listens on its connections. Let the pooler work by session (PgBouncer: ' +
  '`pool_mode = session`), or name the server itself.'

/** By the code of the driver or of the server. */
const reasons: Readonly<Record<string, string>> = {
  '28P01': 'the password is wrong',
  '28000': 'the role is not allowed to log in',
  '3D000': 'the database does not exist',
  '53300': 'the server, the database or the role allows no more connections',
  ECONNREFUSED: 'nothing listens at that address',
  ENOTFOUND: 'the host name is unknown',
  ENOENT: 'the socket does not exist',
  ETIMEDOUT: 'the connection timed out',
  '53100': 'its disk is full',
}

const encrypted =
  'the server accepts no unencrypted connection; add sslmode=verify-full to DATABASE_URL (docs/scaling.md)'

/** By the message: the server uses one code for several faults. */
const messages: readonly (readonly [RegExp, string])[] = [
  [/no pg_hba\.conf entry.*(no encryption|SSL off)|SSL required|SSL connection is required/, encrypted],
  [/no pg_hba\.conf entry/, "the server's pg_hba.conf does not allow this role, database and address"],
]

const database = {
  variable: 'DATABASE_URL',
  where: 'on the server',
  trust: 'name that certificate with sslrootcert=FILE in DATABASE_URL (docs/scaling.md)',
}

function reasonOf(error: ApiError): string {
  const { code, message } = (error.cause ?? error) as Error & { code?: string }
  const certificate = findCertificateFault(error.cause ?? error, database)
  if (certificate) return `${certificate.found}. ${certificate.todo.slice(0, -1)}`
  const known = messages.find(([pattern]) => pattern.test(message))
  return known?.[1] ?? (code && reasons[code]) ?? message
}

/** The driver treats these modes as `verify-full` and warns about it with every connection: so it gets that name. */
export function plainSslMode(url: string): string {
  if (/[?&]uselibpqcompat=true\b/.test(url)) return url
  return url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=[&#]|$)/, '$1verify-full')
}
