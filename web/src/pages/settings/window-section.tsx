/** When campaigns and broadcasts may send. */
import {
  clockOf,
  dayNames,
  describeWindow,
  formatWindow,
  parseWindow,
  type SendingWindow,
} from '../../../../src/rules/sending-window.ts'
import type { WorkspaceState } from '../../data/chats.ts'
import { useSession } from '../../data/place.ts'
import { useChange } from '../../data/queries.ts'
import { shown, useKept } from '../../data/use-kept.ts'
import { Choice, Choices, DiscardChanges, Form, SelectField } from '../../ui/form.tsx'
import { Section } from '../../ui/page.tsx'
import { Week } from './week.tsx'

export interface SettingsGiven {
  workspace: WorkspaceState['workspace']
  /** Whether the user may change them. */
  admin: boolean
}

const standard: SendingWindow = { days: [1, 2, 3, 4, 5], from: 9 * 60, to: 18 * 60 }

export function WindowSection({ workspace, admin }: SettingsGiven) {
  const save = useChange('PATCH /w/{workspace_id}/workspace', ['workspace', 'session'])
  const stored = parseWindow(workspace.sending_window ?? '')
  const { user } = useSession()
  const place = { user_id: user.id, workspace_id: workspace.id, kind: 'settings', of: 'window' } as const
  const form = useKept<{ limited?: boolean; window?: SendingWindow }>(place, {})
  const { limited = stored !== undefined, window = stored ?? standard } = form.kept.value
  const isChosen = window.days.length > 0
  const words = isChosen ? describeWindow(window) : 'No day is chosen'
  const change = (next: SendingWindow) => {
    save.reset()
    form.change((each) => ({ ...each, window: next }))
  }
  return (
    <Section
      title="Sending window"
      about={`When campaigns and broadcasts may send, in ${workspace.timezone}. Answers in chats are sent at any time.`}
    >
      <Form
        onSubmit={() =>
          void save
            .mutateAsync({
              params: { workspace_id: workspace.id },
              body: { sending_window: limited ? formatWindow(window) : null },
            })
            .then(() => form.discard(form.kept), shown)
        }
        change={save}
        action={save.error ? 'Try again' : 'Save window'}
        aside={<DiscardChanges of={form.kept.value} onDiscard={form.discard} />}
        disabled={!admin || (limited && !isChosen)}
        saved={save.isSuccess}
      >
        <Choices legend="Send">
          {[false, true].map((each) => (
            <Choice
              key={String(each)}
              type="radio"
              name="limited"
              label={each ? 'Only in the window' : 'At any time'}
              help={each ? words : 'Limits per day still hold.'}
              checked={limited === each}
              disabled={!admin}
              onChange={() => {
                save.reset()
                form.change((before) => ({ ...before, limited: each }))
              }}
            />
          ))}
        </Choices>
        {limited && <Painter window={window} words={words} admin={admin} onChange={change} />}
      </Form>
    </Section>
  )
}

interface PainterProps {
  window: SendingWindow
  words: string
  admin: boolean
  onChange: (window: SendingWindow) => void
}

function Painter({ window, words, admin, onChange }: PainterProps) {
  const set = (part: Partial<SendingWindow>) => onChange({ ...window, ...part })
  const toggle = (day: number) =>
    set({
      days: window.days.includes(day)
        ? window.days.filter((each) => each !== day)
        : [...window.days, day].sort((a, b) => a - b),
    })
  return (
    <div className="grid gap-4">
      <Week window={window} readOnly={!admin} onChange={onChange} />
      {admin && (
        <p className="text-xs text-muted">
          Drag over the hours, or move with the arrow keys and hold Shift to paint. Every chosen day has the
          same hours.
        </p>
      )}
      <p role="status" className="sr-only">
        {words}
      </p>
      <fieldset disabled={!admin} className="flex flex-wrap items-end gap-x-4 gap-y-3">
        <legend className="sr-only">Days and hours</legend>
        <div className="flex flex-wrap gap-1">
          {dayNames.map((name, at) => (
            <button
              key={name}
              type="button"
              aria-pressed={window.days.includes(at + 1)}
              onClick={() => toggle(at + 1)}
              className="h-9 rounded-lg px-2.5 text-soft ring-1 ring-inset ring-line hover:bg-hover aria-pressed:bg-accent-wash
                aria-pressed:font-medium aria-pressed:text-accent"
            >
              {name}
            </button>
          ))}
        </div>
        <div className="flex gap-3">
          <Clock label="From" value={window.from} onChange={(from) => set({ from })} below={window.to} />
          <Clock label="To" value={window.to} onChange={(to) => set({ to })} above={window.from} />
        </div>
      </fieldset>
    </div>
  )
}

interface ClockProps {
  label: string
  value: number
  above?: number
  below?: number
  onChange: (value: number) => void
}

const stepMinutes = 30
const halfHours = Array.from({ length: 49 }, (_, at) => at * stepMinutes)

function Clock({ label, value, above = -1, below = 24 * 60 + 1, onChange }: ClockProps) {
  const offered = [...new Set([...halfHours, value])]
    .filter((each) => each > above && each < below)
    .sort((a, b) => a - b)
  return (
    <SelectField
      label={label}
      value={String(value)}
      options={offered.map((each) => [String(each), clockOf(each)])}
      onChange={(minutes) => onChange(Number(minutes))}
      className="!w-28"
    />
  )
}
