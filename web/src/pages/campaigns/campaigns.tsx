/** The campaigns of a workspace: how far each is, and what it sends next. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Plus, Send } from 'lucide-react'
import type { ReactNode } from 'react'
import { ExactLine } from '../../exact-text.tsx'
import { useSession, useWorkspace } from '../../place.ts'
import type { Workspace } from '../../queries.ts'
import { Page } from '../../shell.tsx'
import { curlOf } from '../../ui/as-api-text.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button, buttonClass } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { Late, Loading, ReadFailure } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { inboxQuery, workspaceQuery } from '../inbox/inbox-queries.ts'
import { Missing } from '../stopped.tsx'
import { type Progress, progressQuery } from './campaign-queries.ts'
import { campaignStates, countAll, titleOf } from './campaign-words.ts'
import { ClosedCampaigns } from './closed-campaigns.tsx'
import { EditorLink } from './editor-link.tsx'
import { finished, SmallBar } from './recipient-bar.tsx'

export function CampaignsPage() {
  const workspace = useWorkspace()
  return workspace ? <Campaigns key={workspace.id} workspace={workspace} /> : <Missing />
}

function Campaigns({ workspace }: { workspace: Workspace }) {
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
    <>
      <ReadFailure query={query} />
      {!campaigns && !query.error && (
        <Late>
          <Loading />
        </Late>
      )}
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
      {query.hasNextPage && (
        <Button
          size="small"
          className="mt-4"
          busy={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          Show older
        </Button>
      )}
    </>
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
  { heading: 'Answers', cell: ({ totals }: Progress) => totals.replied.toLocaleString('en') },
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

export function State({ status }: { status: Progress['status'] }) {
  const [tone, word] = campaignStates[status]
  return <Badge tone={tone}>{word}</Badge>
}

function Done({ campaign: { totals } }: { campaign: Progress }) {
  return (
    <span className="flex items-center gap-3">
      <span className="w-24 shrink-0">
        <SmallBar totals={totals} />
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
  const { base_url } = useSession()
  const { data } = useQuery(inboxQuery({ workspace_id, view: 'all', account_id: undefined }))
  const [chat] = data?.chats ?? []
  const body = {
    message_text: 'Hello [[name|there]], the blue one is back in stock.',
    recipients: [{ account_id: chat?.account_id ?? '…', chat_id: chat?.id ?? '…' }],
  }
  const request = { method: 'POST', path: '/campaigns/preview', body } as const
  return (
    <>
      <p>
        A campaign writes to people you choose, one after the other, and follows up until they answer. Before
        it starts you see who gets which text and when.
      </p>
      <div className="mt-4 text-left">
        <Code label="A program asks what a campaign would do" text={curlOf(base_url, request)} />
      </div>
    </>
  )
}
