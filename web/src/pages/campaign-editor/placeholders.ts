/**
 * The placeholders of a text while a user writes it, by the service's rules (`personalize.ts`): a test compares the two.
 * Chats have `[[name]]` and `[[username]]`, contacts and broadcasts `{{name}}`. Pure.
 */
export type PlaceholderForm = 'brackets' | 'braces'
export type Word = 'name' | 'username'

export interface Placeholder {
  readonly index: number
  readonly whole: string
  readonly word: Word
  readonly fallback: string | undefined
}

const marks = {
  brackets: { open: '[[', close: ']]' },
  braces: { open: '{{', close: '}}' },
} as const

export const wordsOf: Readonly<Record<PlaceholderForm, readonly Word[]>> = {
  brackets: ['name', 'username'],
  braces: ['name'],
}

/** The platform's limit, in code points. */
export const textMax = 4_096

const wordAndFallback = /^\s*([a-z_]+)\s*(?:\|([^[\]{}]*))?$/i
const foreignWord = {
  brackets: /\[\[\s*[a-z_]+\s*(?:\||\]\])/i,
  braces: /\{\{\s*[a-z_]+\s*(?:\||\}\})/i,
}

export function lengthOf(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

export function placeholder(form: PlaceholderForm, word: Word, fallback?: string): string {
  const { open, close } = marks[form]
  return `${open}${word}${fallback === undefined ? '' : `|${fallback}`}${close}`
}

/** The placeholders in order, and the first bracketed text that can never be filled. */
export function findPlaceholders(
  text: string,
  form: PlaceholderForm,
): { readonly known: readonly Placeholder[]; readonly unknown: string | undefined } {
  const other = form === 'brackets' ? 'braces' : 'brackets'
  const unknown = findBracketed(text, other).filter(({ whole }) => foreignWord[other].test(whole))
  const known: Placeholder[] = []
  for (const found of findBracketed(text, form)) {
    const [, written = '', fallback] = wordAndFallback.exec(found.inside) ?? []
    const word = wordsOf[form].find((each) => each === written.toLowerCase())
    if (word) known.push({ index: found.index, whole: found.whole, word, fallback })
    else unknown.push(found)
  }
  return { known, unknown: unknown.sort((one, next) => one.index - next.index)[0]?.whole }
}

interface Bracketed {
  readonly index: number
  readonly whole: string
  readonly inside: string
}

/** Everything between opening brackets and the next closing ones. Unclosed brackets are text. */
function findBracketed(text: string, form: PlaceholderForm): Bracketed[] {
  const { open, close } = marks[form]
  const found: Bracketed[] = []
  let from = 0
  for (;;) {
    const first = text.indexOf(open, from)
    if (first < 0) return found
    let start = first + open.length
    // If more than two open in a row, the last two count.
    while (text[start] === open[0]) start++
    const end = text.indexOf(close, start)
    if (end < 0) return found
    const index = start - open.length
    from = end + close.length
    found.push({ index, whole: text.slice(index, from), inside: text.slice(start, end) })
  }
}

/** The text with every placeholder replaced. */
export function replacePlaceholders(
  text: string,
  form: PlaceholderForm,
  by: (found: Placeholder) => string,
): string {
  let [out, from] = ['', 0]
  for (const found of findPlaceholders(text, form).known) {
    out += text.slice(from, found.index) + by(found)
    from = found.index + found.whole.length
  }
  return out + text.slice(from)
}

/** The same text in the other form. A word that the other form lacks stays, and is then an error at the field. */
export function toForm(text: string, form: PlaceholderForm): string {
  const other = form === 'brackets' ? 'braces' : 'brackets'
  return replacePlaceholders(text, other, ({ word, fallback }) => placeholder(form, word, fallback))
}

export interface Named {
  readonly name: string | null
  readonly username: string | null
}

/** The length of the text for the recipient with the longest values, and that recipient's name. */
export function longestFor(
  text: string,
  form: PlaceholderForm,
  people: readonly Named[],
): { readonly length: number; readonly name: string | null } {
  const { known } = findPlaceholders(text, form)
  const plain = lengthOf(replacePlaceholders(text, form, () => ''))
  let longest = { length: plain, name: null as string | null }
  if (known.length === 0) return longest
  for (const person of people) {
    const length = known.reduce((sum, { word, fallback }) => {
      return sum + lengthOf(person[word]?.trim() || (fallback ?? ''))
    }, plain)
    if (length > longest.length) longest = { length, name: person.name }
  }
  return longest
}
