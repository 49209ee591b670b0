/** Adds one entry, and removes one with a reason. Neither is shown before the service has done it. */
import { useState } from 'react'
import { nameMax } from '../../../../src/rules/limits.ts'
import { useChange } from '../../data/queries.ts'
import {
  type Kind,
  kinds,
  kindWords,
  type Suppression,
  suppressionShownIn,
  writtenOf,
} from '../../data/suppressions.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Form, ReasonField, SelectField, TextField } from '../../ui/form.tsx'
import { Notice } from '../../ui/notice.tsx'
import { Time } from '../../ui/time.tsx'
import { nameOf } from './suppression-table.tsx'

const examples: Readonly<Record<Kind, string>> = {
  username: 'For example: @ines_garcia',
  phone: 'With the country code, for example: +49 170 5550101',
  platform_id: 'The number that the platform gives the person, for example: 1001',
}

export function AddDialog({ workspace_id, onClose }: { workspace_id: string; onClose: () => void }) {
  const add = useChange('POST /w/{workspace_id}/suppressions', suppressionShownIn)
  const [kind, setKind] = useState<Kind>('username')
  const [value, setValue] = useState('')
  const wasThere = add.data?.added === false
  return (
    <Dialog
      open
      onClose={onClose}
      title="Add to the list"
      description="Campaigns and first messages skip this person. You can still answer if they write."
    >
      <Form
        onSubmit={() =>
          add.mutate(
            { params: { workspace_id }, body: { kind, value: value.trim() } },
            { onSuccess: ({ added }) => added && onClose() },
          )
        }
        change={add}
        action="Add to the list"
        disabled={value.trim() === ''}
      >
        <SelectField label="Kind" value={kind} options={kinds} onChange={setKind} />
        <TextField
          label={kindWords[kind]}
          help={examples[kind]}
          required
          maxLength={nameMax}
          value={value}
          onChange={(next) => {
            setValue(next)
            add.reset()
          }}
          spellCheck={false}
        />
        {wasThere && <Notice tone="info">It was on the list already.</Notice>}
      </Form>
    </Dialog>
  )
}

interface RemoveProps {
  of: Suppression
  workspace_id: string
  onClose: () => void
}

export function RemoveDialog({ of: entry, workspace_id, onClose }: RemoveProps) {
  const remove = useChange('POST /w/{workspace_id}/suppressions/remove', suppressionShownIn)
  const [reason, setReason] = useState('')
  const { kind, value, source } = entry
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Remove ${writtenOf(entry)}?`}
      description={
        source === 'opt_out'
          ? 'This person asked to stop. Parley may write to them again afterwards.'
          : 'Parley may write to this person again afterwards.'
      }
    >
      <Form
        onSubmit={() =>
          remove.mutate(
            { params: { workspace_id }, body: { kind, value, reason: reason.trim() } },
            { onSuccess: onClose },
          )
        }
        change={remove}
        action="Remove"
        kind="danger"
        disabled={reason.trim() === ''}
      >
        <Releases of={entry} />
        <ReasonField value={reason} onChange={setReason} />
      </Form>
    </Dialog>
  )
}

/** Whom the removal releases, before it is confirmed. */
function Releases({ of: { people } }: { of: Suppression }) {
  if (people.length === 0) return <p className="text-soft">Parley knows nobody under this name.</p>
  return (
    <ul aria-label="Whom this releases" className="grid gap-1 text-soft">
      {people.map(({ platform_id, names, until, released }) => (
        <li key={platform_id} className="[overflow-wrap:anywhere]">
          {released ? 'Releases ' : 'Stays on the list by another entry: '}
          <ExactLine text={[...names.map(nameOf), `platform id ${platform_id}`].join(', ')} />
          {until !== null && (
            <>
              , whose name it was until <Time at={until} />
            </>
          )}
          .
        </li>
      ))}
    </ul>
  )
}
