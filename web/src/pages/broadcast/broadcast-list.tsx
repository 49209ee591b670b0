/** The broadcasts that were sent, newest first. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Megaphone } from 'lucide-react'
import { accountsQuery } from '../../data/accounts.ts'
import { type BroadcastRow, broadcastsQuery } from '../../data/broadcasts.ts'
import { AsApi } from '../../ui/as-api.tsx'

import { ExactLine } from '../../ui/exact-text.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { ClockTime } from '../../ui/time.tsx'

export function BroadcastList({ workspace_id }: { workspace_id: string }) {
  const query = useQuery(broadcastsQuery(workspace_id))
  return (
    <section aria-label="Broadcasts so far">
      <Loaded query={query} rows={3}>
        {({ broadcasts, has_more }) => (
          <>
            <Table
              label="Broadcasts"
              rows={broadcasts}
              rowKey={({ broadcast_id }) => broadcast_id}
              empty={{
                icon: Megaphone,
                title: 'No broadcasts yet',
                children: <Example workspace_id={workspace_id} />,
              }}
              columns={[
                {
                  heading: 'Message',
                  lead: true,
                  cell: ({ broadcast_id, message_text }) => (
                    <Link
                      to="/w/$workspace_id/broadcast"
                      params={{ workspace_id }}
                      search={{ broadcast: broadcast_id }}
                      className="block max-w-[52ch] truncate font-medium underline-offset-3 hover:underline"
                    >
                      <ExactLine text={message_text} cut />
                    </Link>
                  ),
                },
                { heading: 'Outcome', cell: outcomeWords },
                { heading: 'Sent by', cell: ({ created_by }) => <ExactLine text={created_by.name} /> },
                { heading: 'When', cell: ({ created_at }) => <ClockTime at={created_at} /> },
              ]}
            />
            {has_more && <p className="mt-3 text-xs text-muted">The 100 newest are shown.</p>}
          </>
        )}
      </Loaded>
    </section>
  )
}

/** Accepted, then what is not: open, refused, or not known. */
export function outcomeWords({ recipients, totals }: Pick<BroadcastRow, 'recipients' | 'totals'>): string {
  const accepted = totals.completed + totals.replied
  const open = totals.queued + totals.submitting + totals.waiting
  const refused = totals.failed + totals.suppressed + totals.cancelled
  return [
    `${accepted} of ${recipients} accepted`,
    ...(open > 0 ? [`${open} open`] : []),
    ...(refused > 0 ? [`${refused} not sent`] : []),
    ...(totals.ambiguous > 0 ? [`${totals.ambiguous} ambiguous`] : []),
  ].join(', ')
}

function Example({ workspace_id }: { workspace_id: string }) {
  const { data } = useQuery(accountsQuery(workspace_id))
  const body = {
    account_id: data?.accounts[0]?.id ?? '…',
    audience_type: 'stage',
    audience_ref: 'new',
    message_text: 'Hello {{name|there}}, we are closed on Friday.',
  }
  return (
    <>
      <p>Write your first broadcast above. Up to 30 people in a stage get it once.</p>
      <div className="mt-4">
        <AsApi
          of="A broadcast"
          requests={[{ does: 'Send one', method: 'POST', path: '/broadcast', body, once: true }]}
        />
      </div>
    </>
  )
}
