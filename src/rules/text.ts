/** Text from outside: how long it is, whether it can be stored, and how a sentence repeats it. Pure. */

/** Counts code points, as the contract does; a surrogate pair is one. */
export function lengthOf(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit >= 0xd800 && unit <= 0xdbff) at++
    count++
  }
  return count
}

export function isBlank(text: string): boolean {
  return text.trim() === ''
}

/** Storable and comparable: PostgreSQL refuses NUL, and the driver would silently replace a lone surrogate. */
export function isWellFormed(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

/** API keys, approval tokens, webhook secrets, and the 43 characters of sessions and set-up links. */
const ourTokens = /(svc_live_|apr_|whsec_)[\w+/=-]+|(?<![\w-])[\w-]{43}(?![\w-])/
/** Of messaging accounts: they have a key of 256 bytes, and the shortest have 351 characters. */
const sessionStrings = /(?<![\w+/-])[\w+/-]{340,}={0,2}/ // guard: a session string is not repeated
const tokens = new RegExp(`${ourTokens.source}|${sessionStrings.source}`, 'g')

/** Removes anything that grants access, wherever it was typed by mistake. */
export function hideTokens(text: string): string {
  // Most texts are short words: none of them is a token.
  return text.length < 43 && !text.includes('_') ? text : text.replaceAll(tokens, '$1…')
}

/** A name from outside, safe to repeat in a sentence. */
export function quote(text: string): string {
  return JSON.stringify(shorten(text))
}

/** The same without quotes, for JSON. */
export function shorten(text: string): string {
  const safe = hideTokens(text)
  const short = lengthOf(safe) > 60 ? `${[...safe].slice(0, 60).join('')}…` : safe
  return short.toWellFormed()
}
