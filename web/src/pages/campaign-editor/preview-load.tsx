/** Messages by day: of this campaign and of everything else on its accounts, as bars and as a table by account. */
import { type ReactNode, useState } from 'react'
import { zoneWords } from '../../../../src/rules/zones.ts'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Card } from './preview-card.tsx'
import type { Forecast, Names } from './previews.ts'

interface LoadProps {
  forecast: Forecast
  names: Names
  stamp: ReactNode
}

interface Day {
  readonly day: string
  readonly own: number
  readonly total: number
}

/** More do not fit beside each other; the table has them all. */
const barsMax = 12
const dayMs = 86_400_000
const barPx = 92

export function PreviewLoad({ forecast, names, stamp }: LoadProps) {
  const [isTable, setTable] = useState(false)
  const days = daysOf(forecast.load)
  const withOthers = days.some(({ own, total }) => total > own)
  return (
    <Card title="What will happen" aside={stamp}>
      {days.length === 0 ? (
        <p className="text-muted">Nothing would be sent.</p>
      ) : (
        <>
          {isTable ? <LoadTable load={forecast.load} names={names} /> : <Bars days={days} />}
          <div className="mt-2 flex flex-wrap items-center gap-x-3.5 gap-y-1 text-xs text-muted">
            {!isTable && <Legend withOthers={withOthers} />}
            <button
              type="button"
              onClick={() => setTable(!isTable)}
              className="ml-auto rounded text-soft underline underline-offset-3 hover:text-ink"
            >
              {isTable ? 'As bars' : 'As a table'}
            </button>
          </div>
        </>
      )}
      <End forecast={forecast} timezone={names.timezone} />
    </Card>
  )
}

function Legend({ withOthers }: { withOthers: boolean }) {
  return (
    <>
      <span className="flex items-center gap-1.5">
        <i className="size-2 rounded-[2.5px] bg-chart-1" />
        This campaign
      </span>
      {withOthers && (
        <span className="flex items-center gap-1.5">
          <i className="size-2 rounded-[2.5px] bg-line-strong" />
          Other campaigns
        </span>
      )}
    </>
  )
}

function End({ forecast: { end, load }, timezone }: { forecast: Forecast; timezone: string }) {
  if (load.length === 0) return null
  return (
    <p className="mt-2 text-soft">
      {end === null ? (
        'More than a year away.'
      ) : (
        <>
          Last message: <b className="font-semibold text-ink">{momentWords(end, timezone)}</b>, if nobody
          replies.
        </>
      )}
    </p>
  )
}

function daysOf(load: Forecast['load']): Day[] {
  return [...Map.groupBy(load, ({ day }) => day)].map(([day, those]) => ({
    day,
    own: those.reduce((sum, { messages }) => sum + messages, 0),
    total: those.reduce((sum, { total }) => sum + total, 0),
  }))
}

/** With the days between on which nothing is sent, as far as all of them fit. */
function withGaps(days: readonly Day[]): readonly Day[] {
  const [first, last] = [days[0], days.at(-1)].map((each) => Date.parse(each?.day ?? ''))
  if (first === undefined || last === undefined || (last - first) / dayMs >= barsMax) return days
  return Array.from({ length: (last - first) / dayMs + 1 }, (_, at) => {
    const day = new Date(first + at * dayMs).toISOString().slice(0, 10)
    return days.find((each) => each.day === day) ?? { day, own: 0, total: 0 }
  })
}

function Bars({ days }: { days: readonly Day[] }) {
  const shown = withGaps(days).slice(0, barsMax)
  const most = Math.max(...shown.map(({ total }) => total))
  const more = days.length - barsMax
  return (
    <>
      <ul aria-label="Messages by day" className="flex items-end gap-1.5">
        {shown.map(({ day, own, total }) => (
          <li
            key={day}
            className="grid max-w-16 min-w-0 flex-1 content-end gap-[1.5px] text-center text-[11px]/4 text-muted"
          >
            <span className="text-soft">{total > 0 && total}</span>
            <i
              className="block rounded-t-xs bg-line-strong"
              style={{ height: ((total - own) / most) * barPx }}
            />
            <i
              className="block rounded-xs bg-chart-1"
              style={{ height: Math.max(1.5, (own / most) * barPx) }}
            />
            <span className="mt-1">{dayWords(day, { weekday: 'short' })}</span>
            <span>{dayWords(day, { day: 'numeric' })}</span>
          </li>
        ))}
      </ul>
      {more > 0 && <p className="mt-1 text-xs text-muted">and {more.toLocaleString('en')} more days</p>}
    </>
  )
}

function LoadTable({ load, names }: { load: Forecast['load']; names: Names }) {
  return (
    <div className="max-h-72 overflow-y-auto">
      <table className="w-full text-left">
        <caption className="sr-only">Messages by day and account</caption>
        <thead className="text-xs text-muted">
          <tr>
            <th scope="col" className="py-1 font-medium">
              Day
            </th>
            <th scope="col" className="py-1 font-medium">
              Account
            </th>
            <th scope="col" className="py-1 text-right font-medium">
              This campaign
            </th>
            <th scope="col" className="py-1 text-right font-medium">
              All
            </th>
          </tr>
        </thead>
        <tbody>
          {load.slice(0, 1_000).map(({ day, account_id, messages, total }) => (
            <tr key={`${day} ${account_id}`} className="border-t border-line">
              <td className="whitespace-nowrap py-1 pr-2">
                {dayWords(day, { weekday: 'short', day: 'numeric', month: 'short' })}
              </td>
              <td className="max-w-28 truncate py-1 pr-2">
                <ExactLine text={names.account(account_id)} cut />
              </td>
              <td className="py-1 text-right">{messages}</td>
              <td className="py-1 text-right">{total}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** A day of the workspace, which is no instant. */
function dayWords(day: string, options: Intl.DateTimeFormatOptions): string {
  return new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', ...options }).format(
    new Date(`${day}T00:00:00Z`),
  )
}

/** By the workspace's clocks, as its days and its window are, and with its zone, because the reader's can be another. */
export function momentWords(at: string, timeZone: string): string {
  const words = new Intl.DateTimeFormat('en-GB', {
    timeZone,
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
  }).format(new Date(at))
  return `${words} ${zoneWords(timeZone)}` // guard: a moment with its zone
}
