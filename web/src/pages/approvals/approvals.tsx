/** Agents' requests, each with its exact text and target. The key's own user approves or denies them. */

import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { ArrowLeft, Bot, ChevronRight, History, ShieldCheck } from 'lucide-react'
import { ask } from '../../data/api.ts'
import { byCursor } from '../../data/by-cursor.ts'
import { keys } from '../../data/keys.ts'
import { useWorkspace } from '../../data/place.ts'
import { type Approval, waitingQuery } from '../../data/queries.ts'
import { buttonClass } from '../../ui/button.tsx'
import { ExactText } from '../../ui/exact-text.tsx'
import { Page } from '../../ui/page.tsx'
import { Empty, Loaded, More } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Countdown, Time } from '../../ui/time.tsx'
import { Asker, Outcome, summaryOf, targetOf, wishOf } from './approval-words.tsx'
import { OneApproval } from './one-approval.tsx'

export function ApprovalsPage() {
  const { request, view } = useSearch({ from: '/inside/mcp-approvals' })
  if (request !== undefined) {
    return (
      <div className="max-w-2xl px-4 py-5 sm:px-5">
        <Link
          to="/mcp-approvals"
          className="-ml-2 mb-5 inline-flex h-8 items-center gap-1.5 rounded-lg px-2 text-muted hover:bg-hover hover:text-ink"
        >
          <ArrowLeft aria-hidden className="size-4" />
          Approvals
        </Link>
        <OneApproval key={request} id={request} />
      </div>
    )
  }
  return (
    <Page title="Approvals" about="Agents send nothing you have not read. Requests wait here for 30 minutes.">
      <Views current={view ?? 'waiting'} />
      {view === 'history' ? <PastRequests /> : <Waiting />}
    </Page>
  )
}

function Views({ current }: { current: 'waiting' | 'history' }) {
  const look = (on: boolean) =>
    `-mb-px border-b-2 px-1 pb-2.5 ${on ? 'border-accent font-medium text-ink' : 'border-transparent text-muted hover:text-ink'}`
  return (
    <nav
      aria-label="Which approvals"
      className="-mx-4 -mt-5 mb-5 flex gap-5 border-b border-line px-4 pt-3 sm:-mx-5 sm:px-5"
    >
      <Link
        to="/mcp-approvals"
        search={{}}
        className={look(current === 'waiting')}
        activeOptions={{ exact: true, includeSearch: true }}
      >
        Waiting
      </Link>
      <Link to="/mcp-approvals" search={{ view: 'history' }} className={look(current === 'history')}>
        History
      </Link>
    </nav>
  )
}

function Waiting() {
  const query = useQuery(waitingQuery)
  const workspace = useWorkspace()
  return (
    <Loaded query={query} rows={3}>
      {({ approvals }) =>
        approvals.length === 0 ? (
          <Empty
            icon={ShieldCheck}
            title="Nothing to approve"
            action={
              workspace && (
                <Link
                  to="/w/$workspace_id/connect"
                  params={{ workspace_id: workspace.id }}
                  className={buttonClass()}
                >
                  <Bot aria-hidden className="size-4" />
                  Connect an agent
                </Link>
              )
            }
          >
            When an agent that uses one of your keys wants to send a message or change a chat, it appears
            here.
          </Empty>
        ) : (
          <ul className="-mx-4 divide-y divide-line border-y border-line sm:-mx-5">
            {approvals.map((approval) => (
              <li key={approval.id}>
                <WaitingRequest approval={approval} />
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  )
}

function WaitingRequest({ approval }: { approval: Approval }) {
  return (
    <Link
      to="/mcp-approvals"
      search={{ request: approval.id }}
      className="flex items-center gap-4 px-4 py-3 transition-colors hover:bg-hover sm:px-5"
    >
      <span className="min-w-0 flex-1">
        <span className="block font-medium">
          <Asker approval={approval} /> {wishOf(approval)}
        </span>
        <span className="mt-0.5 line-clamp-2 text-muted [overflow-wrap:anywhere]">
          {targetOf(approval)} · <ExactText text={summaryOf(approval)} />
        </span>
      </span>
      <span className="text-muted">
        <Countdown until={approval.expires_at} label="Time left" />
      </span>
      <ChevronRight aria-hidden className="size-4 shrink-0 text-muted" />
    </Link>
  )
}

function PastRequests() {
  const query = useInfiniteQuery({
    queryKey: keys.approvals('history'),
    ...byCursor,
    queryFn: ({ pageParam: cursor }) => ask('GET /approvals', { query: { state: 'history', cursor } }),
  })
  return (
    <Loaded query={query}>
      {({ pages }) => (
        <>
          <Table
            label="Earlier requests"
            rows={pages.flatMap(({ approvals }) => approvals)}
            rowKey={({ id }) => id}
            empty={{
              icon: History,
              title: 'No requests yet',
              children: 'Approved, denied and expired requests are kept here.',
            }}
            columns={[
              { heading: 'Request', lead: true, cell: (approval) => <PastRequest approval={approval} /> },
              { heading: 'Key', cell: ({ key }) => <ExactText text={key.name} /> },
              { heading: 'Asked', cell: ({ created_at }) => <Time at={created_at} /> },
              { heading: 'Outcome', cell: (approval) => <Outcome approval={approval} /> },
            ]}
          />
          <More of={query}>Show older</More>
        </>
      )}
    </Loaded>
  )
}

function PastRequest({ approval }: { approval: Approval }) {
  return (
    <Link to="/mcp-approvals" search={{ request: approval.id }} className="group block max-w-96">
      <span className="block font-medium text-ink group-hover:underline">{targetOf(approval)}</span>
      <span className="line-clamp-1 text-muted">
        <ExactText text={summaryOf(approval)} />
      </span>
    </Link>
  )
}
