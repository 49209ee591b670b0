/** The campaigns of a workspace: how far each is, and what it sends next. */

import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Plus, Send } from 'lucide-react'
import type { ReactNode } from 'react'
import { type Progress, progressQuery } from '../../data/campaigns.ts'
import { inboxQuery, workspaceQuery } from '../../data/chats.ts'
import { useHere } from '../../data/place.ts'
import type { Workspace } from '../../data/queries.ts'
import { AsApi } from '../../ui/as-api.tsx'
import { buttonClass } from '../../ui/button.tsx'
import { ClosedCampaigns } from '../../ui/closed-page.tsx'

import { ExactLine } from '../../ui/exact-text.tsx'
import { Page } from '../../ui/page.tsx'
import { More, Reading } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { State } from './campaign-state.tsx'
import { countAll, titleOf } from './campaign-words.ts'
import { EditorLink } from './editor-link.tsx'
import { finished, SmallBar } from './recipient-bar.tsx'

export function CampaignsPage() {
  const workspace = useHere()
  const { data: state } = useQuery(workspaceQuery(workspace.id))
  const closed = state?.capabilities.campaigns.open === false
  return (
    <Page title="Campaigns" action={!closed && <NewCampaign workspace_id={workspace.id} />}>
      {closed ? (
        <ClosedCampaigns closed_by={state.capabilities.campaigns.closed_by} />
      ) : (
        <List workspace={workspace} />
      )}
    </Page>
  )
}

function List({ workspace }: { workspace: Workspace }) {
  const query = useInfiniteQuery(progressQuery(workspace.id))
  const campaigns = query.data?.pages.flatMap((page) => page.campaigns)
  return (
    <div className="grid grid-cols-1 gap-4">
      <Reading query={query} />
      {campaigns && (
        <Table
          label="Campaigns"
          columns={columnsOf(workspace.id)}
          rows={campaigns}
          rowKey={({ id }) => id}
          empty={{
            icon: Send,
            title: 'No campaigns yet',
            action: <NewCampaign workspace_id={workspace.id} primary />,
            children: <Example workspace_id={workspace.id} />,
          }}
        />
      )}
      <More of={query}>Show older</More>
    </div>
  )
}

const columnsOf = (workspace_id: string) => [
  {
    heading: 'Campaign',
    lead: true,
    cell: (campaign: Progress) => <Name campaign={campaign} workspace_id={workspace_id} />,
  },
  { heading: 'State', cell: (campaign: Progress) => <State status={campaign.status} /> },
  { heading: 'Done', cell: (campaign: Progress) => <Done campaign={campaign} /> },
  {
    heading: 'Replied',
    cell: ({ totals, opt_outs }: Progress) => (totals.replied - opt_outs).toLocaleString('en'),
  },
  { heading: 'Asked to stop', cell: ({ opt_outs }: Progress) => opt_outs.toLocaleString('en') },
  { heading: 'Next message', cell: nextOf },
  {
    heading: 'Created by',
    cell: ({ created_by }: Progress) => (
      <span className="text-soft">
        <ExactLine text={created_by.name} empty="No name" />
      </span>
    ),
  },
]

function Name({ campaign, workspace_id }: { campaign: Progress; workspace_id: string }) {
  return (
    <Link
      to="/w/$workspace_id/campaigns/$campaign_id"
      params={{ workspace_id, campaign_id: campaign.id }}
      className="inline-flex min-h-11 max-w-full items-center font-medium underline-offset-3 [overflow-wrap:anywhere] hover:underline md:min-h-0"
    >
      <ExactLine text={campaign.name ?? ''} empty={titleOf(campaign)} />
    </Link>
  )
}

function Done({ campaign: { totals, opt_outs } }: { campaign: Progress }) {
  return (
    <span className="flex items-center gap-3">
      <span className="w-24 shrink-0">
        <SmallBar totals={totals} opt_outs={opt_outs} />
      </span>
      <span className="whitespace-nowrap">
        {finished(totals).toLocaleString('en')}{' '}
        <span className="text-muted">of {countAll(totals).toLocaleString('en')}</span>
      </span>
    </span>
  )
}

function nextOf({ next, completed_at, cancelled_at }: Progress): ReactNode {
  const ended = cancelled_at ?? completed_at
  if (next) return <ExactLine text={next.sentence} />
  if (ended === null) return <span className="text-muted">None waits</span>
  return (
    <span className="text-muted">
      Ended <Time at={ended} />
    </span>
  )
}

function NewCampaign({ workspace_id, primary = false }: { workspace_id: string; primary?: boolean }) {
  return (
    <EditorLink
      workspace_id={workspace_id}
      className={primary ? buttonClass({ kind: 'primary' }) : buttonClass({ size: 'small' })}
    >
      <Plus aria-hidden className="size-3.5" />
      New campaign
    </EditorLink>
  )
}

/** A preview sends nothing, so that it can be copied without harm. */
function Example({ workspace_id }: { workspace_id: string }) {
  const { data } = useQuery(inboxQuery({ workspace_id, account_id: undefined }))
  const [chat] = data?.chats ?? []
  const body = {
    message_text: 'Hello [[name|there]], the blue one is back in stock.',
    recipients: [{ account_id: chat?.account_id ?? '…', chat_id: chat?.id ?? '…' }],
  }
  const request = {
    does: 'Ask what a campaign would do',
    method: 'POST',
    path: '/campaigns/preview',
    body,
  } as const
  return (
    <>
      <p>
        A campaign writes to people you choose, one after the other, and follows up until they answer. Before
        it starts you see who gets which text and when.
      </p>
      <div className="mt-4">
        <AsApi of="A campaign" requests={[request]} />
      </div>
    </>
  )
}
