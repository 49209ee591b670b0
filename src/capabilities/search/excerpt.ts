/** The part of a text around what was looked for, as it was written. Pure. */
import { type Phrase, standsAt, type Token, tokenise } from '../../lib/tokens.ts'

/** Characters, the marks where it was cut included. */
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
  // At the end of the text there is more room before the match.
  const start = wordStart(characters, Math.max(0, Math.min(at - lead, characters.length - room)), at)
  const end = wordEnd(characters, Math.min(characters.length, start + room), at)
  const shown = characters.slice(start, end).join('').trim()
  return `${start > 0 ? '…' : ''}${shown}${end < characters.length ? '…' : ''}`
}

/** Where the first of the phrases begins. */
function firstMatch(tokens: readonly Token[], phrases: readonly Phrase[]): number | undefined {
  return tokens.find((_, at) => phrases.some((phrase) => standsAt(tokens, at, phrase)))?.start
}

const space = /\s/u
/** What belongs to the character before it, or joins it to the next. */
const joined = /\p{M}|\p{Emoji_Modifier}|\u200d/u

/** The first word that begins there or after, but not after the match; in a script without spaces, right there. */
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

/** Back to where a character begins that is not part of another. */
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

/** One line a match, for a reader who has nothing else: as many as fit. */
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
