/** The placeholders of a message and the values that replace them. Pure. */
import { textMax } from './limits.ts'
import { isBlank, lengthOf } from './text.ts'

/** `brackets`: `[[name]]`, for recipients that are chats. `braces`: `{{name}}`, for contacts and broadcasts. */
export type PlaceholderForm = 'brackets' | 'braces'

export interface Values {
  readonly name: string | null
  readonly username: string | null
}

export type Word = keyof Values

/** The words that each of the contract's documents defines, and the brackets around them. */
export const forms: Readonly<
  Record<PlaceholderForm, { open: string; close: string; words: readonly Word[] }>
> = {
  brackets: { open: '[[', close: ']]', words: ['name', 'username'] },
  braces: { open: '{{', close: '}}', words: ['name'] },
}

/** A word with an optional fallback. Letter case and surrounding blanks do not matter. */
const wordAndFallback = /^\s*([a-z_]+)\s*(?:\|([^[\]{}]*))?$/i
/** A word in the other document's brackets: without this check, people would get `{{name}}` as text. */
const foreignWord = {
  brackets: /\[\[\s*[a-z_]+\s*(?:\||\]\])/i,
  braces: /\{\{\s*[a-z_]+\s*(?:\||\}\})/i,
}

/** A parsed text, to be filled for many recipients. */
export interface Template {
  readonly parts: readonly (string | { readonly word: Word; readonly fallback: string | undefined })[]
  /** The first bracketed text that can never be filled: an unknown word, or one in the other document's form. */
  readonly unknown: string | undefined
  /** The length of everything that is not a placeholder. */
  readonly text_length: number
  readonly text_blank: boolean
}

export interface Placeholder {
  readonly index: number
  readonly whole: string
  readonly word: Word
  readonly fallback: string | undefined
}

/** The placeholders in order, and the first bracketed text that can never be filled. */
export function findPlaceholders(
  text: string,
  form: PlaceholderForm,
): { readonly known: readonly Placeholder[]; readonly unknown: string | undefined } {
  const known: Placeholder[] = []
  const unknown: Bracketed[] = []
  const other = form === 'brackets' ? 'braces' : 'brackets'
  const foreign = findBracketed(text, other).filter(({ whole }) => foreignWord[other].test(whole))
  unknown.push(...foreign) // guard: a placeholder of the other form
  for (const found of findBracketed(text, form)) {
    const [, written = '', fallback] = wordAndFallback.exec(found.inside) ?? []
    const word = forms[form].words.find((each) => each === written.toLowerCase())
    if (!word) {
      unknown.push(found) // guard: only placeholders between the brackets
      continue
    }
    known.push({ index: found.index, whole: found.whole, word, fallback })
  }
  return { known, unknown: unknown.sort((one, next) => one.index - next.index)[0]?.whole }
}

export function parseTemplate(text: string, form: PlaceholderForm): Template {
  const { known, unknown } = findPlaceholders(text, form)
  const parts: Template['parts'][number][] = []
  let from = 0
  for (const { index, whole, word, fallback } of known) {
    parts.push(text.slice(from, index), { word, fallback })
    from = index + whole.length
  }
  parts.push(text.slice(from))
  const plain = parts.filter((part) => typeof part === 'string')
  return { parts, unknown, text_length: lengthOf(plain.join('')), text_blank: plain.every(isBlank) }
}

interface Bracketed {
  readonly index: number
  readonly whole: string
  readonly inside: string
}

/** Everything between opening brackets and the next closing ones. Unclosed brackets are text. */
function findBracketed(text: string, form: PlaceholderForm): Bracketed[] {
  const { open, close } = forms[form]
  const found: Bracketed[] = []
  let from = 0
  for (;;) {
    const first = text.indexOf(open, from)
    if (first < 0) return found
    let start = first + open.length
    // If more than two open in a row, the last two count: `[[[name]]]` is a name in brackets.
    while (text[start] === open[0]) start++
    const end = text.indexOf(close, start)
    if (end < 0) return found
    const index = start - open.length
    from = end + close.length
    found.push({ index, whole: text.slice(index, from), inside: text.slice(start, end) })
  }
}

/** Whether it can be filled, without filling it: a campaign checks this for each of its recipients and texts. */
export function findFault(template: Template, values: Values): Fault | undefined {
  const { text_length, text_blank, unknown, parts } = template
  let [length, blank] = [text_length, text_blank]
  if (unknown !== undefined) return 'unresolved_personalization'
  for (const part of parts) {
    if (typeof part === 'string') continue
    const used = values[part.word]?.trim() || part.fallback
    if (used === undefined) return 'unresolved_personalization'
    length += lengthOf(used)
    blank &&= isBlank(used)
  }
  if (blank) return 'unresolved_personalization'
  return length > textMax ? 'text_too_long' : undefined
}

export type Fault = 'unresolved_personalization' | 'text_too_long'

/** The text the person gets. Values are inserted as they are: brackets in a name are text. */
function fill(template: Template, values: Values): { text: string } | { fault: Fault } {
  const fault = findFault(template, values)
  if (fault) return { fault }
  const filled = template.parts.map((part) =>
    typeof part === 'string' ? part : values[part.word]?.trim() || part.fallback,
  )
  return { text: filled.join('') }
}

/** The templates that `render` parsed last: a campaign renders the same few texts for all its recipients. */
const parsed = { brackets: new Map<string, Template>(), braces: new Map<string, Template>() }
const parsedMax = 100

export function render(text: string, form: PlaceholderForm, values: Values) {
  const known = parsed[form]
  let template = known.get(text)
  if (!template) {
    template = parseTemplate(text, form)
    if (known.size >= parsedMax) known.clear()
    known.set(text, template)
  }
  return fill(template, values)
}

/** Whether the text needs the name of every recipient. */
export function needsName({ parts }: Template): boolean {
  return parts.some((part) => typeof part === 'object' && part.word === 'name' && part.fallback === undefined)
}
