/** What is wrong with the database of DATABASE_URL, in a sentence for the person who sets it up. */
import { ApiError, Refusal } from '../lib/errors.ts'

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
  if (code === '42501') {
    return new Refusal(
      'The database is not migrated to this version, and the role of DATABASE_URL cannot migrate it: that needs CREATE on ' +
        'the database (for the extension btree_gin) and on the schema public, and the tables. Run `parley migrate` with ' +
        'the role that owns them.',
    )
  }
  return error
}

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
}

const encrypted =
  'the server accepts no unencrypted connection; add sslmode=verify-full to DATABASE_URL (docs/scaling.md)'
const unverified =
  "the server's certificate cannot be verified; name its authority with sslrootcert=FILE in DATABASE_URL (docs/scaling.md)"

/** By the message: the server uses one code for several faults, and Node has many for certificates. */
const messages: readonly (readonly [RegExp, string])[] = [
  [/no pg_hba\.conf entry.*(no encryption|SSL off)|SSL required|SSL connection is required/, encrypted],
  [/no pg_hba\.conf entry/, "the server's pg_hba.conf does not allow this role, database and address"],
  [/self[- ]signed certificate|unable to (verify|get)|certificate has expired|altnames/i, unverified],
]

function reasonOf(error: ApiError): string {
  const { code, message } = (error.cause ?? error) as Error & { code?: string }
  const known = messages.find(([pattern]) => pattern.test(message))
  return known?.[1] ?? (code && reasons[code]) ?? message
}

/** The driver treats these modes as `verify-full` and warns about it with every connection: so it gets that name. */
export function plainSslMode(url: string): string {
  if (/[?&]uselibpqcompat=true\b/.test(url)) return url
  return url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=[&#]|$)/, '$1verify-full')
}
