/** The state of a campaign in a word. */
import type { Progress } from '../../data/campaigns.ts'
import { Badge } from '../../ui/badge.tsx'
import { campaignStates } from './campaign-words.ts'

export function State({ status }: { status: Progress['status'] }) {
  const [tone, word] = campaignStates[status]
  return <Badge tone={tone}>{word}</Badge>
}
