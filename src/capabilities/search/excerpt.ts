/** The part of a text around the match, as it was written. Pure. */
import { type Phrase, standsAt, type Token, tokenise } from '../../lib/tokens.ts'

/** In characters, including the ellipses where it was cut. */
export const excerptMax = 200
export const contextMax = 4000
/** How many characters before the match are shown. */
const lead = 60

export function excerptOf(text: string, phrases: readonly Phrase[]): string {
  const whole = text.normalize('NFC')
  const characters = [...whole]
  if (characters.length <= excerptMax) return text
  const match = firstMatch(tokenise(whole), phrases)
  const at = match === undefined ? 0 : [...whole.slice(0, match)].length
  const room = excerptMax - 2
  // Near the end of the text, show more before the match.
  const start = wordStart(characters, Math.max(0, Math.min(at - lead, characters.length - room)), at)
  const end = wordEnd(characters, Math.min(characters.length, start + room), at)
  const shown = characters.slice(start, end).join('').trim()
  return `${start > 0 ? '…' : ''}${shown}${end < characters.length ? '…' : ''}`
}

/** Where the first matching phrase begins. */
function firstMatch(tokens: readonly Token[], phrases: readonly Phrase[]): number | undefined {
  return tokens.find((_, at) => phrases.some((phrase) => standsAt(tokens, at, phrase)))?.start
}

const space = /\s/u
/** Characters that belong to the one before, or join it to the next. */
const joined = /\p{M}|\p{Emoji_Modifier}|\u200d/u

/** The first word that starts at or after `from`, but not after the match; in a script without spaces, `from` itself. */
function wordStart(characters: readonly string[], from: number, match: number): number {
  if (from === 0) return 0
  for (let at = from; at < match; at++) if (space.test(characters[at - 1] ?? '')) return at
  return whole(characters, from)
}

function wordEnd(characters: readonly string[], until: number, match: number): number {
  if (until === characters.length) return until
  for (let at = until; at > match + 1; at--) if (space.test(characters[at] ?? '')) return at
  return whole(characters, until)
}

/** Moves back to the beginning of a whole character. */
function whole(characters: readonly string[], from: number): number {
  let at = from
  while (at > 0 && (joined.test(characters[at] ?? '') || characters[at - 1] === '\u200d')) at--
  return at
}

interface Line {
  readonly chat_name: string
  readonly is_sender: boolean
  readonly timestamp: string
  readonly excerpt: string
}

/** One line per match, as many as fit, for a reader that sees nothing else. */
export function contextOf(lines: readonly Line[]): string {
  let context = ''
  let length = 0
  for (const { chat_name, is_sender, timestamp, excerpt } of lines) {
    const text = `[${timestamp}] ${oneLine(chat_name)}, ${is_sender ? 'sent' : 'received'}: ${oneLine(excerpt)}\n`
    length += [...text].length
    if (length > contextMax) break
    context += text
  }
  return context.trimEnd()
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/gu, ' ').trim()
}
