/** When campaigns and broadcasts may send. */
import { useState } from 'react'
import { useChange } from '../../queries.ts'
import { Section } from '../../shell.tsx'
import { Choice, Choices, Field, Form, Select } from '../../ui/form.tsx'
import {
  clockOf,
  dayNames,
  describeWindow,
  isDay,
  readWindow,
  type SendingWindow,
  writeWindow,
} from './sending-window.ts'
import type { SettingsGiven } from './settings.tsx'
import { Week } from './week.tsx'

const standard: SendingWindow = { days: [1, 2, 3, 4, 5], from: 9 * 60, to: 18 * 60 }

export function WindowSection({ workspace, admin }: SettingsGiven) {
  const save = useChange('PATCH /w/{workspace_id}/workspace', ['workspace', 'session'])
  const stored = readWindow(workspace.sending_window)
  const [limited, setLimited] = useState(stored !== null)
  const [window, setWindow] = useState(stored ?? standard)
  const written = limited ? writeWindow(window) : null
  const change = (next: SendingWindow) => {
    save.reset()
    setWindow(next)
  }
  return (
    <Section
      title="Sending window"
      about={`When campaigns and broadcasts may send, in ${workspace.timezone}. Answers in chats are sent at any time.`}
    >
      <Form
        onSubmit={() =>
          save.mutate({ params: { workspace_id: workspace.id }, body: { sending_window: written } })
        }
        busy={save.isPending}
        error={save.error}
        action="Save window"
        disabled={!admin || (limited && written === null)}
        aside={save.isSuccess && <Saved />}
      >
        <Choices legend="Send">
          {[false, true].map((each) => (
            <Choice
              key={String(each)}
              type="radio"
              name="limited"
              label={each ? 'Only in the window' : 'At any time'}
              help={each ? describeWindow(window) : 'Limits per day still hold.'}
              checked={limited === each}
              disabled={!admin}
              onChange={() => {
                save.reset()
                setLimited(each)
              }}
            />
          ))}
        </Choices>
        {limited && <Painter window={window} admin={admin} onChange={change} />}
      </Form>
    </Section>
  )
}

export function Saved() {
  return (
    <span role="status" className="self-center text-accent">
      Saved
    </span>
  )
}

interface PainterProps {
  window: SendingWindow
  admin: boolean
  onChange: (window: SendingWindow) => void
}

function Painter({ window, admin, onChange }: PainterProps) {
  const set = (part: Partial<SendingWindow>) => {
    const next = { ...window, ...part }
    if (isDay(next)) onChange(next)
  }
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
        {describeWindow(window)}
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
    <Field label={label}>
      <Select value={value} onChange={(event) => onChange(Number(event.target.value))} className="!w-28">
        {offered.map((each) => (
          <option key={each} value={each}>
            {clockOf(each)}
          </option>
        ))}
      </Select>
    </Field>
  )
}
