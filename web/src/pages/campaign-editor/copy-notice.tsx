/** `?copy=`: the texts and times of another campaign. Whom it wrote to is not copied: they would be written to again. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useEffectEvent } from 'react'
import type { CampaignDetail } from '../../data/api-types.ts'
import { campaignToCopyQuery } from '../../data/campaigns.ts'
import { newKey } from '../../data/kept.ts'
import { Button } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Failure, Notice } from '../../ui/notice.tsx'
import type { Change } from './campaign-draft.ts'
import { type CampaignDraft, emptyDraft, isEmptyDraft, type Unit } from './campaign-draft.ts'

interface CopyNoticeProps {
  workspace_id: string
  campaign_id: string
  draft: CampaignDraft
  isLoaded: boolean
  change: Change
}

export function CopyNotice({ workspace_id, campaign_id, draft, isLoaded, change }: CopyNoticeProps) {
  const { data, error } = useQuery(campaignToCopyQuery(workspace_id, campaign_id))
  const navigate = useNavigate()
  const leave = () =>
    void navigate({
      to: '/w/$workspace_id/campaigns/new',
      params: { workspace_id },
      search: {},
      replace: true,
    })
  const copy = () => {
    if (data) change(() => copyOf(data))
    leave()
  }
  const isFree = isLoaded && data !== undefined && isEmptyDraft(draft)
  const fill = useEffectEvent(copy)
  // An empty draft is filled once, when both are known.
  useEffect(() => {
    if (isFree) fill()
  }, [isFree])
  if (error) return <Failure error={error} />
  if (!data || !isLoaded || isFree) return null
  return (
    <Notice tone="warn">
      You have another draft. A copy of “
      <ExactLine text={data.name ?? ''} empty="a campaign without a name" />” would replace it.
      <span className="mt-1.5 flex flex-wrap gap-1.5">
        <Button size="small" onClick={copy}>
          Replace my draft
        </Button>
        <Button size="small" kind="quiet" onClick={leave}>
          Keep my draft
        </Button>
      </span>
    </Notice>
  )
}

type Copied = Pick<
  CampaignDetail,
  'name' | 'kind' | 'message_text' | 'branching_enabled' | 'daily_quota_per_account' | 'steps'
>

function copyOf(campaign: Copied): CampaignDraft {
  return {
    ...emptyDraft,
    name: campaign.name ?? '',
    who: campaign.kind === 'scoped' ? 'chats' : 'list',
    message_text: campaign.message_text,
    branching: campaign.branching_enabled,
    quota: String(campaign.daily_quota_per_account),
    steps: campaign.steps.map(({ branch, wait_hours, variants }) => ({
      id: newKey(),
      branch,
      ...waitOf(wait_hours),
      variants,
    })),
  }
}

function waitOf(hours: number): { wait: string; unit: Unit } {
  if (hours % 24 === 0) return { wait: String(hours / 24), unit: 'days' }
  if (Number.isInteger(hours)) return { wait: String(hours), unit: 'hours' }
  return { wait: String(Math.ceil(hours * 60)), unit: 'minutes' }
}
