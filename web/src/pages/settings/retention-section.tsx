/** How long texts, files and names are kept. A change first shows what it clears. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useSession } from '../../data/place.ts'
import { useChange } from '../../data/queries.ts'
import { type Cleared, type Retention, retentionPreviewQuery, retentionQuery } from '../../data/retention.ts'
import { shown, useKept } from '../../data/use-kept.ts'
import { Confirm } from '../../ui/dialog.tsx'
import { DiscardChanges, Form, TextField } from '../../ui/form.tsx'
import { Section } from '../../ui/page.tsx'
import { Loaded } from '../../ui/states.tsx'

const daysMax = 3650

interface Kind {
  readonly name: keyof Retention
  readonly label: string
  readonly help: string
  readonly least: number
}

const kinds: readonly Kind[] = [
  {
    name: 'messages_days',
    label: 'Messages, days',
    help: 'Texts and files, from when they were sent. Older ones are not fetched again.',
    least: 1,
  },
  {
    name: 'operations_days',
    label: 'Operations, days',
    help: 'Texts in the ledger, from when an operation ended. That it happened stays, and can be proven.',
    least: 1,
  },
  {
    name: 'recipients_days',
    label: 'Recipients, days',
    help: 'Names in campaigns, from when the campaign ended: at least 30. Figures and reports stay.',
    least: 30,
  },
  { name: 'notes_days', label: 'Notes, days', help: 'From when they were written.', least: 1 },
]

export function RetentionSection({ workspace_id }: { workspace_id: string }) {
  const query = useQuery(retentionQuery(workspace_id))
  return (
    <Section
      title="Retention"
      about="What is older is cleared, without end. An empty field keeps everything."
    >
      <Loaded query={query} rows={4}>
        {({ retention }) => <RetentionForm workspace_id={workspace_id} stored={retention} />}
      </Loaded>
    </Section>
  )
}

type Typed = Partial<Record<keyof Retention, string>>

function RetentionForm({ workspace_id, stored }: { workspace_id: string; stored: Retention }) {
  const save = useChange('PUT /w/{workspace_id}/retention', ['retention'])
  const { user } = useSession()
  const place = { user_id: user.id, workspace_id, kind: 'settings', of: 'retention' } as const
  const { kept, change, discard } = useKept<Typed>(place, {})
  const [asked, setAsked] = useState<Retention>()
  const textOf = (name: keyof Retention) => kept.value[name] ?? stored[name]?.toString() ?? ''
  const wanted = Object.fromEntries(
    kinds.map(({ name }) => [name, textOf(name) === '' ? null : Number(textOf(name))]),
  ) as unknown as Retention
  const isValid = kinds.every(({ name, least }) => {
    const days = wanted[name]
    return days === null || (Number.isInteger(days) && days >= least && days <= daysMax)
  })
  const isChanged = kinds.some(({ name }) => wanted[name] !== stored[name])
  return (
    <>
      <Form
        onSubmit={() => setAsked(wanted)}
        change={{ isPending: false, error: null }}
        action="Show what this clears"
        aside={<DiscardChanges of={kept.value} onDiscard={discard} />}
        disabled={!isValid || !isChanged}
        saved={save.isSuccess && !isChanged}
      >
        {kinds.map(({ name, label, help, least }) => (
          <TextField
            key={name}
            label={label}
            help={help}
            type="number"
            inputMode="numeric"
            min={least}
            max={daysMax}
            step={1}
            placeholder="Kept"
            value={textOf(name)}
            onChange={(typed) => {
              save.reset()
              change((each) => ({ ...each, [name]: typed }))
            }}
          />
        ))}
      </Form>
      <Confirm
        open={asked !== undefined}
        onClose={() => setAsked(undefined)}
        title="Clear what is older?"
        description="It begins at once and goes on from then on. What was cleared cannot be brought back."
        action="Clear it"
        change={save}
        onConfirm={() =>
          asked &&
          void save
            .mutateAsync({ params: { workspace_id }, body: asked })
            .then(() => discard(kept).then(() => setAsked(undefined)), shown)
        }
      >
        {asked && <Preview workspace_id={workspace_id} retention={asked} />}
      </Confirm>
    </>
  )
}

const parts: readonly (readonly [name: keyof Cleared, label: string])[] = [
  ['messages', 'Messages'],
  ['files', 'Files of these messages'],
  ['operations', 'Operations'],
  ['recipients', 'Recipients'],
  ['notes', 'Notes'],
]
/** The service counts up to this. */
const countedMax = 100_000

function Preview({ workspace_id, retention }: { workspace_id: string; retention: Retention }) {
  const query = useQuery(retentionPreviewQuery(workspace_id, retention))
  return (
    <Loaded query={query} rows={5}>
      {({ clears }) => (
        <dl className="grid gap-y-1">
          {parts.map(([name, label]) => (
            <div key={name} className="flex justify-between gap-6">
              <dt className="text-muted">{label}</dt>
              <dd className="text-right">
                {clears[name].toLocaleString('en')}
                {clears[name] >= countedMax && ' or more'}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </Loaded>
  )
}
