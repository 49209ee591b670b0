/** What a notification says: a name or a text only if its user has switched them on. */
import { codeOf, splitHidden } from '../hidden-characters.ts'
import type { NotificationSettings } from './notification-settings.ts'

export interface NewsWords {
  /** Without a name or text. */
  readonly plain: string
  readonly title: string
  readonly body: string
}

export function wordsOf(
  { plain, title, body }: NewsWords,
  { text }: Pick<NotificationSettings, 'text'>,
): { title: string; body: string } {
  if (!text) return { title: plain, body: '' } // guard: notifications without text
  return { title: exact(title) || plain, body: exact(body) }
}

const lengthMax = 200

/** Characters that cannot be seen, or turn the writing direction, as their codes. */
function exact(text: string): string {
  const line = text.slice(0, lengthMax).toWellFormed().trim()
  return splitHidden(line)
    .map((part, at) => (at % 2 === 1 ? `[${codeOf(part)}]` : part))
    .join('')
}
