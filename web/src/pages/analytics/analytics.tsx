/** Analytics: messages by day, and what campaigns achieved. Every chart is a table too, and CSV. */

import { useQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { figuresQuery, type Period, periods } from '../../data/analytics.ts'
import { workspaceQuery } from '../../data/chats.ts'
import { useGo, useHere } from '../../data/place.ts'
import { AsApi } from '../../ui/as-api.tsx'
import type { ApiRequest } from '../../ui/as-api-text.ts'
import { ClosedPage } from '../../ui/closed-page.tsx'
import { Page } from '../../ui/page.tsx'
import { Reading } from '../../ui/states.tsx'
import type { AnalyticsSearch, Go } from './analytics-search.ts'
import { CampaignTable } from './campaign-table.tsx'
import { DaySection } from './day-section.tsx'
import { FigureTiles } from './figure-tiles.tsx'

export function AnalyticsPage() {
  const workspace = useHere()
  const search = useSearch({ from: '/inside/w/$workspace_id/analytics' })
  const { data: state } = useQuery(workspaceQuery(workspace.id))
  const closed = state?.capabilities.analytics.open === false
  const go = useGo<AnalyticsSearch>('/w/$workspace_id/analytics', { replace: true })
  if (closed) {
    return (
      <Page title="Analytics">
        <ClosedPage
          title="Analytics are turned off here"
          closed_by={state.capabilities.analytics.closed_by}
        />
      </Page>
    )
  }
  const period = search.period ?? '30d'
  return (
    <Page
      title="Analytics"
      about={state && `Days end at midnight in ${state.workspace.timezone}`}
      action={
        <div className="flex flex-wrap items-center gap-2">
          <AsApi of="These figures" requests={requestsOf(period)} />
          <PeriodChoice period={period} onChoose={(next) => go({ ...search, period: next })} />
        </div>
      }
    >
      <Content workspace_id={workspace.id} period={period} search={search} go={go} />
    </Page>
  )
}

const requestsOf = (period: Period): readonly ApiRequest[] => [
  { does: 'Read these figures', method: 'GET', path: `/analytics?period=${period}` },
]

interface ContentProps {
  workspace_id: string
  period: Period
  search: AnalyticsSearch
  go: Go
}

function Content({ workspace_id, period, search, go }: ContentProps) {
  const query = useQuery({
    ...figuresQuery(workspace_id, period),
    placeholderData: (before) => before,
  })
  const { data } = query
  return (
    <div className="grid gap-6">
      <Reading query={query} />
      {data && <FigureTiles figures={data} />}
      <DaySection workspace_id={workspace_id} search={search} go={go} />
      {data && <CampaignTable workspace_id={workspace_id} campaigns={data.campaigns} />}
    </div>
  )
}

function PeriodChoice({ period, onChoose }: { period: Period; onChoose: (period: Period) => void }) {
  return (
    <fieldset className="flex rounded-[9px] bg-hover p-0.5">
      <legend className="sr-only">Period</legend>
      {(Object.keys(periods) as Period[]).map((each) => (
        <button
          key={each}
          type="button"
          aria-pressed={each === period}
          onClick={() => onChoose(each)}
          className={`h-7 rounded-[7px] px-2.5 text-xs font-medium pointer-coarse:h-11
            ${each === period ? 'bg-surface text-ink shadow-card ring-1 ring-line' : 'text-soft hover:text-ink'}`}
        >
          {periods[each]}
        </button>
      ))}
    </fieldset>
  )
}
