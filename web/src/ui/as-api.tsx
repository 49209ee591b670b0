/** “As API”: how a program does with this object what the page does, with its ids and never with a key. */
import { Braces } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import type { ApiRequest } from './as-api-text.ts'
import { Button } from './button.tsx'

const AsApiDialog = lazy(async () => ({ default: (await import('./as-api-dialog.tsx')).AsApiDialog }))

interface AsApiProps {
  /** The object's own name. */
  of: string
  /** Those that one needs first, first. */
  requests: readonly ApiRequest[]
  /** The label of the object for screen readers, where several stand on one page. */
  label?: string
}

export function AsApi({ of, requests, label }: AsApiProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button kind="quiet" size="small" onClick={() => setOpen(true)}>
        <Braces aria-hidden className="size-3.5" />
        As API
        {label !== undefined && <span className="sr-only">: {label}</span>}
      </Button>
      {isOpen && (
        <Suspense>
          <AsApiDialog of={of} requests={requests} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  )
}
