/** Where somebody goes after signing in: a page of the dashboard, never an address that a stranger has chosen. */

const home = '/dashboard/'
const lengthMax = 2_000
/** Has no meaning of its own: a path is resolved against it, and must not have left it. */
const base = 'https://parley.invalid'

/** The path and query of a page of the dashboard. Anything else leads to its first page. */
export function readReturnTo(given: string | undefined): string {
  if (!given || given.length > lengthMax || !/^\/dashboard[/?]?/.test(given)) return home
  // Browsers read a backslash as a slash, and leave tabs and line breaks out.
  if (/[\\\p{Cc}\p{Cs}]/u.test(given) || !URL.canParse(given, base)) return home
  const { origin, pathname, search } = new URL(given, base)
  if (origin !== base || !isPage(pathname)) return home
  return `${pathname}${search}`
}

/** Below the dashboard also for a proxy that decodes the path once more, and not one of the addresses that act. */
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
