/** Which placeholders a campaign's texts have, and the refusal of any other. Pure. */
import { ApiError } from '../../../lib/errors.ts'
import { quote } from '../../../lib/text.ts'
import type { PlaceholderForm, Template } from '../../../rules/placeholders.ts'

export function formOf(kind: 'scoped' | 'contacts' | 'broadcast'): PlaceholderForm {
  return kind === 'scoped' ? 'brackets' : 'braces'
}

/** Throws on a text with a placeholder that can never be filled. */
export function requireKnown({ unknown }: Template, form: PlaceholderForm): void {
  if (unknown === undefined) return
  const known = form === 'braces' ? '{{name}}' : '[[name]] or [[username]]'
  throw new ApiError('unresolved_personalization', {
    detail: `${quote(unknown)} is not a placeholder here. Use ${known}; a fallback may follow after | and must not contain brackets.`,
  })
}
