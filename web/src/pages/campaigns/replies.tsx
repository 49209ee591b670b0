/** Replies by step and variant, those who asked to stop apart. The chart is a table: each row has its bar and its numbers. */
import type { Campaign, Report } from '../../data/campaigns.ts'
import { stepName, variantName } from './campaign-words.ts'

export function Replies({ campaign: { reporting, steps } }: { campaign: Campaign }) {
  const most = Math.max(1, ...reporting.map(({ sent }) => sent))
  const several = (one: Report) =>
    reporting.filter(({ step, branch }) => step === one.step && branch === one.branch).length > 1
  return (
    <>
      <h2 className="mb-2.5 text-sm font-semibold">Replies by step</h2>
      <table className="block">
        <thead className="sr-only">
          <tr>
            <th scope="col">Message</th>
            <th scope="col">Variant</th>
            <th scope="col">Replied of sent</th>
            <th scope="col">Share</th>
            <th scope="col">Asked to stop</th>
          </tr>
        </thead>
        <tbody className="grid grid-cols-[minmax(0,max-content)_0.75rem_minmax(2rem,1fr)_max-content_max-content_max-content] items-center gap-x-2.5 gap-y-2">
          {reporting.map((report, index) => (
            <Row
              key={`${report.step} ${report.branch} ${report.variant}`}
              report={report}
              name={isFirst(reporting, index) ? stepName(report.step, report.branch, steps) : ''}
              variant={several(report) ? variantName(report.variant) : ''}
              most={most}
            />
          ))}
        </tbody>
      </table>
      <p className="mt-3 flex flex-wrap items-center gap-x-3.5 text-xs text-muted">
        <Legend look="bg-chart-1" words="replied" />
        <Legend look="bg-chart-rest" words="sent" />
      </p>
    </>
  )
}

/** The name of a step stands beside its first variant only. */
function isFirst(reporting: readonly Report[], index: number): boolean {
  const [one, before] = [reporting[index], reporting[index - 1]]
  return one?.step !== before?.step || one?.branch !== before?.branch
}

interface RowProps {
  report: Report
  name: string
  variant: string
  most: number
}

function Row({ report: { sent, replies, opted_out }, name, variant, most }: RowProps) {
  const replied = replies - opted_out
  const share = sent === 0 ? '' : `${Math.round((100 * replied) / sent)} %`
  return (
    <tr className="contents">
      <td className="text-soft">{name}</td>
      <td className="text-muted">{variant}</td>
      <td className="contents">
        <span aria-hidden className="relative h-3.5">
          <span
            className="absolute inset-y-0 left-0 rounded-[3px] bg-chart-rest"
            style={{ width: `${(100 * sent) / most}%` }}
          />
          <span
            className="absolute inset-y-0 left-0 rounded-[3px] bg-chart-1"
            style={{ width: `${(100 * replied) / most}%` }}
          />
        </span>
        <span className="text-right whitespace-nowrap">
          <span className="font-semibold">{replied.toLocaleString('en')}</span> of {sent.toLocaleString('en')}
        </span>
      </td>
      <td className="text-right font-semibold whitespace-nowrap">{share}</td>
      <td className="text-muted whitespace-nowrap">
        {opted_out > 0 && `${opted_out.toLocaleString('en')} asked to stop`}
      </td>
    </tr>
  )
}

function Legend({ look, words }: { look: string; words: string }) {
  return (
    <span className="flex items-center gap-1.5">
      <span aria-hidden className={`size-2 rounded-[2.5px] ${look}`} />
      {words}
    </span>
  )
}
