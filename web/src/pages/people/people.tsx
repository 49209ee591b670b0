/** Finds a person over all accounts, by any of their names. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { UserRound } from 'lucide-react'
import { useEffect } from 'react'
import { type FoundPerson, peopleQuery, writtenName } from '../../data/people.ts'
import { useGo, useHere } from '../../data/place.ts'
import { Badge } from '../../ui/badge.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Face } from '../../ui/face.tsx'
import { FindField } from '../../ui/find-field.tsx'
import { Page } from '../../ui/page.tsx'
import { useKeys } from '../../ui/shortcuts.ts'
import { Empty, More, Reading } from '../../ui/states.tsx'
import type { PeopleSearch } from './people-search.ts'

/** As the service takes it. */
const lengthMax = 200

export function PeoplePage() {
  const workspace = useHere()
  const { q, open } = useSearch({ from: '/inside/w/$workspace_id/people' })
  const go = useGo<PeopleSearch>('/w/$workspace_id/people', { replace: true })
  const query = useInfiniteQuery({
    ...peopleQuery(workspace.id, q ?? ''),
    enabled: q !== undefined,
    placeholderData: (before) => (q === undefined ? undefined : before),
  })
  const people = q === undefined ? undefined : query.data?.pages.flatMap((page) => page.people)
  useOnlyOne(open && !query.isPlaceholderData ? people : undefined, workspace.id)
  useKeys({ '/': () => document.querySelector<HTMLElement>('[data-find]')?.focus() })
  return (
    <Page title="People" about="Everyone whom an account of this workspace knows.">
      <div className="grid max-w-3xl gap-4">
        <FindField
          key={open ? q : ''}
          label="Find a person"
          placeholder="Name, @username, phone number, link or id"
          value={q}
          lengthMax={lengthMax}
          onFind={(text) => go(text === undefined ? {} : { q: text })}
          first="[data-person]"
          className="h-9"
        />
        {q !== undefined && <Reading query={query} />}
        {people && people.length > 0 && <Found people={people} workspace_id={workspace.id} />}
        {people?.length === 0 && (
          <Empty icon={UserRound} title="Nobody found">
            No account of this workspace knows anyone by this name. A name is found by the beginnings of its
            words; a username, phone number or id only as a whole.
          </Empty>
        )}
        {q === undefined && (
          <p className="text-muted">
            Find someone to see their names, chats, campaigns and notes, and why they were written to.
          </p>
        )}
        <More of={query}>Show more</More>
      </div>
    </Page>
  )
}

/** A link that means one person leads on to their page, and going back skips this one. */
function useOnlyOne(people: readonly FoundPerson[] | undefined, workspace_id: string): void {
  const navigate = useNavigate()
  const only = people?.length === 1 ? people[0]?.id : undefined
  useEffect(() => {
    if (only === undefined) return
    const params = { workspace_id, person_id: only }
    void navigate({ to: '/w/$workspace_id/people/$person_id', params, replace: true })
  }, [only, workspace_id, navigate])
}

function Found({ people, workspace_id }: { people: readonly FoundPerson[]; workspace_id: string }) {
  return (
    <ul aria-label="Found" className="divide-y divide-line rounded-xl ring-1 ring-line">
      {people.map((person) => (
        <li key={person.id}>
          <Link
            data-person
            to="/w/$workspace_id/people/$person_id"
            params={{ workspace_id, person_id: person.id }}
            className="flex min-h-13 items-center gap-3 px-4 py-2 -outline-offset-2 hover:bg-hover"
          >
            <Face name={person.name ?? ''} of={person.platform_id} size="small" />
            <span className="min-w-0 flex-1">
              <span className="block truncate font-medium">
                <ExactLine text={person.name ?? ''} empty="No name" cut />
              </span>
              <span className="block truncate text-xs text-muted">
                <ExactLine text={[...person.names.map(writtenName), person.platform_id].join(', ')} cut />
              </span>
            </span>
            {person.suppressed && <Badge tone="warn">Suppressed</Badge>}
          </Link>
        </li>
      ))}
    </ul>
  )
}
