/** When it starts, how much an account sends a day, and the hours that the workspace allows. */
import { Link } from '@tanstack/react-router'
import { useId } from 'react'
import type { WorkspaceState } from '../inbox/inbox-queries.ts'
import type { CampaignDraft, Faults } from './campaign-draft.ts'
import { startOf } from './local-start.ts'
import type { Change } from './who.tsx'

interface WhenProps {
  draft: CampaignDraft
  change: Change
  faults: Faults
  state: WorkspaceState | undefined
}

const mini =
  'h-8 rounded-md bg-surface px-2 font-medium text-ink ring-1 ring-inset ring-line-strong aria-invalid:ring-danger pointer-coarse:h-11'

export function When({ draft, change, faults, state }: WhenProps) {
  const id = useId()
  const timezone = state?.workspace.timezone ?? 'UTC'
  return (
    <section aria-labelledby="when" className="grid gap-2">
      <h2 id="when" className="text-sm font-semibold">
        When
      </h2>
      <div className="grid items-center gap-x-3.5 gap-y-2 sm:grid-cols-[150px_minmax(0,1fr)]">
        <label htmlFor={`${id}-begins`} className="text-muted">
          Begins
        </label>
        <Begins id={`${id}-begins`} draft={draft} change={change} timezone={timezone} />
        <StartNote draft={draft} fault={faults.get('start_at')} timezone={timezone} />
        <label htmlFor={`${id}-quota`} className="text-muted">
          From one account
        </label>
        <div className="flex flex-wrap items-center gap-2">
          <input
            id={`${id}-quota`}
            inputMode="numeric"
            value={draft.quota}
            aria-invalid={faults.has('quota')}
            aria-describedby={`${id}-quota-help`}
            onChange={(event) => change((each) => ({ ...each, quota: event.target.value.trim() }))}
            className={`${mini} w-14 text-right`}
          />
          <span id={`${id}-quota-help`} className={faults.has('quota') ? 'text-danger' : 'text-muted'}>
            {faults.get('quota') ?? 'messages a day at most, all campaigns together'}
          </span>
        </div>
        <span className="text-muted">Hours</span>
        <span className="text-soft">
          {state && (
            <>
              {windowWords(state.workspace.sending_window)}, {timezone}.{' '}
              <Link
                to="/w/$workspace_id/settings"
                params={{ workspace_id: state.workspace.id }}
                className="underline underline-offset-3 hover:text-ink"
              >
                Settings
              </Link>
            </>
          )}
        </span>
      </div>
    </section>
  )
}

function Begins({
  id,
  draft,
  change,
  timezone,
}: {
  id: string
  draft: CampaignDraft
  change: Change
  timezone: string
}) {
  const isLater = draft.start_at !== ''
  return (
    <div className="flex flex-wrap items-center gap-2">
      <select
        id={id}
        value={isLater ? 'at' : 'now'}
        onChange={(event) =>
          change((each) => ({ ...each, start_at: event.target.value === 'at' ? tomorrow(timezone) : '' }))
        }
        className={mini}
      >
        <option value="now">As soon as it is started</option>
        <option value="at">At a time</option>
      </select>
      {isLater && (
        <input
          type="datetime-local"
          aria-label={`Start, ${timezone}`}
          value={draft.start_at}
          onChange={(event) => change((each) => ({ ...each, start_at: event.target.value || each.start_at }))}
          className={mini}
        />
      )}
    </div>
  )
}

/** Tomorrow at nine, by the workspace's clocks. */
function tomorrow(timeZone: string): string {
  const day = new Intl.DateTimeFormat('en-CA', { timeZone }).format(Date.now() + 86_400_000)
  return `${day}T09:00`
}

/** Whatever the clocks do, the service takes the later instant; the user sees which one. */
function StartNote({
  draft,
  fault,
  timezone,
}: {
  draft: CampaignDraft
  fault: string | undefined
  timezone: string
}) {
  const start = draft.start_at === '' ? undefined : startOf(draft.start_at, timezone)
  if (fault !== undefined) {
    return (
      <p role="alert" className="text-danger sm:col-start-2">
        {fault}
      </p>
    )
  }
  if (!start || start.kind === 'plain') return null
  const taken = new Intl.DateTimeFormat('en-GB', {
    timeZone: timezone,
    dateStyle: 'medium',
    timeStyle: 'long',
  }).format(start.at)
  return (
    <p role="status" className="text-warn sm:col-start-2">
      {start.kind === 'skipped'
        ? `The clocks skip this time. It starts at ${taken}.`
        : `The clocks show this time twice. It starts at the later one: ${taken}.`}
    </p>
  )
}

/** `mon-thu 09:00-18:00` as people say it. */
export function windowWords(window: string | null): string {
  if (window === null) return 'Any day, at any hour'
  const [days = '', hours = ''] = window.split(' ')
  const named = days
    .replaceAll(/[a-z]+/g, (name) => name[0]?.toUpperCase() + name.slice(1))
    .replaceAll('-', ' to ')
    .replaceAll(',', ', ')
  return `${named}, ${hours.replace('-', ' to ')}`
}
