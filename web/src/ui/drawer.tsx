/** The menu of a narrow screen. Wide screens never load it. */
import { Dialog } from '@base-ui/react/dialog'
import { X } from 'lucide-react'
import type { ReactNode } from 'react'

interface DrawerProps {
  open: boolean
  onClose: () => void
  children: ReactNode
}

export function Drawer({ open, onClose, children }: DrawerProps) {
  return (
    <Dialog.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fades fixed inset-0 z-30 bg-shade" />
        <Dialog.Popup className="slides fixed inset-y-0 left-0 z-30 w-72 max-w-[86vw] bg-canvas shadow-float outline-none">
          <Dialog.Title className="sr-only">Menu</Dialog.Title>
          {children}
          <Dialog.Close
            aria-label="Close the menu"
            className="absolute right-3 top-3.5 grid size-9 place-items-center rounded-lg text-muted hover:bg-hover"
          >
            <X aria-hidden className="size-4.5" />
          </Dialog.Close>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
