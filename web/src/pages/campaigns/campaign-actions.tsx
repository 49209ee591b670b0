/** What can be done with a campaign now, as the service says: pause, resume, cancel; a copy; how a program does it. */
import { Pause, Play } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { type Campaign, type CampaignRef, useControl } from '../../data/campaigns.ts'
import { AsApi } from '../../ui/as-api.tsx'
import type { ApiRequest } from '../../ui/as-api-text.ts'
import { Button, buttonClass } from '../../ui/button.tsx'
import { Failure } from '../../ui/notice.tsx'
import { people, titleOf } from './campaign-words.ts'
import { EditorLink } from './editor-link.tsx'

const Confirm = lazy(async () => ({ default: (await import('../../ui/dialog.tsx')).Confirm }))

interface ActionsProps {
  at: CampaignRef
  campaign: Campaign
}

export function CampaignActions({ at, campaign }: ActionsProps) {
  const { can } = campaign
  const control = useControl(at)
  return (
    <>
      <div className="ml-auto flex flex-wrap items-center gap-1">
        {can.pause && (
          <Button size="small" busy={control.isPending} onClick={() => control.mutate('pause')}>
            <Pause aria-hidden className="size-3.5" />
            Pause
          </Button>
        )}
        <WhyNoPause campaign={campaign} />
        {can.resume && (
          <Button
            size="small"
            kind="primary"
            busy={control.isPending}
            onClick={() => control.mutate('resume')}
          >
            <Play aria-hidden className="size-3.5" />
            Resume
          </Button>
        )}
        <EditorLink
          workspace_id={at.workspace_id}
          copy={at.campaign_id}
          className={buttonClass({ kind: 'quiet', size: 'small' })}
        >
          Start a copy
        </EditorLink>
        <AsApi of="This campaign" requests={requestsOf(campaign)} />
        {can.cancel && <CancelButton at={at} campaign={campaign} />}
      </div>
      {control.error && (
        <div className="basis-full">
          <Failure error={control.error} />
        </div>
      )}
    </>
  )
}

/** Why a campaign that runs has no button to pause it, and who may. */
function WhyNoPause({ campaign: { status, steps, can } }: Pick<ActionsProps, 'campaign'>) {
  const isRunning = status === 'scheduled' || status === 'queued' || status === 'sending'
  if (!isRunning || can.pause) return null
  return (
    <span className="px-1 text-xs text-muted">
      {steps.length === 0
        ? 'Campaigns without follow-ups can’t be paused, only cancelled.'
        : 'Admins and owners on the campaign allowlist can pause it.'}
    </span>
  )
}

/** It cannot be undone, so its name is typed first. If another user ends the campaign meanwhile, the dialog closes. */
function CancelButton({ at, campaign }: ActionsProps) {
  const [isOpen, setOpen] = useState(false)
  const cancel = useControl(at)
  const title = titleOf(campaign)
  return (
    <>
      <Button kind="quiet" size="small" className="text-danger!" onClick={() => setOpen(true)}>
        Cancel campaign
      </Button>
      {isOpen && (
        <Suspense>
          <Confirm
            open
            onClose={() => setOpen(false)}
            title={`Cancel “${title}”?`}
            description={<Consequences campaign={campaign} />}
            phrase={title}
            action="Cancel campaign"
            dismiss="Keep it"
            change={cancel}
            onConfirm={() => cancel.mutate('cancel')}
          />
        </Suspense>
      )}
    </>
  )
}

function Consequences({ campaign: { totals } }: Pick<ActionsProps, 'campaign'>) {
  const { queued, waiting, submitting } = totals
  return (
    <>
      {queued > 0 && `${people(queued)} will not be written to. `}
      {waiting > 0 && `${people(waiting)} will get no follow-up. `}
      {submitting > 0
        ? `${submitting === 1 ? '1 message is' : `${submitting.toLocaleString('en')} messages are`} being sent and cannot be recalled. `
        : 'No message is being sent right now. '}
      This cannot be undone.
    </>
  )
}

function requestsOf({ id, can }: Campaign): readonly ApiRequest[] {
  const change = (does: string, verb: string): ApiRequest => ({
    does,
    method: 'POST',
    path: `/campaigns/${id}/${verb}`,
    once: true,
  })
  return [
    {
      does: 'Read this campaign and its first 100 recipients',
      method: 'GET',
      path: `/campaigns/${id}?limit=100`,
    },
    { does: 'Check its records against the ledger', method: 'GET', path: `/campaigns/${id}/verify` },
    { does: 'See when each message goes out', method: 'GET', path: `/campaigns/${id}/forecast` },
    ...(can.pause ? [change('Pause this campaign', 'pause')] : []),
    ...(can.resume ? [change('Resume this campaign', 'resume')] : []),
    ...(can.cancel ? [change('Cancel this campaign', 'cancel')] : []),
  ]
}
