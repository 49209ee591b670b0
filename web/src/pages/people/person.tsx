/** Everything that is known about one person: their names over time, where they are, and what was sent and why. */
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { Ban, Download } from 'lucide-react'
import { accountsQuery, platformName } from '../../data/accounts.ts'
import { personExportPath, personQuery } from '../../data/people.ts'
import { useHere } from '../../data/place.ts'
import { Badge } from '../../ui/badge.tsx'
import { buttonClass } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Face } from '../../ui/face.tsx'
import { Page } from '../../ui/page.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { ErasePerson, ErasureState } from './erase-person.tsx'
import type { PartProps } from './person-card.tsx'
import { Campaigns, Chats, Names, Sent } from './person-history.tsx'
import { Notes, Suppression, Values } from './person-side.tsx'

export function PersonPage() {
  const workspace = useHere()
  const { person_id } = useParams({ from: '/inside/w/$workspace_id/people/$person_id' })
  const query = useQuery(personQuery(workspace.id, person_id))
  return (
    <Page
      title="Person"
      about={
        <Link
          to="/w/$workspace_id/people"
          params={{ workspace_id: workspace.id }}
          className="underline underline-offset-3"
        >
          Find another person
        </Link>
      }
      action={
        workspace.role !== 'member' && (
          <div className="flex flex-wrap gap-1.5">
            <a
              href={personExportPath(workspace.id, person_id)}
              download
              className={buttonClass({ size: 'small' })}
            >
              <Download aria-hidden className="size-3.5" />
              Export
            </a>
            {query.data && <ErasePerson person={query.data.person} workspace_id={workspace.id} />}
          </div>
        )
      }
    >
      {workspace.role !== 'member' && <ErasureState workspace_id={workspace.id} person_id={person_id} />}
      <Loaded query={query}>{({ person }) => <Whole person={person} workspace_id={workspace.id} />}</Loaded>
    </Page>
  )
}

function Whole({ person, workspace_id }: Omit<PartProps, 'accountOf'>) {
  const { data } = useQuery(accountsQuery(workspace_id))
  const names = new Map(data?.accounts.map(({ id, name }) => [id, name]))
  const accountOf = (id: string | null) => (id === null ? '' : (names.get(id) ?? id))
  const part = { person, workspace_id, accountOf }
  return (
    <div className="grid grid-cols-1 items-start gap-3.5 min-[1100px]:grid-cols-[minmax(0,1fr)_23.75rem]">
      <div className="grid min-w-0 grid-cols-1 gap-3.5">
        <Head {...part} />
        <Names {...part} />
        <Chats {...part} />
        <Sent {...part} />
        <Campaigns {...part} />
      </div>
      <div className="grid min-w-0 grid-cols-1 gap-3.5">
        <Suppression {...part} />
        <Values {...part} />
        <Notes {...part} />
      </div>
    </div>
  )
}

function Head({ person: { name, platform, platform_id, first_seen_at, suppressions } }: PartProps) {
  return (
    <section
      aria-label="Who"
      className="flex items-center gap-3.5 rounded-xl bg-surface p-4 ring-1 ring-line"
    >
      <Face name={name ?? ''} of={platform_id} size="large" />
      <div className="min-w-0">
        <h2 className="flex flex-wrap items-center gap-x-2.5 gap-y-1 text-xl font-semibold [overflow-wrap:anywhere]">
          <ExactLine text={name ?? ''} empty="No name" />
          {suppressions.length > 0 && (
            <Badge tone="danger">
              <Ban aria-hidden className="size-3.5" />
              {suppressions.some(({ source }) => source === 'opt_out') ? 'Asked to stop' : 'Suppressed'}
            </Badge>
          )}
        </h2>
        <p className="text-muted">
          {platformName(platform)} id {platform_id}. Known since <Time at={first_seen_at} />.
        </p>
      </div>
    </section>
  )
}
