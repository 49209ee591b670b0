/** Where to go after signing in: a page of the dashboard, never an address that a stranger chose. */

const home = '/dashboard/'
const lengthMax = 2_000
/** Only resolves paths: the result must have the same origin. */
const base = 'https://parley.invalid'

/** The path and query of a dashboard page. Anything else becomes its first page. */
export function readReturnTo(given: string | undefined): string {
  if (!given || given.length > lengthMax || !/^\/dashboard[/?]?/.test(given)) return home
  // Browsers read a backslash as a slash, and drop tabs and line breaks.
  if (/[\\\p{Cc}\p{Cs}]/u.test(given) || !URL.canParse(given, base)) return home
  const { origin, pathname, search } = new URL(given, base)
  if (origin !== base || !isPage(pathname)) return home
  return `${pathname}${search}`
}

/** Under the dashboard even if a proxy decodes the path once more, and not one of the routes that act. */
function isPage(path: string): boolean {
  const decoded = decode(path)
  if (decoded === undefined || /%|\\|\/\/|\/\.{1,2}(\/|$)|\p{Cc}/u.test(decoded)) return false
  return path.startsWith(home) && !/^\/dashboard\/(api|oidc)(\/|$)/i.test(decoded)
}

function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}
