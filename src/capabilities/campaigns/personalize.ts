/** Placeholders of a message and what stands for them. Pure. */
import { isBlank, lengthOf } from '../../lib/text.ts'

/** `brackets`: `[[name]]`, of recipients that are chats. `braces`: `{{name}}`, of contacts and broadcasts. */
export type PlaceholderForm = 'brackets' | 'braces'

export interface Values {
  readonly name: string | null
  readonly username: string | null
}

type Word = keyof Values

/** What each of the contract's documents knows. */
const words: Readonly<Record<PlaceholderForm, readonly string[]>> = {
  brackets: ['name', 'username'],
  braces: ['name'],
}

/** A word of a–z and `_` with an optional fallback. Other brackets are text. */
const placeholder = /\[\[([a-z_]+)(?:\|([^[\]{}]*))?\]\]|\{\{([a-z_]+)(?:\|([^[\]{}]*))?\}\}/g

/** The platform's limit, in code points. */
export const textMax = 4_096

export function formOf(kind: 'scoped' | 'contacts' | 'broadcast'): PlaceholderForm {
  return kind === 'scoped' ? 'brackets' : 'braces'
}

/** A text taken apart once, to be filled for many. */
export interface Template {
  readonly parts: readonly (string | { readonly word: Word; readonly fallback: string | undefined })[]
  /** The first placeholder that can never be filled: unknown, or of the other document's form. */
  readonly unknown: string | undefined
  /** Of everything that is not a placeholder. */
  readonly text_length: number
  readonly text_blank: boolean
}

export function parseTemplate(text: string, form: PlaceholderForm): Template {
  const parts: Template['parts'][number][] = []
  let unknown: string | undefined
  let from = 0
  for (const found of text.matchAll(placeholder)) {
    const [whole, bracketWord, bracketFallback, braceWord, braceFallback] = found
    const word = form === 'brackets' ? bracketWord : braceWord
    if (word === undefined || !words[form].includes(word)) unknown ??= whole
    parts.push(text.slice(from, found.index), {
      word: word as Word,
      fallback: bracketFallback ?? braceFallback,
    })
    from = found.index + whole.length
  }
  parts.push(text.slice(from))
  const plain = parts.filter((part) => typeof part === 'string')
  return { parts, unknown, text_length: lengthOf(plain.join('')), text_blank: plain.every(isBlank) }
}

/** Whether it can be filled, without doing so: a campaign asks for each of its recipients and texts. */
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

/** What the person gets. A value is put in as it is: brackets in a name are text. */
export function fill(template: Template, values: Values): { text: string } | { fault: Fault } {
  const fault = findFault(template, values)
  if (fault) return { fault }
  const filled = template.parts.map((part) =>
    typeof part === 'string' ? part : values[part.word]?.trim() || part.fallback,
  )
  return { text: filled.join('') }
}

export function render(text: string, form: PlaceholderForm, values: Values) {
  return fill(parseTemplate(text, form), values)
}

/** Whether a text needs the name of everybody who gets it. */
export function needsName({ parts }: Template): boolean {
  return parts.some((part) => typeof part === 'object' && part.word === 'name' && part.fallback === undefined)
}
