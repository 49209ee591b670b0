/** One campaign: who was written to, who answered, and why someone was not written to yet. */

import { useQuery } from '@tanstack/react-query'
import { Link, useParams, useSearch } from '@tanstack/react-router'
import { ChevronLeft } from 'lucide-react'
import { type ReactNode, useRef } from 'react'
import { Refused } from '../../data/api.ts'
import {
  type Campaign,
  type CampaignRef,
  campaignQuery,
  forecastQuery,
  recipientsQuery,
} from '../../data/campaigns.ts'
import { workspaceQuery } from '../../data/chats.ts'
import { useGo, useHere } from '../../data/place.ts'
import type { Workspace } from '../../data/queries.ts'
import { ClosedCampaigns } from '../../ui/closed-page.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { MenuButton } from '../../ui/menu-button.tsx'
import { recipientStates } from '../../ui/recipient-states.ts'
import { Reading } from '../../ui/states.tsx'
import { Missing } from '../../ui/stopped.tsx'
import { ClockTime } from '../../ui/time.tsx'
import { useTitle } from '../../ui/title.ts'
import { CampaignActions } from './campaign-actions.tsx'
import type { CampaignSearch } from './campaign-search.ts'
import { State } from './campaign-state.tsx'
import { countAll, people, titleOf } from './campaign-words.ts'
import { RecipientBar } from './recipient-bar.tsx'
import { Recipients } from './recipients.tsx'
import { Replies } from './replies.tsx'
import { Verification } from './verification.tsx'

export function CampaignPage() {
  const workspace = useHere()
  const { campaign_id } = useParams({ from: '/inside/w/$workspace_id/campaigns/$campaign_id' })
  return <OneCampaign key={campaign_id} workspace={workspace} campaign_id={campaign_id} />
}

function OneCampaign({ workspace, campaign_id }: { workspace: Workspace; campaign_id: string }) {
  const at = { workspace_id: workspace.id, campaign_id }
  const { data: state } = useQuery(workspaceQuery(workspace.id))
  const query = useQuery(campaignQuery(at))
  const { data: campaign, error } = query
  const isUnknown = error instanceof Refused && error.code === 'campaign_not_found'
  const place = useRef<HTMLDivElement>(null)
  useTitle(campaign ? titleOf(campaign) : 'Campaign')
  if (state?.capabilities.campaigns.open === false) {
    return (
      <Frame at={at}>
        <ClosedCampaigns closed_by={state.capabilities.campaigns.closed_by} />
      </Frame>
    )
  }
  if (isUnknown) return <Missing />
  return (
    <Frame at={at} campaign={campaign} place={place}>
      <div className="grid gap-3.5 px-3 py-4 sm:px-5">
        <Reading query={query} />
        {campaign && <Content at={at} campaign={campaign} place={place} />}
      </div>
    </Frame>
  )
}

interface FrameProps {
  at: CampaignRef
  campaign?: Campaign | undefined
  place?: React.Ref<HTMLDivElement>
  children: ReactNode
}

/** The bar stays, and the rest scrolls below it. */
function Frame({ at, campaign, place, children }: FrameProps) {
  return (
    <div data-own-bar className="flex h-dvh flex-col bg-surface">
      <header className="flex min-h-[53px] shrink-0 flex-wrap items-center gap-x-2.5 gap-y-1 border-b border-line px-2 py-2 lg:px-4">
        <MenuButton />
        <Link
          to="/w/$workspace_id/campaigns"
          params={{ workspace_id: at.workspace_id }}
          aria-label="All campaigns"
          className="grid size-10 shrink-0 place-items-center rounded-lg text-soft hover:bg-hover min-[761px]:size-7"
        >
          <ChevronLeft aria-hidden className="size-4" />
        </Link>
        <h1 className="min-w-0 truncate text-lg font-semibold">
          {campaign ? <ExactLine text={campaign.name ?? ''} empty={titleOf(campaign)} cut /> : 'Campaign'}
        </h1>
        {campaign && (
          <>
            <State status={campaign.status} />
            <p className="min-w-0 text-xs text-muted max-[760px]:order-last max-[760px]:basis-full max-[760px]:px-2">
              <When at={at} campaign={campaign} />
            </p>
            <CampaignActions at={at} campaign={campaign} />
          </>
        )}
      </header>
      <div ref={place} className="min-h-0 flex-1 overflow-y-auto overscroll-contain">
        {children}
      </div>
    </div>
  )
}

function When({ at, campaign }: { at: CampaignRef; campaign: Campaign }): ReactNode {
  const { status, scheduled_at, started_at, completed_at, cancelled_at, pause_reason } = campaign
  const isRunning = status === 'scheduled' || status === 'queued' || status === 'sending'
  const { data: end } = useQuery({ ...forecastQuery(at), enabled: isRunning })
  if (cancelled_at !== null) return <Moment words="Cancelled" at={cancelled_at} />
  if (completed_at !== null) return <Moment words="Ended" at={completed_at} />
  return (
    <>
      {started_at !== null && <Moment words="Began" at={started_at} />}
      {started_at === null && scheduled_at !== null && <Moment words="Begins" at={scheduled_at} />}
      {started_at === null && scheduled_at === null && 'Not begun.'}
      {isRunning && end && (
        <>
          {' '}
          <Moment words="Last message by" at={end} after=" if nobody replies" />
        </>
      )}
      {pause_reason === 'late' && ' It missed its start by too long. Resume it to begin now.'}
    </>
  )
}

function Moment({ words, at, after = '' }: { words: string; at: string; after?: string }) {
  return (
    <span>
      {words} <ClockTime at={at} />
      {after}.
    </span>
  )
}

interface ContentProps {
  at: CampaignRef
  campaign: Campaign
  place: React.RefObject<HTMLDivElement | null>
}

function Content({ at, campaign, place }: ContentProps) {
  const { status, ...rest } = useSearch({ from: '/inside/w/$workspace_id/campaigns/$campaign_id' })
  const search = { ...rest, ...(status !== undefined && status in recipientStates && { status }) }
  const go = useGo<CampaignSearch>('/w/$workspace_id/campaigns/$campaign_id', { replace: true })
  const { data: first } = useQuery(recipientsQuery({ ...at, status: undefined, name: undefined }, undefined))
  return (
    <>
      <Card>
        <h2 className="mb-2.5 text-sm font-semibold">
          {people(countAll(campaign.totals))}{' '}
          <span className="font-normal text-muted">
            {campaign.kind === 'contacts' ? 'from a list' : 'in chats'}
            {first && (
              <>
                , created by <ExactLine text={first.created_by.name} empty="a user without a name" />
              </>
            )}
          </span>
        </h2>
        <RecipientBar totals={campaign.totals} reporting={campaign.reporting} />
      </Card>
      <div className="grid items-stretch gap-3.5 lg:grid-cols-[minmax(0,1.12fr)_minmax(0,1fr)]">
        <Card>
          <Replies campaign={campaign} />
        </Card>
        <Card>
          <Verification at={at} />
        </Card>
      </div>
      <Recipients at={at} campaign={campaign} search={search} go={go} place={place} />
    </>
  )
}

function Card({ children }: { children: ReactNode }) {
  return <section className="min-w-0 rounded-xl px-4 py-3.5 ring-1 ring-line">{children}</section>
}
