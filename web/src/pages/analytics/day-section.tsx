/** Messages by day: of a range, of one account or all; as a chart, as a table, as CSV. */
import { useQuery } from '@tanstack/react-query'
import { Download, Table2 } from 'lucide-react'
import { useState } from 'react'
import { csvOf } from '../../csv.ts'
import { saveFile } from '../../save-file.ts'
import { Button } from '../../ui/button.tsx'
import { Late, Loading, ReadFailure } from '../../ui/states.tsx'
import { accountsQuery } from '../accounts/account-queries.ts'
import type { Go } from './analytics.tsx'
import { type AnalyticsSearch, type Days, daysQuery } from './analytics-queries.ts'
import { DayChart } from './day-chart.tsx'

interface SectionProps {
  workspace_id: string
  search: AnalyticsSearch
  go: Go
}

export function DaySection({ workspace_id, search, go }: SectionProps) {
  const range = { from: search.from, to: search.to, account_id: search.account }
  const query = useQuery({
    ...daysQuery(workspace_id, range),
    placeholderData: (before: Days | undefined) => before,
  })
  const { data, error } = query
  const [isTable, setTable] = useState(false)
  const shown = data && lastOf(data, search)
  return (
    <section className="min-w-0">
      <header className="mb-3 flex flex-wrap items-center gap-x-2 gap-y-1.5">
        <h2 className="mr-2 text-base font-semibold">Messages by day</h2>
        <Range
          key={`${shown?.from} ${shown?.to} ${search.from} ${search.to}`}
          days={shown}
          search={search}
          go={go}
        />
        <AccountChoice workspace_id={workspace_id} search={search} go={go} />
        <span className="ml-auto flex gap-1">
          <Button
            kind="quiet"
            size="small"
            className="pointer-coarse:h-11"
            aria-pressed={isTable}
            onClick={() => setTable(!isTable)}
          >
            <Table2 aria-hidden className="size-3.5" />
            As a table
          </Button>
          {shown && (
            <Button kind="quiet" size="small" className="pointer-coarse:h-11" onClick={() => save(shown)}>
              <Download aria-hidden className="size-3.5" />
              CSV
            </Button>
          )}
        </span>
      </header>
      <ReadFailure query={query} />
      {!data && !error && (
        <Late>
          <Loading rows={3} />
        </Late>
      )}
      {shown && (isTable ? <DayTable days={shown} /> : <DayChart days={shown.days} />)}
    </section>
  )
}

/** Without a range of its own the chart follows the period. */
function lastOf(days: Days, { period, from }: AnalyticsSearch): Days {
  if (period !== '7d' || from !== undefined) return days
  const last = days.days.slice(-7)
  return { ...days, days: last, from: last[0]?.day ?? days.from }
}

function save({ days, from, to }: Days): void {
  const rows = days.map(({ day, received, sent }) => [day, received, sent])
  saveFile(`messages-${from}-${to}.csv`, csvOf([['day', 'received', 'sent'], ...rows]))
}

/** Both days are sent together. The service refuses a range that it cannot count, and says why. */
function Range({ days, search, go }: { days: Days | undefined } & Pick<SectionProps, 'search' | 'go'>) {
  const asked = { from: search.from ?? days?.from ?? '', to: search.to ?? days?.to ?? '' }
  const [from, setFrom] = useState(asked.from)
  const [to, setTo] = useState(asked.to)
  const isNew = from !== asked.from || to !== asked.to
  return (
    <form
      className="flex flex-wrap items-center gap-1.5 text-xs text-muted"
      onSubmit={(event) => {
        event.preventDefault()
        if (from && to) go({ ...search, from, to })
      }}
    >
      <DayInput label="From" value={from} onChange={setFrom} />
      <DayInput label="To" value={to} onChange={setTo} />
      {isNew && (
        <Button type="submit" size="small" className="pointer-coarse:h-11">
          Show
        </Button>
      )}
    </form>
  )
}

interface DayInputProps {
  label: string
  value: string
  onChange: (day: string) => void
}

function DayInput({ label, value, onChange }: DayInputProps) {
  return (
    <label className="flex items-center gap-1.5">
      {label}
      <input
        type="date"
        required
        value={value}
        onChange={(event) => onChange(event.target.value)}
        className="h-7 rounded-md bg-surface px-1.5 text-xs text-ink ring-1 ring-line-strong ring-inset pointer-coarse:h-11"
      />
    </label>
  )
}

/** A native select: it loads nothing, and works with every keyboard and screen reader. */
function AccountChoice({ workspace_id, search, go }: SectionProps) {
  const { data } = useQuery(accountsQuery(workspace_id))
  if (!data || data.accounts.length < 2) return null
  const { account: _, ...rest } = search
  return (
    <select
      aria-label="Account"
      value={search.account ?? ''}
      onChange={(event) => go({ ...rest, ...(event.target.value && { account: event.target.value }) })}
      className="h-7 max-w-40 min-w-0 truncate rounded-lg bg-transparent px-1.5 text-xs font-medium text-soft hover:bg-hover pointer-coarse:h-11"
    >
      <option value="" className="bg-raised text-ink">
        All accounts
      </option>
      {data.accounts.map(({ id, name }) => (
        <option key={id} value={id} className="bg-raised text-ink">
          {name}
        </option>
      ))}
    </select>
  )
}

function DayTable({ days: { days } }: { days: Days }) {
  return (
    <div className="max-w-xl rounded-lg ring-1 ring-line">
      <table aria-label="Messages by day" className="w-full">
        <thead className="text-xs text-muted [&_th]:h-8 [&_th]:px-4 [&_th]:font-medium">
          <tr>
            <th scope="col" className="text-left">
              Day
            </th>
            <th scope="col" className="text-right">
              Received
            </th>
            <th scope="col" className="text-right">
              Sent
            </th>
          </tr>
        </thead>
        <tbody>
          {days.map(({ day, received, sent }) => (
            <tr key={day} className="border-t border-line [&>*]:h-8 [&>*]:px-4">
              <th scope="row" className="text-left font-normal whitespace-nowrap">
                {day}
              </th>
              <td className="text-right">{received.toLocaleString('en')}</td>
              <td className="text-right">{sent.toLocaleString('en')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
