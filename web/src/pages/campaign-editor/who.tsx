/** Who gets the campaign: the chats of a stage or column, or a pasted list. */

import { useState } from 'react'
import { recipientsMax } from '../../../../src/rules/limits.ts'
import { type AudienceFilter, isFiltered, type Person, personKey } from '../../data/audience.ts'
import type { Workspace } from '../../data/queries.ts'
import { AudienceFilters } from '../../ui/audience-filters.tsx'
import { Button, LinkButton, ShowThem } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Failure } from '../../ui/notice.tsx'
import type { Change } from './campaign-draft.ts'
import { type CampaignDraft, changeWho } from './campaign-draft.ts'
import { WhoList, type WhoListProps } from './who-list.tsx'

interface WhoProps extends Pick<WhoListProps, 'list'> {
  workspace: Workspace
  draft: CampaignDraft
  change: Change
  people: readonly Person[] | undefined
  chats: number
  error: unknown
}

export function Who({ workspace, draft, change, people, chats, error, list }: WhoProps) {
  const isList = draft.who === 'list'
  const set = (more: Partial<AudienceFilter>) =>
    change((each) => ({ ...each, filter: { ...each.filter, ...more }, newest: false, left_out: [] }))
  return (
    <section aria-labelledby="who" className="grid gap-2">
      <h2 id="who" className="text-sm font-semibold">
        Who
      </h2>
      {isList ? (
        <WhoList workspace={workspace} draft={draft} change={change} list={list} />
      ) : (
        <>
          <AudienceFilters workspace={workspace} filter={draft.filter} set={set} anyAccount="All accounts" />
          <Failure error={error} />
          {isFiltered(draft.filter) && people && (
            <Chats draft={draft} change={change} people={people} chats={chats} />
          )}
          {/* Its line is there from the start, so that nothing below moves when the number arrives. */}
          {isFiltered(draft.filter) && !people && !error && <p aria-busy className="h-5" />}
        </>
      )}
      <p className="text-xs text-muted">
        Or{' '}
        <LinkButton onClick={() => change((each) => changeWho(each, isList ? 'chats' : 'list'))}>
          {isList ? 'choose chats' : 'paste a list'}
        </LinkButton>{' '}
        {isList ? 'by stage and column, up to 100.' : 'of up to 5,000 usernames or phone numbers.'}
      </p>
    </section>
  )
}

function Chats({
  draft,
  change,
  people,
  chats,
}: Pick<WhoProps, 'draft' | 'change' | 'chats'> & { people: readonly Person[] }) {
  const [showsAll, setShowsAll] = useState(false)
  const out = new Set(draft.left_out)
  const left = people.filter((each) => out.has(personKey(each))).length
  const isTooMany = chats > recipientsMax && !draft.newest
  return (
    <div className="grid gap-1.5">
      <p>
        <b className="font-semibold">
          {chats >= 1_000 ? '1,000 or more' : chats} {chats === 1 ? 'chat' : 'chats'}
        </b>{' '}
        <span className="text-muted">
          of at most 100{draft.newest && chats > recipientsMax && '; the 100 most recent are taken'}
        </span>
        {left > 0 && (
          <>
            {' '}
            · {left} left out{' '}
            <LinkButton onClick={() => change((each) => ({ ...each, left_out: [] }))}>
              Put them back
            </LinkButton>
          </>
        )}
        {people.length > 0 && !isTooMany && (
          <>
            {' '}
            · <ShowThem who="who gets it" shown={showsAll} onShow={setShowsAll} />
          </>
        )}
      </p>
      {isTooMany && (
        <div role="alert" className="flex flex-wrap items-center gap-2 text-danger">
          A campaign has at most 100. Choose a narrower filter, or
          <Button size="small" onClick={() => change((each) => ({ ...each, newest: true }))}>
            Take the 100 most recent
          </Button>
        </div>
      )}
      {showsAll && !isTooMany && <People people={people} out={out} change={change} />}
    </div>
  )
}

function People({
  people,
  out,
  change,
}: {
  people: readonly Person[]
  out: ReadonlySet<string>
  change: Change
}) {
  const toggle = (key: string, isIn: boolean) =>
    change((draft) => ({
      ...draft,
      left_out: isIn ? draft.left_out.filter((each) => each !== key) : [...draft.left_out, key],
    }))
  return (
    <ul aria-label="People of the audience" className="max-h-64 overflow-y-auto rounded-lg ring-1 ring-line">
      {people.map((person) => {
        const key = personKey(person)
        return (
          <li key={key} className="not-first:border-t border-line">
            <label className="flex min-h-9 items-center gap-2.5 px-3 py-1 hover:bg-hover pointer-coarse:min-h-11">
              <input
                type="checkbox"
                checked={!out.has(key)}
                onChange={(event) => toggle(key, event.target.checked)}
                className="size-4 shrink-0 accent-accent"
              />
              <span className="min-w-0 truncate">
                <ExactLine text={person.name} empty="No name" cut />
              </span>
              {person.sentence !== null && (
                <span className="ml-auto min-w-0 truncate text-xs text-warn">{person.sentence}</span>
              )}
            </label>
          </li>
        )
      })}
    </ul>
  )
}
