/** Adds one entry, and removes one with a reason. Neither is shown before the service has done it. */
import { useState } from 'react'
import { useChange } from '../../queries.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { Field, Form, Select, TextInput } from '../../ui/form.tsx'
import { Notice } from '../../ui/notice.tsx'
import { type Kind, kindWords, type Suppression } from './suppression-queries.ts'
import { writtenOf } from './suppression-table.tsx'

const examples: Readonly<Record<Kind, string>> = {
  username: 'For example: @ines_garcia',
  phone: 'With the country code, for example: +49 170 5550101',
  platform_id: 'The number that the platform gives the person, for example: 1001',
}

export function AddDialog({ workspace_id, onClose }: { workspace_id: string; onClose: () => void }) {
  const add = useChange('POST /w/{workspace_id}/suppressions', ['suppressions'])
  const [kind, setKind] = useState<Kind>('username')
  const [value, setValue] = useState('')
  const wasThere = add.data?.added === false
  return (
    <Dialog
      open
      onClose={onClose}
      title="Add to the list"
      description="Parley stops messages to this person that it would have sent first. Answers in a chat stay possible."
    >
      <Form
        onSubmit={() =>
          add.mutate(
            { params: { workspace_id }, body: { kind, value: value.trim() } },
            { onSuccess: ({ added }) => added && onClose() },
          )
        }
        busy={add.isPending}
        error={add.error}
        action="Add to the list"
        align="end"
        disabled={value.trim() === ''}
      >
        <Field label="Kind">
          <Select value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
            {Object.entries(kindWords).map(([each, word]) => (
              <option key={each} value={each}>
                {word}
              </option>
            ))}
          </Select>
        </Field>
        <Field label={kindWords[kind]} help={examples[kind]}>
          <TextInput
            required
            maxLength={200}
            value={value}
            onChange={(event) => {
              setValue(event.target.value)
              add.reset()
            }}
            autoComplete="off"
            spellCheck={false}
          />
        </Field>
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
  const remove = useChange('POST /w/{workspace_id}/suppressions/remove', ['suppressions'])
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
        busy={remove.isPending}
        error={remove.error}
        action="Remove"
        kind="danger"
        align="end"
        disabled={reason.trim() === ''}
      >
        <Field label="Reason" help="The audit log keeps it with your name.">
          <TextInput
            required
            maxLength={500}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
            autoComplete="off"
          />
        </Field>
      </Form>
    </Dialog>
  )
}
