/** Messages of each day as two bars. The numbers are in its table; a screen reader gets the sum and the highest day. */
import type { Day } from '../../data/analytics.ts'
import { dayWords, scaleTop } from './day-scale.ts'

const heightPx = 160
const series = [
  { key: 'received', label: 'Received', look: 'fill-chart-3', swatch: 'bg-chart-3' },
  { key: 'sent', label: 'Sent', look: 'fill-chart-1', swatch: 'bg-chart-1' },
] as const

export function DayChart({ days }: { days: readonly Day[] }) {
  const top = scaleTop(Math.max(0, ...days.flatMap(({ received, sent }) => [received, sent])))
  const y = (count: number) => heightPx - (heightPx * count) / top
  return (
    <figure>
      <div className="grid grid-cols-[max-content_minmax(0,1fr)] gap-x-2">
        <div aria-hidden className="relative text-right text-xs/none text-muted" style={{ height: heightPx }}>
          <span className="invisible">{top.toLocaleString('en')}</span>
          {[top, top / 2, 0].map((value) => (
            <span key={value} className="absolute right-0 -translate-y-1/2" style={{ top: y(value) }}>
              {value.toLocaleString('en')}
            </span>
          ))}
        </div>
        <svg
          role="img"
          aria-label={summaryOf(days)}
          viewBox={`0 0 ${days.length * 10} ${heightPx}`}
          preserveAspectRatio="none"
          className="w-full"
          style={{ height: heightPx }}
        >
          {[top, top / 2, 0].map((value) => (
            <line
              key={value}
              x1={0}
              x2={days.length * 10}
              y1={y(value)}
              y2={y(value)}
              vectorEffect="non-scaling-stroke"
              className="stroke-line"
            />
          ))}
          {days.map(({ day, ...counts }, index) =>
            series.map(({ key, look }, at) => (
              <rect
                key={`${day} ${key}`}
                x={index * 10 + 1.5 + at * 3.5}
                width={3.2}
                y={y(counts[key])}
                height={heightPx - y(counts[key])}
                className={look}
              >
                <title>{`${day}: ${counts[key].toLocaleString('en')} ${key}`}</title>
              </rect>
            )),
          )}
        </svg>
        <span />
        <p aria-hidden className="flex justify-between pt-1.5 text-xs text-muted">
          <span>{dayWords(days[0]?.day)}</span>
          <span>{dayWords(days.at(-1)?.day)}</span>
        </p>
      </div>
      <figcaption className="mt-2 flex flex-wrap gap-x-3.5 text-xs text-muted">
        {series.map(({ key, label, swatch }) => (
          <span key={key} className="flex items-center gap-1.5">
            <span aria-hidden className={`size-2 rounded-[2.5px] ${swatch}`} />
            {label}
          </span>
        ))}
      </figcaption>
    </figure>
  )
}

function summaryOf(days: readonly Day[]): string {
  const sums = series.map(({ key, label }) => {
    const total = days.reduce((sum, day) => sum + day[key], 0)
    const most = days.reduce<Day | undefined>(
      (best, day) => (best && best[key] >= day[key] ? best : day),
      undefined,
    )
    const highest = most && total > 0 ? `, most on ${dayWords(most.day)} with ${most[key]}` : ''
    return `${label} ${total}${highest}`
  })
  return `Messages of ${days.length} days. ${sums.join('. ')}.`
}
