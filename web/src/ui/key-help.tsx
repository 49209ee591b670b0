/** `?` shows every key of the page. The list loads when it is first opened. */
import { lazy, Suspense, useState } from 'react'
import type { KeyWords } from './key-list.tsx'
import { useKeys } from './shortcuts.ts'

const KeyList = lazy(async () => ({ default: (await import('./key-list.tsx')).KeyList }))

/** Without keys, those of the inbox: its page loads none of their words. */
export function KeyHelp({ keys }: { keys?: readonly KeyWords[] }) {
  const [isOpen, setOpen] = useState(false)
  useKeys({ '?': () => setOpen(true) })
  return (
    isOpen && (
      <Suspense>
        <KeyList keys={keys} onClose={() => setOpen(false)} />
      </Suspense>
    )
  )
}
