/** The figures of a campaign: its recipients in parts that add up. Pure, so that the simulation checks it too. */
import type { CampaignReport, CampaignTotals } from '../../data/api-types.ts'

export interface Part {
  readonly label: string
  readonly count: number
  readonly look: string
  /** Left out while it is 0. */
  readonly rare?: boolean
}

/** Each recipient is in exactly one part. Those who asked to stop have replied, and are shown apart. */
export function partsOf(
  totals: CampaignTotals,
  reporting: readonly Pick<CampaignReport, 'opted_out'>[],
): Part[] {
  const stopped = reporting.reduce((sum, { opted_out }) => sum + opted_out, 0)
  return [
    { label: 'Replied', count: totals.replied - stopped, look: 'bg-chart-1' },
    { label: 'Asked to stop', count: stopped, look: 'bg-chart-1/70' },
    { label: 'Done, no reply', count: totals.completed, look: 'bg-chart-1/40' },
    { label: 'Waiting for a follow-up', count: totals.waiting, look: 'bg-chart-3' },
    { label: 'Being sent', count: totals.submitting, look: 'bg-chart-3/75', rare: true },
    { label: 'Not written to yet', count: totals.queued, look: 'bg-chart-rest' },
    { label: 'Failed', count: totals.failed, look: 'bg-chart-4' },
    { label: 'Ambiguous', count: totals.ambiguous, look: 'bg-chart-2' },
    { label: 'Suppressed', count: totals.suppressed, look: 'bg-chart-3/50' },
    { label: 'Cancelled', count: totals.cancelled, look: 'bg-chart-3/30', rare: true },
  ]
}
