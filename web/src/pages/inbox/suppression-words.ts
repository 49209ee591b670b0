/** What the inbox says about an entry of the suppression list. */
import { type ChatSuppression, writtenOf } from '../../data/suppressions.ts'

/** "Asked to stop on 9 Nov": by the time of the message, where there is one. */
export function suppressedWords(
  { source, created_at, evidence }: Pick<ChatSuppression, 'source' | 'created_at' | 'evidence'>,
  date: (at: string) => string,
): string {
  if (source === 'opt_out') {
    const { timestamp } = evidence
    return `Asked to stop on ${date(typeof timestamp === 'string' ? timestamp : created_at)}`
  }
  return source === 'import'
    ? `Suppressed on ${date(created_at)}, by an import`
    : `Suppressed on ${date(created_at)}`
}

/** The text of the message that asked to stop. */
export function askedText({ evidence: { text } }: Pick<ChatSuppression, 'evidence'>): string | undefined {
  return typeof text === 'string' && text.trim() !== '' ? text : undefined
}

export const nameOfEntry = (entry: ChatSuppression) =>
  entry.kind === 'platform_id' ? `platform id ${entry.value}` : writtenOf(entry)
