/** All recipients of a campaign as one bar that adds up, with the number of each part below it. */
import type { Report, Totals } from '../../data/campaigns.ts'
import { countAll } from './campaign-words.ts'
import { type Part, partsOf } from './recipient-parts.ts'

export function RecipientBar({ totals, reporting }: { totals: Totals; reporting: readonly Report[] }) {
  const parts = partsOf(totals, reporting).filter(({ count, rare }) => count > 0 || !rare)
  return (
    <>
      <Bar parts={parts} className="h-3" />
      <dl className="mt-3 flex flex-wrap justify-between gap-x-6 gap-y-2 max-[760px]:grid max-[760px]:grid-cols-2">
        {parts.map(({ label, count, look }) => (
          <div key={label}>
            <dt className="flex items-center gap-1.5 whitespace-nowrap text-xs text-muted">
              <span aria-hidden className={`size-2 rounded-[2.5px] ring-1 ring-ink/10 ring-inset ${look}`} />
              {label}
            </dt>
            <dd className="pl-3.5 text-lg font-semibold">{count.toLocaleString('en')}</dd>
          </div>
        ))}
      </dl>
    </>
  )
}

/** Without numbers, for a row of a list. */
export function SmallBar({ totals, opt_outs }: { totals: Totals; opt_outs: number }) {
  return <Bar parts={partsOf(totals, [{ opted_out: opt_outs }])} className="h-1.5" />
}

function Bar({ parts, className }: { parts: readonly Part[]; className: string }) {
  const shown = parts.filter(({ count }) => count > 0)
  const total = shown.reduce((sum, { count }) => sum + count, 0)
  return (
    <div
      role="img"
      aria-label={`${total} recipients: ${shown.map(({ label, count }) => `${label} ${count}`).join(', ')}`}
      className={`flex gap-0.5 overflow-hidden rounded-full ${className}`}
    >
      {shown.map(({ label, count, look }) => (
        <span key={label} className={`min-w-1 ${look}`} style={{ flexGrow: count }} />
      ))}
    </div>
  )
}

export const finished = (totals: Totals) =>
  countAll(totals) - totals.queued - totals.waiting - totals.submitting
