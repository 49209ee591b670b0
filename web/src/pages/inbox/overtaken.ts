/** Whether another member has answered since a draft was begun. */
import type { TimelineItem } from '../../data/chats.ts'

interface Begun {
  readonly user_id: string
  /** When the draft was begun, by the service's clock. */
  readonly since: string
}

/** The newest answer of another user that the platform accepted since then. Two members may have one name. */
export function overtakenBy(
  items: readonly TimelineItem[],
  { user_id, since }: Begun,
): { id: string; name: string } | undefined {
  for (const item of items.toReversed()) {
    if (item.type !== 'message' || item.at <= since || item.by?.kind !== 'user') continue
    if (item.by.user_id === user_id) continue // guard: an own answer overtakes nothing
    return { id: item.id, name: item.by.name ?? 'Another member' }
  }
  return undefined
}
