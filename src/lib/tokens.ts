/**
 * The words of a text in any script, as search compares them, and the query syntax for them. Done here and not in the
 * database, whose locale may know no letters beyond ASCII.
 */

/** Letters that have no separate mark to remove, but are also typed without it. */
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
/** Scripts without spaces between words: found by substring. Flags are pairs of their letters. */
const unspaced =
  /^(?:(?=[\p{L}\p{N}\p{M}])[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Bopomofo}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]|\p{Regional_Indicator})$/u
const letter = /^[\p{L}\p{N}\p{M}]$/u
const picture = /^\p{Extended_Pictographic}$/u

type Kind = 'letter' | 'unspaced' | 'picture' | 'gap'

/** What a code point folds to: usually one character, sometimes none or several. */
type FoldedCharacters = readonly { readonly character: string; readonly kind: Kind }[]

const folds = new Map<number, FoldedCharacters>()
const foldsMax = 20_000

function foldOf(code: number): FoldedCharacters {
  let folded = folds.get(code)
  if (!folded) {
    folded = fold(String.fromCodePoint(code))
    if (folds.size >= foldsMax) folds.clear()
    folds.set(code, folded)
  }
  return folded
}

function fold(character: string): FoldedCharacters {
  const bare = [...character.normalize('NFKD').toLowerCase().normalize('NFKD')]
    .filter((part) => !strayMark.test(part) && !ignorable.test(part))
    .map((part) => plain[part] ?? part)
    .join('')
    // Composes the syllables of Hangul again.
    .normalize('NFC')
  return [...bare].map((part) => ({ character: part, kind: kindOf(part) }))
}

function kindOf(character: string): Kind {
  if (unspaced.test(character)) return 'unspaced'
  if (letter.test(character)) return 'letter'
  return picture.test(character) ? 'picture' : 'gap'
}

/** Lower case, without accents: a search treats two texts as the same if they are equal afterwards. */
export function normalise(text: string): string {
  let normal = ''
  for (const character of text.normalize('NFC')) {
    for (const part of foldOf(character.codePointAt(0) ?? 0)) normal += part.character
  }
  return normal
}

/** A searchable piece of a text; `start` and `end` are its place in `text.normalize('NFC')`. */
export interface Token {
  readonly word: string
  readonly start: number
  readonly end: number
  /** Of a run without spaces: two characters, or the last one, `alone` or `after` others. */
  readonly part?: 'pair' | 'alone' | 'after'
}

/** As many as the longest message can have; PostgreSQL would accept more positions, but not much more text. */
export const tokensMax = 4096
/** Only the beginning of a longer run of letters is compared. */
const wordLengthMax = 64

/**
 * Runs of letters and digits are words. In a script without spaces, every two adjacent characters are a token, and the
 * last one is a token by itself: so every character begins a token, and every substring is a sequence of tokens.
 */
export function tokenise(text: string): Token[] {
  const reader = new Reader()
  let at = 0
  for (const character of text.normalize('NFC')) {
    const start = at
    at += character.length
    for (const part of foldOf(character.codePointAt(0) ?? 0)) reader.take(part, start, at)
    if (reader.tokens.length >= tokensMax) break
  }
  reader.finish()
  return reader.tokens.slice(0, tokensMax)
}

/** Joins characters into tokens; `word` is the run so far. */
class Reader {
  readonly tokens: Token[] = []
  #kind: Kind = 'gap'
  #word = ''
  #start = 0
  #end = 0
  #length = 0

  take({ character, kind }: FoldedCharacters[number], start: number, end: number): void {
    if (kind === 'letter' && this.#kind === kind) {
      if (this.#word.length < wordLengthMax) this.#word += character
      this.#end = end
      return
    }
    if (kind === 'unspaced' && this.#kind === kind) {
      this.tokens.push({ word: this.#word + character, start: this.#start, end, part: 'pair' })
      this.#begin(kind, character, start, end)
      return
    }
    this.finish()
    if (kind === 'picture') this.tokens.push({ word: character, start, end })
    else if (kind !== 'gap') this.#begin(kind, character, start, end)
  }

  #begin(kind: Kind, character: string, start: number, end: number): void {
    this.#length = this.#kind === kind ? this.#length + 1 : 1
    this.#kind = kind
    this.#word = character
    this.#start = start
    this.#end = end
  }

  finish(): void {
    const token = { word: this.#word, start: this.#start, end: this.#end }
    if (this.#kind === 'letter') this.tokens.push(token)
    if (this.#kind === 'unspaced') {
      this.tokens.push({ ...token, part: this.#length === 1 ? 'alone' : 'after' })
    }
    this.#kind = 'gap'
  }
}

/** Lexemes with their positions, as `tsvector` reads them. */
export function toTsvector(tokens: readonly Token[]): string {
  const positions = new Map<string, string>()
  for (const [at, { word }] of tokens.entries()) {
    const before = positions.get(word)
    positions.set(word, before === undefined ? String(at + 1) : `${before},${at + 1}`)
  }
  let literal = ''
  for (const [word, at] of positions) literal += `${quoteLexeme(word)}:${at} `
  return literal.trimEnd()
}

const special = /['\\]/

/** Quotes it, so that nothing in it is read as an operator. */
function quoteLexeme(lexeme: string): string {
  if (!special.test(lexeme)) return `'${lexeme}'`
  return `'${lexeme.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
}

/** A phrase: one word, or several in sequence. */
export type Phrase = readonly { readonly word: string; readonly prefix: boolean }[]

/**
 * What to search for to find this text. With `prefix`, its last word may continue; in a script without spaces, the text may
 * be anywhere in a longer run.
 */
export function phraseOf(text: string, { prefix }: { prefix: boolean }): Phrase {
  const tokens = tokenise(text)
  const last = tokens.at(-1)
  if (last?.part === 'after') tokens.pop()
  const open = prefix || last?.part === 'alone'
  return tokens.map(({ word }, at) => ({ word, prefix: open && at === tokens.length - 1 }))
}

export function standsAt(tokens: readonly Token[], at: number, phrase: Phrase): boolean {
  return phrase.every(({ word, prefix }, next) => {
    const token = tokens[at + next]?.word
    return prefix ? token?.startsWith(word) : token === word
  })
}

export function standsIn(tokens: readonly Token[], phrase: Phrase): boolean {
  return tokens.some((_, at) => standsAt(tokens, at, phrase))
}

/** The phrase in the syntax of `tsquery`. */
export function toTsquery(phrase: Phrase): string {
  const lexemes = phrase.map(({ word, prefix }) => `${quoteLexeme(word)}${prefix ? ':*' : ''}`)
  return lexemes.length === 1 ? lexemes.join('') : `(${lexemes.join(' <-> ')})`
}

/** Each word of the text as the beginning of a word, in any order. */
export function prefixPhrases(text: string): Phrase[] {
  return text
    .split(/\s+/u)
    .map((word) => phraseOf(word, { prefix: true }))
    .filter((phrase) => phrase.length > 0)
}
