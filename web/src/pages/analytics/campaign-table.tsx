/** The most recent campaigns with their figures, from start to end. */

import { Link } from '@tanstack/react-router'
import { Download, Send } from 'lucide-react'
import { writeCsv } from '../../../../src/rules/csv.ts'
import { type Figures, repliedRate } from '../../data/analytics.ts'
import { useWorkspace } from '../../data/place.ts'
import { Button } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { saveFile } from '../../ui/save-file.ts'
import { Table } from '../../ui/table.tsx'
import { percent } from './figure-tiles.tsx'

type Row = Figures['campaigns'][number]

export function CampaignTable({
  workspace_id,
  campaigns,
}: {
  workspace_id: string
  campaigns: readonly Row[]
}) {
  const isAdmin = useWorkspace()?.role !== 'member'
  const number = (heading: string, of: (row: Row) => number) => ({
    heading,
    cell: (row: Row) => of(row).toLocaleString('en'),
  })
  return (
    <section className="min-w-0">
      <header className="mb-3 flex items-center gap-3">
        <h2 className="text-base font-semibold">Campaigns</h2>
        <p className="text-xs text-muted">Each from start to end</p>
        {campaigns.length > 0 && (
          <Button kind="quiet" size="small" className="ml-auto" onClick={() => save(campaigns)}>
            <Download aria-hidden className="size-3.5" />
            CSV
          </Button>
        )}
      </header>
      <Table
        label="Campaigns"
        rows={campaigns}
        rowKey={({ id }) => id}
        columns={[
          {
            heading: 'Campaign',
            lead: true,
            cell: (row) => <Name row={row} workspace_id={workspace_id} isLink={isAdmin} />,
          },
          number('Sent', ({ sent }) => sent),
          number('Failed', ({ failed }) => failed),
          number('Ambiguous', ({ ambiguous }) => ambiguous),
          number('Replied', ({ replies, opt_outs }) => replies - opt_outs),
          number('Asked to stop', ({ opt_outs }) => opt_outs),
          { heading: 'Reply rate', cell: (row) => percent(repliedRate(row)) },
        ]}
        empty={{
          icon: Send,
          title: 'No campaigns yet',
          children: 'Campaigns appear here with what they sent and who replied.',
        }}
      />
    </section>
  )
}

/** Only admins and owners may open it. */
function Name({ row, workspace_id, isLink }: { row: Row; workspace_id: string; isLink: boolean }) {
  const name = <ExactLine text={row.name ?? ''} empty={`Campaign ${row.id.slice(-6)}`} />
  if (!isLink) return <span className="font-medium">{name}</span>
  return (
    <Link
      to="/w/$workspace_id/campaigns/$campaign_id"
      params={{ workspace_id, campaign_id: row.id }}
      className="inline-flex min-h-11 max-w-full items-center font-medium underline-offset-3 [overflow-wrap:anywhere] hover:underline md:min-h-0"
    >
      {name}
    </Link>
  )
}

function save(campaigns: readonly Row[]): void {
  const head = [
    ...['id', 'name', 'status', 'created_at', 'sent', 'failed', 'ambiguous'],
    ...['replied', 'asked_to_stop', 'reply_rate'],
  ]
  const rows = campaigns.map((row) => [
    ...[row.id, row.name ?? '', row.status, row.created_at],
    ...[row.sent, row.failed, row.ambiguous],
    ...[row.replies - row.opt_outs, row.opt_outs, repliedRate(row)],
  ])
  saveFile('campaigns.csv', writeCsv([head, ...rows]))
}
