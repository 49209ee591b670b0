/** Asks for the number before a broadcast: it cannot be taken back. */
import { Confirm } from '../../ui/dialog.tsx'

interface ConfirmBroadcastProps {
  count: number
  account: string
  busy: boolean
  onClose: () => void
  onConfirm: () => void
}

export function ConfirmBroadcast({ count, account, busy, onClose, onConfirm }: ConfirmBroadcastProps) {
  const people = count === 1 ? '1 person' : `${count} people`
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Send to ${people}?`}
      description={`${account} writes to each of them once. This cannot be undone.`}
      phrase={String(count)}
      phraseLabel="Type how many people get it"
      action={`Send to ${people}`}
      change={{ isPending: busy, error: undefined }}
      onConfirm={onConfirm}
    />
  )
}
