/** For operators: gates, sending, workspaces and users, what needs attention, the audit log and the system. */
import { useQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { Lock } from 'lucide-react'
import { type ComponentType, lazy, Suspense } from 'react'
import { verdictQuery } from '../../data/operator.ts'
import { useSession } from '../../data/place.ts'
import { Notice } from '../../ui/notice.tsx'
import { Page } from '../../ui/page.tsx'
import { Empty, Late, Loading } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { GatesView } from './gates-view.tsx'
import { type View, views } from './operator-views.ts'

const contents: Readonly<Record<View, readonly [label: string, content: ComponentType]>> = {
  gates: ['Gates', GatesView],
  sending: ['Sending', lazy(async () => ({ default: (await import('./sending-view.tsx')).SendingView }))],
  people: [
    'Workspaces and users',
    lazy(async () => ({ default: (await import('./people-view.tsx')).PeopleView })),
  ],
  attention: [
    'Needs attention',
    lazy(async () => ({ default: (await import('./attention-view.tsx')).AttentionView })),
  ],
  audit: ['Audit log', lazy(async () => ({ default: (await import('./audit-view.tsx')).AuditView }))],
  system: ['System', lazy(async () => ({ default: (await import('./system-view.tsx')).SystemView }))],
}

export function OperatorPage() {
  const { user } = useSession()
  const { view = 'gates' } = useSearch({ from: '/inside/operator' })
  if (!user.operator) return <OperatorsOnly />
  const [, Content] = contents[view]
  return (
    <Page title="Operator" about="Changes take effect within a second and are in the audit log.">
      <Views current={view} />
      <BrokenChain />
      <Suspense
        fallback={
          <Late>
            <Loading />
          </Late>
        }
      >
        <Content />
      </Suspense>
    </Page>
  )
}

function OperatorsOnly() {
  return (
    <Page title="Operator">
      <Empty icon={Lock} title="Only operators see this page">
        It is for the whole instance. The operator of this instance can make you one.
      </Empty>
    </Page>
  )
}

function Views({ current }: { current: View }) {
  return (
    <nav
      aria-label="Parts of this page"
      className="-mx-4 -mt-5 mb-5 flex flex-wrap gap-x-1 border-b border-line px-2 sm:-mx-5 sm:px-3"
    >
      {views.map((view) => (
        <Link
          key={view}
          to="/operator"
          search={{ view }}
          {...(view === current && { 'aria-current': 'page' as const })}
          className="-mb-px flex h-11 items-center whitespace-nowrap border-b-2 border-transparent px-2 text-soft hover:text-ink
            aria-[current=page]:border-accent aria-[current=page]:font-medium aria-[current=page]:text-ink lg:h-10"
        >
          {contents[view][0]}
        </Link>
      ))}
    </nav>
  )
}

/** In every view until the log verifies again. */
function BrokenChain() {
  const { data } = useQuery(verdictQuery)
  if (!data?.verdict || data.verdict.ok) return null
  const { seq, problem, at } = data.verdict
  return (
    <div className="mb-5">
      <Notice tone="danger">
        <b className="font-semibold">The audit log fails at row {seq}:</b> {problem}. Verified{' '}
        <Time at={String(at)} />. Compare the rows with a backup and with the log files, which have the hash
        of every row.
      </Notice>
    </div>
  )
}
