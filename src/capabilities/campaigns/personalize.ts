/** Placeholders of a message and what stands for them. Pure. */

/** `brackets`: `[[name]]`, of recipients that are chats. `braces`: `{{name}}`, of contacts and broadcasts. */
export type PlaceholderForm = 'brackets' | 'braces'

export interface Values {
  readonly name: string | null
  readonly username: string | null
}

/** What each of the contract's documents knows. */
const words = {
  brackets: ['name', 'username'],
  braces: ['name'],
} as const satisfies Record<PlaceholderForm, readonly (keyof Values)[]>

/** A word of a–z and `_` with an optional fallback. Other brackets are text. */
const placeholder = /\[\[([a-z_]+)(?:\|([^[\]{}]*))?\]\]|\{\{([a-z_]+)(?:\|([^[\]{}]*))?\}\}/g

/** The platform's limit, in code points. */
export const textMax = 4_096

export function formOf(kind: 'scoped' | 'contacts' | 'broadcast'): PlaceholderForm {
  return kind === 'scoped' ? 'brackets' : 'braces'
}

/** The first placeholder that can never be filled: unknown, or of the other document's form. */
export function findUnknown(text: string, form: PlaceholderForm): string | undefined {
  for (const found of text.matchAll(placeholder)) {
    const [whole, bracketWord, , braceWord] = found
    const known: readonly string[] = words[form]
    const word = form === 'brackets' ? bracketWord : braceWord
    if (word === undefined || !known.includes(word)) return whole
  }
  return undefined
}

export type Rendered =
  | { readonly text: string }
  | { readonly fault: 'unresolved_personalization' | 'text_too_long' }

/** What the person gets. A value is put in as it is: brackets in a name are text. */
export function render(text: string, form: PlaceholderForm, values: Values): Rendered {
  if (findUnknown(text, form) !== undefined) return { fault: 'unresolved_personalization' }
  let missing = false
  const filled = text.replaceAll(placeholder, (...found: unknown[]) => {
    const [, bracketWord, bracketFallback, braceWord, braceFallback] = found as (string | undefined)[]
    const value = values[(bracketWord ?? braceWord) as keyof Values]?.trim()
    const used = value || (bracketFallback ?? braceFallback)
    if (used === undefined) missing = true
    return used ?? ''
  })
  if (missing || filled.trim() === '') return { fault: 'unresolved_personalization' }
  return [...filled].length > textMax ? { fault: 'text_too_long' } : { text: filled }
}

/** Whether a text needs the name of everybody who gets it. */
export function needsName(text: string): boolean {
  return [...text.matchAll(placeholder)].some(
    ([, bracketWord, bracketFallback, braceWord, braceFallback]) =>
      (bracketWord ?? braceWord) === 'name' && (bracketFallback ?? braceFallback) === undefined,
  )
}
