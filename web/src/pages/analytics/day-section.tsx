/** Messages by day: of a range, of one account or all; as a chart, as a table, as CSV. */

import { useQuery } from '@tanstack/react-query'
import { Download, Table2 } from 'lucide-react'
import { useState } from 'react'
import { writeCsv } from '../../../../src/rules/csv.ts'
import { type Days, daysQuery } from '../../data/analytics.ts'
import { AccountFilter } from '../../ui/account-filter.tsx'
import { Button } from '../../ui/button.tsx'
import { DateInput } from '../../ui/date-input.tsx'
import { saveFile } from '../../ui/save-file.ts'
import { Reading } from '../../ui/states.tsx'
import type { AnalyticsSearch, Go } from './analytics-search.ts'
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
  const { data } = query
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
        <AccountFilter
          workspace_id={workspace_id}
          value={search.account}
          onChange={(account) => {
            const { account: _, ...rest } = search
            go(account === undefined ? rest : { ...rest, account })
          }}
        />
        <span className="ml-auto flex gap-1">
          <Button kind="quiet" size="small" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
            <Table2 aria-hidden className="size-3.5" />
            As a table
          </Button>
          {shown && (
            <Button kind="quiet" size="small" onClick={() => save(shown)}>
              <Download aria-hidden className="size-3.5" />
              CSV
            </Button>
          )}
        </span>
      </header>
      <Reading query={query} rows={3} />
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
  saveFile(`messages-${from}-${to}.csv`, writeCsv([['day', 'received', 'sent'], ...rows]))
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
      From <DateInput aria-label="From" required value={from} onChange={setFrom} />
      to <DateInput aria-label="To" required value={to} onChange={setTo} />
      {isNew && (
        <Button type="submit" size="small">
          Show
        </Button>
      )}
    </form>
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
