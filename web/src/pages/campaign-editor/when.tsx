/** When it starts, how much an account sends a day, and the hours that the workspace allows. */
import { Link } from '@tanstack/react-router'
import { useId } from 'react'
import { describeWindow, parseWindow } from '../../../../src/rules/sending-window.ts'
import type { WorkspaceState } from '../../data/chats.ts'
import { DateInput } from '../../ui/date-input.tsx'
import { Select } from '../../ui/select.tsx'
import { type CampaignDraft, type Change, type Faults, startOf } from './campaign-draft.ts'

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
  const hours = parseWindow(state?.workspace.sending_window ?? '')
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
              {hours ? describeWindow(hours) : 'Any day, at any hour'}, {timezone}.{' '}
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
      <Select
        look="small"
        id={id}
        value={isLater ? 'at' : 'now'}
        options={[
          ['now', 'As soon as it is started'],
          ['at', 'At a time'],
        ]}
        onChange={(when) =>
          change((each) => ({ ...each, start_at: when === 'at' ? tomorrow(timezone) : '' }))
        }
      />
      {isLater && (
        <DateInput
          type="datetime-local"
          aria-label={`Start, ${timezone}`}
          value={draft.start_at}
          onChange={(start_at) => change((each) => ({ ...each, start_at: start_at || each.start_at }))}
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
