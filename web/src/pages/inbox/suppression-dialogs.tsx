/** Puts the person of a chat on the suppression list, and releases them. Neither is shown before the service has done it. */
import { useState } from 'react'
import type { ChatRef } from '../../data/chats.ts'
import { useChange } from '../../data/queries.ts'
import { type ChatSuppression, suppressionShownIn } from '../../data/suppressions.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Form, ReasonField } from '../../ui/form.tsx'
import { nameOfEntry } from './suppression-words.ts'

interface DialogProps {
  chat: ChatRef
  name: string
  onClose: () => void
}

const titleName = (name: string) => name.slice(0, 80).trim() || 'this person'

export function SuppressDialog({ chat: { workspace_id, chat_id }, name, onClose }: DialogProps) {
  const add = useChange('POST /w/{workspace_id}/suppressions', suppressionShownIn)
  // The chat of a person has their number on the platform.
  const value = chat_id.replace(/^platform:chat:/, '')
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Suppress ${titleName(name)}?`}
      description="Campaigns and first messages skip this person, from every account. You can still answer if they write."
    >
      <Form
        onSubmit={() =>
          add.mutate(
            { params: { workspace_id }, body: { kind: 'platform_id', value } },
            { onSuccess: onClose },
          )
        }
        change={add}
        action="Suppress"
      />
    </Dialog>
  )
}

interface ReleaseProps extends DialogProps {
  entries: readonly ChatSuppression[]
}

/** Removes every entry that stops the person: any one of them would. */
export function ReleaseDialog({ chat: { workspace_id }, name, entries, onClose }: ReleaseProps) {
  const remove = useChange('POST /w/{workspace_id}/suppressions/remove', suppressionShownIn)
  const [reason, setReason] = useState('')
  const asked = entries.some(({ source }) => source === 'opt_out')
  const release = async () => {
    for (const { kind, value } of entries) {
      await remove.mutateAsync({ params: { workspace_id }, body: { kind, value, reason: reason.trim() } })
    }
    onClose()
  }
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Release ${titleName(name)}?`}
      description={
        asked
          ? 'This person asked to stop. Campaigns may write to them again afterwards.'
          : 'Campaigns may write to this person again afterwards.'
      }
    >
      <Form
        // The form shows a refusal; what was removed before it is gone from the list.
        onSubmit={() => void release().catch(() => {})}
        change={remove}
        action="Release"
        kind="danger"
        disabled={reason.trim() === ''}
      >
        <p className="text-soft [overflow-wrap:anywhere]">
          {entries.length === 1 ? 'Removes the entry ' : 'Removes the entries '}
          <ExactLine text={entries.map(nameOfEntry).join(', ')} />.
        </p>
        <ReasonField value={reason} onChange={setReason} />
      </Form>
    </Dialog>
  )
}
