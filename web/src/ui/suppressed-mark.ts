/** How lists mark a chat whose person is on the suppression list: as its head and side do. Null: it has no mark. */
import type { InboxChat } from '../data/chats.ts'

export function suppressedMark({
  suppressed,
  asked_to_stop,
}: Pick<InboxChat, 'suppressed' | 'asked_to_stop'>): string | null {
  if (!suppressed) return null
  return asked_to_stop ? 'Asked to stop' : 'Suppressed' // guard: a list says who asked to stop
}
