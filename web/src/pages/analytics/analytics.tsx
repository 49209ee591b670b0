/** Analytics: messages by day, and what campaigns achieved. Every chart is a table too, and CSV. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useWorkspace } from '../../place.ts'
import type { Workspace } from '../../queries.ts'
import { Page } from '../../shell.tsx'
import { AsApi } from '../../ui/as-api.tsx'
import type { ApiRequest } from '../../ui/as-api-text.ts'
import { Late, Loading, ReadFailure } from '../../ui/states.tsx'
import { ClosedPage } from '../closed-page.tsx'
import { workspaceQuery } from '../inbox/inbox-queries.ts'
import { Missing } from '../stopped.tsx'
import { type AnalyticsSearch, figuresQuery, type Period, periods } from './analytics-queries.ts'
import { CampaignTable } from './campaign-table.tsx'
import { DaySection } from './day-section.tsx'
import { FigureTiles } from './figure-tiles.tsx'

export type Go = (search: AnalyticsSearch) => void

export function AnalyticsPage() {
  const workspace = useWorkspace()
  return workspace ? <Analytics key={workspace.id} workspace={workspace} /> : <Missing />
}

function Analytics({ workspace }: { workspace: Workspace }) {
  const search = useSearch({ from: '/inside/w/$workspace_id/analytics' })
  const navigate = useNavigate()
  const { data: state } = useQuery(workspaceQuery(workspace.id))
  const closed = state?.capabilities.analytics.open === false
  const go: Go = (next) =>
    void navigate({
      to: '/w/$workspace_id/analytics',
      params: { workspace_id: workspace.id },
      search: next,
      replace: true,
      resetScroll: false,
    })
  if (closed) {
    return (
      <Page title="Analytics">
        <ClosedPage title="Analytics are closed" closed_by={state.capabilities.analytics.closed_by} />
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
  const { data, error } = query
  return (
    <div className="grid gap-6">
      <ReadFailure query={query} />
      {!data && !error && (
        <Late>
          <Loading />
        </Late>
      )}
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
