/** Creates a key in a dialog that shows its secret once. A click outside does not close it. */
import { useState } from 'react'
import type { Workspace } from '../data/queries.ts'
import { ShownOnce } from './copy.tsx'
import { Dialog } from './dialog.tsx'
import { type CreatedKey, KeyForm } from './key-form.tsx'

interface NewKeyProps {
  open: boolean
  onClose: () => void
  workspace: Workspace
}

export function NewKey({ open, onClose, workspace }: NewKeyProps) {
  const [made, setMade] = useState<CreatedKey>()
  const close = () => {
    setMade(undefined)
    onClose()
  }
  return (
    <Dialog
      open={open}
      onClose={close}
      sealed={made !== undefined}
      title={made ? 'Your new key' : 'Create an API key'}
      description={
        made
          ? 'Copy it now. You will not see it again. We keep only a hash.'
          : 'It acts as you, in this workspace.'
      }
    >
      {made ? (
        <ShownOnce
          value={made.secret}
          label={`The key ${made.key.name}`}
          warning="Anyone with this key can use it. Keep it like a password."
          done="I saved it"
          onClose={close}
        />
      ) : (
        <KeyForm workspace={workspace} onMade={setMade} />
      )}
    </Dialog>
  )
}
