/** The figures of the period, each as one number with its unit. */
import { type Figures, repliedRate } from '../../data/analytics.ts'

export function FigureTiles({ figures: { messages, campaign_sends, totals } }: { figures: Figures }) {
  const tiles = [
    ['Received', messages.received, 'messages'],
    ['Sent', messages.sent, 'messages'],
    ['Sent by campaigns', campaign_sends.sent, 'accepted'],
    ['Failed', campaign_sends.failed, 'of campaigns'],
    ['Ambiguous', campaign_sends.ambiguous, 'not sent again'],
    ['Replied', totals.replies - totals.opt_outs, 'to all campaigns'],
    ['Asked to stop', totals.opt_outs, 'of all campaigns'],
    ['Reply rate', percent(repliedRate(totals)), 'of those reached'],
  ] as const
  return (
    <dl className="grid grid-cols-2 gap-px overflow-hidden rounded-xl bg-line ring-1 ring-line sm:grid-cols-4">
      {tiles.map(([label, value, unit]) => (
        <div key={label} className="bg-surface px-4 py-3">
          <dt className="text-xs text-muted">{label}</dt>
          <dd>
            <span className="text-xl font-semibold">
              {typeof value === 'number' ? value.toLocaleString('en') : value}
            </span>{' '}
            <span className="text-xs text-muted">{unit}</span>
          </dd>
        </div>
      ))}
    </dl>
  )
}

export function percent(rate: number): string {
  return `${(100 * rate).toLocaleString('en', { maximumFractionDigits: 1 })} %`
}
