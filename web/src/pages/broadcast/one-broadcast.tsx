/** One broadcast: its text, and the outcome of every recipient. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ChevronLeft, Users } from 'lucide-react'
import { type Broadcast, broadcastQuery } from '../../data/broadcasts.ts'
import { AsApi } from '../../ui/as-api.tsx'
import { ExactLine, ExactText } from '../../ui/exact-text.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { ClockTime } from '../../ui/time.tsx'
import { outcomeWords } from './broadcast-list.tsx'

interface OneBroadcastProps {
  workspace_id: string
  broadcast_id: string
}

export function OneBroadcast({ workspace_id, broadcast_id }: OneBroadcastProps) {
  const query = useQuery(broadcastQuery(workspace_id, broadcast_id))
  return (
    <div className="grid grid-cols-1 gap-4">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <Link
          to="/w/$workspace_id/broadcast"
          params={{ workspace_id }}
          search={{}}
          className="-ml-1.5 inline-flex h-8 items-center gap-1 rounded-lg px-1.5 text-soft hover:bg-hover hover:text-ink pointer-coarse:h-11"
        >
          <ChevronLeft aria-hidden className="size-4" />
          All broadcasts
        </Link>
        <AsApi
          of="This broadcast"
          requests={[{ does: 'Read its outcome', method: 'GET', path: `/broadcast/${broadcast_id}` }]}
        />
      </div>
      <Loaded query={query}>
        {(broadcast) => <Outcome workspace_id={workspace_id} broadcast={broadcast} />}
      </Loaded>
    </div>
  )
}

function Outcome({ workspace_id, broadcast }: { workspace_id: string; broadcast: Broadcast }) {
  const { message_text, recipients, audience_total, capped, created_at, people } = broadcast
  return (
    <div className="grid grid-cols-1 gap-5">
      <div className="grid gap-2">
        <h2 className="text-base font-semibold" aria-live="polite">
          {outcomeWords(broadcast)}
        </h2>
        <div className="max-w-[64ch] rounded-[14px_4px_14px_14px] bg-accent-wash px-3 py-2 text-sm/5">
          <ExactText text={message_text} />
        </div>
        <p className="text-xs text-muted">
          <ClockTime at={created_at} />, to {recipients} {recipients === 1 ? 'person' : 'people'}
          {capped && ` of ${audience_total.toLocaleString('en')}: a broadcast reaches at most 30`}.
        </p>
      </div>
      <Table
        label="Recipients"
        rows={people}
        rowKey={({ id }) => id}
        empty={{ icon: Users, title: 'Nobody was in this audience', children: 'Nothing was sent.' }}
        columns={[
          {
            heading: 'Person',
            lead: true,
            cell: ({ account_id, chat_id, name }) =>
              account_id === null || chat_id === null ? (
                <ExactLine text={name ?? ''} empty="No name" />
              ) : (
                <Link
                  to="/w/$workspace_id/inbox"
                  params={{ workspace_id }}
                  search={{ chat: chat_id, of: account_id }}
                  className="font-medium underline-offset-3 hover:underline"
                >
                  <ExactLine text={name ?? ''} empty="No name" />
                </Link>
              ),
          },
          { heading: 'Outcome', cell: outcomeOf },
          {
            heading: 'When',
            cell: ({ timeline }) => {
              const last = timeline.at(-1)
              return last ? <ClockTime at={last.at} /> : <span className="text-muted">not yet</span>
            },
          },
        ]}
      />
    </div>
  )
}

/** The service's sentence; red where it was refused, amber where nobody can know. */
function outcomeOf({ status, sentence }: Broadcast['people'][number]) {
  const tone = status === 'failed' ? 'text-danger' : status === 'ambiguous' ? 'text-warn' : ''
  return <span className={tone}>{sentence ?? status}</span>
}
