/** Whether a message asks us to stop. Pure. */
import { tokenise } from '../../lib/tokens.ts'

/** The words of `PARLEY_OPT_OUT_WORDS`, normalised once. */
const made = new Map<readonly string[], ReadonlySet<string>>()

/**
 * The whole message must be one of the words, however it is written: "Stop!" asks, "stop by tomorrow" does not. A message
 * that only contains one is for a person to read.
 */
export function isOptOut(words: readonly string[], text: string): boolean {
  // An opt-out is short, so longer messages are not tokenised.
  if (text.length > 200) return false
  let known = made.get(words)
  if (!known) {
    known = new Set(words.map(bare).filter(Boolean))
    made.set(words, known)
  }
  return known.has(bare(text))
}

/** Letters and digits only, in lower case and without accents. */
function bare(text: string): string {
  return tokenise(text)
    .filter(({ word }) => /[\p{L}\p{N}]/u.test(word))
    .map(({ word }) => word)
    .join(' ')
}
