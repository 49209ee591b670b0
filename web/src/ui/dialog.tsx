/** The one dialog. A dialog that shows something only once is `sealed`: neither a click outside nor Escape closes it. */
import { Dialog as Base } from '@base-ui/react/dialog'
import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { useState } from 'react'
import { Button } from './button.tsx'
import { type Change, Form, Place, TextField } from './form.tsx'

export interface DialogProps {
  open: boolean
  onClose: () => void
  title: string
  description?: ReactNode
  sealed?: boolean
  children: ReactNode
}

export function Dialog({ open, onClose, title, description, sealed = false, children }: DialogProps) {
  return (
    <Base.Root
      open={open}
      disablePointerDismissal={sealed}
      onOpenChange={(next, details) => {
        if (sealed && details.reason === 'escape-key') return details.cancel()
        if (!next) onClose()
      }}
    >
      <Base.Portal>
        <Base.Backdrop className="fades fixed inset-0 bg-shade" />
        <Base.Viewport className="fixed inset-0 grid place-items-end overflow-y-auto sm:place-items-center sm:p-6">
          <Base.Popup className="arrives relative flex max-h-dvh w-full max-w-lg flex-col rounded-t-2xl bg-raised p-6 shadow-float outline-none sm:max-h-[calc(100dvh-3rem)] sm:rounded-2xl">
            <Base.Title className="pr-8 text-lg font-semibold">{title}</Base.Title>
            {description && <Base.Description className="mt-1 text-muted">{description}</Base.Description>}
            <div className="mt-5 flex min-h-0 flex-col">
              <Place value="dialog">{children}</Place>
            </div>
            {!sealed && (
              <Base.Close
                aria-label="Close"
                className="absolute right-4 top-4 grid size-8 place-items-center rounded-lg text-muted hover:bg-hover hover:text-ink"
              >
                <X aria-hidden className="size-4" />
              </Base.Close>
            )}
          </Base.Popup>
        </Base.Viewport>
      </Base.Portal>
    </Base.Root>
  )
}

interface ConfirmProps {
  open: boolean
  onClose: () => void
  title: string
  description: ReactNode
  /** What the user has to type, if the action cannot be undone. */
  phrase?: string
  phraseLabel?: string
  action: string
  /** The button that changes nothing, where `Cancel` could be misread. */
  dismiss?: string
  /** While what it is about is not shown yet. */
  disabled?: boolean
  change: Change
  onConfirm: () => void
  /** What the user chooses before. */
  children?: ReactNode
}

/** Asks before an action that cannot be undone. */
export function Confirm({ phrase, ...props }: ConfirmProps) {
  const { open, onClose, title, description } = props
  return (
    <Dialog open={open} onClose={onClose} title={title} description={description}>
      {/* Inside the dialog, so that every opening begins with an empty field. */}
      <ConfirmForm {...props} {...(phrase !== undefined && { phrase })} />
    </Dialog>
  )
}

function ConfirmForm(props: ConfirmProps) {
  const { phrase, phraseLabel = 'Type its name to confirm', action, dismiss = 'Cancel' } = props
  const { change, disabled = false, onConfirm, onClose } = props
  const [typed, setTyped] = useState('')
  return (
    <Form
      onSubmit={onConfirm}
      change={change}
      action={action}
      kind="danger"
      disabled={disabled || (phrase !== undefined && typed.trim() !== phrase.trim())}
      aside={
        <Button kind="quiet" onClick={onClose}>
          {dismiss}
        </Button>
      }
    >
      {props.children}
      {phrase !== undefined && (
        <TextField
          label={phraseLabel}
          help={<bdi className="font-mono text-soft">{phrase}</bdi>}
          value={typed}
          onChange={setTyped}
          spellCheck={false}
        />
      )}
    </Form>
  )
}
