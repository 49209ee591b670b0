/** The states of endpoints and deliveries as words. */

import type { DeliveryState, Webhook } from '../../data/webhooks.ts'
import { Badge } from '../../ui/badge.tsx'

export function StateBadge({
  of: { active, disabled_at, stop_reason, consecutive_failures },
}: {
  of: Webhook
}) {
  if (stop_reason !== null) return <Badge tone="warn">Stopped</Badge>
  if (disabled_at !== null) return <Badge tone="danger">Disabled</Badge>
  if (!active) return <Badge>Inactive</Badge>
  if (consecutive_failures > 0) {
    return (
      <Badge tone="warn">
        {consecutive_failures === 1 ? '1 attempt failed' : `${consecutive_failures} attempts failed`}
      </Badge>
    )
  }
  return <Badge tone="good">Active</Badge>
}

export const stateWords: Readonly<
  Record<DeliveryState, readonly [word: string, tone: 'plain' | 'good' | 'danger']>
> = {
  pending: ['Pending', 'plain'],
  delivered: ['Delivered', 'good'],
  failed: ['Failed', 'danger'],
}

export function DeliveryBadge({ state }: { state: DeliveryState }) {
  const [word, tone] = stateWords[state]
  return <Badge tone={tone}>{word}</Badge>
}
