/**
 * The words of a text in any script, as search compares them, and the language that asks for them. Made here and
 * not in the database, whose locale may know nothing of letters beyond ASCII.
 */

/** Letters that carry no mark which could be taken off, and are still typed without it. */
const plain: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  ħ: 'h',
  ı: 'i',
  ł: 'l',
  ŧ: 't',
  þ: 'th',
  ς: 'σ',
}

/** Accents, points and harakat. The vowel signs of Indic scripts and Thai are marks too, and part of the word. */
const strayMark =
  /^(?=\p{M})[\p{Script=Inherited}\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}]$/u
const ignorable = /^[\p{Default_Ignorable_Code_Point}\p{Emoji_Modifier}]$/u
/** Scripts that put no space between words: found by substring. Flags are pairs of their letters. */
const unspaced =
  /^(?:(?=[\p{L}\p{N}\p{M}])[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Bopomofo}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]|\p{Regional_Indicator})$/u
const letter = /^[\p{L}\p{N}\p{M}]$/u
const picture = /^\p{Extended_Pictographic}$/u

type Kind = 'letter' | 'unspaced' | 'picture' | 'gap'

/** What becomes of one code point: usually one character, sometimes none or several. */
type Folded = readonly { readonly character: string; readonly kind: Kind }[]

const folds = new Map<number, Folded>()
const foldsMax = 20_000

function foldOf(code: number): Folded {
  let folded = folds.get(code)
  if (!folded) {
    folded = fold(String.fromCodePoint(code))
    if (folds.size >= foldsMax) folds.clear()
    folds.set(code, folded)
  }
  return folded
}

function fold(character: string): Folded {
  const bare = [...character.normalize('NFKD').toLowerCase().normalize('NFKD')]
    .filter((part) => !strayMark.test(part) && !ignorable.test(part))
    .map((part) => plain[part] ?? part)
    .join('')
    // Puts the syllables of Hangul together again.
    .normalize('NFC')
  return [...bare].map((part) => ({ character: part, kind: kindOf(part) }))
}

function kindOf(character: string): Kind {
  if (unspaced.test(character)) return 'unspaced'
  if (letter.test(character)) return 'letter'
  return picture.test(character) ? 'picture' : 'gap'
}

/** Lower case, without accents: two texts that are equal afterwards are the same to a search. */
export function normalise(text: string): string {
  let normal = ''
  for (const character of text.normalize('NFC')) {
    for (const part of foldOf(character.codePointAt(0) ?? 0)) normal += part.character
  }
  return normal
}

/** A piece of a text that can be looked for; `start` and `end` are where it stands in `text.normalize('NFC')`. */
export interface Token {
  readonly word: string
  readonly start: number
  readonly end: number
  /** The last character of a run without spaces, there so that every character begins a token. */
  readonly tail?: 'alone' | 'after'
}

/** What PostgreSQL can tell the position of. */
export const tokensMax = 16_383
/** Of a longer run of letters only the beginning is told from others. */
const wordLengthMax = 64

/**
 * Runs of letters and digits are words. Where a script has no spaces, every two characters that stand together are
 * one, and the last one is one by itself: so every substring is a row of tokens that stand one after another.
 */
export function tokenise(text: string): Token[] {
  const tokens: Token[] = []
  const run = { kind: 'gap' as Kind, word: '', start: 0, end: 0, length: 0 }
  const finish = () => {
    if (run.kind === 'letter') tokens.push({ word: run.word, start: run.start, end: run.end })
    if (run.kind === 'unspaced') {
      const tail = run.length === 1 ? 'alone' : 'after'
      tokens.push({ word: run.word, start: run.start, end: run.end, tail })
    }
    run.kind = 'gap'
  }
  const take = (character: string, kind: Kind, start: number, end: number) => {
    if (kind === 'letter' && run.kind === 'letter') {
      if (run.word.length < wordLengthMax) run.word += character
      run.end = end
      return
    }
    if (kind === 'unspaced' && run.kind === 'unspaced') {
      tokens.push({ word: run.word + character, start: run.start, end })
      Object.assign(run, { word: character, start, end, length: run.length + 1 })
      return
    }
    finish()
    if (kind === 'picture') tokens.push({ word: character, start, end })
    else Object.assign(run, { kind, word: character, start, end, length: 1 })
  }
  let at = 0
  for (const character of text.normalize('NFC')) {
    const start = at
    at += character.length
    for (const part of foldOf(character.codePointAt(0) ?? 0)) take(part.character, part.kind, start, at)
    if (tokens.length >= tokensMax) break
  }
  finish()
  return tokens.slice(0, tokensMax)
}
