/** How the palette is opened: by ⌘K or Ctrl+K anywhere, or by the button in the menu. It loads when it is first opened. */
import { Search } from 'lucide-react'
import { lazy, Suspense, useEffect } from 'react'
import { SharedState, useShared } from '../../data/shared-state.ts'
import { Keys } from '../../ui/key-cap.tsx'

const Palette = lazy(async () => ({ default: (await import('./palette.tsx')).Palette }))

/** Undefined: never opened. */
const isOpen = new SharedState<boolean | undefined>(undefined)

/** Where the palette appears, once on a page. */
export function PalettePlace() {
  const open = useShared(isOpen)
  useEffect(() => {
    // Also while the user types: unlike a letter, it cannot be meant for the text.
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.metaKey || event.ctrlKey) || event.altKey) return
      event.preventDefault()
      if (isOpen.get() || !document.querySelector('[role="dialog"], [role="alertdialog"]'))
        isOpen.set(!isOpen.get())
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  if (open === undefined) return null
  return (
    <Suspense>
      <Palette open={open} onClose={() => isOpen.set(false)} />
    </Suspense>
  )
}

export function PaletteButton() {
  return (
    <button
      type="button"
      onClick={() => isOpen.set(true)}
      className="flex h-11 w-full shrink-0 items-center gap-2 rounded-lg bg-surface px-2.5 text-muted ring-1 ring-inset ring-line hover:text-ink lg:h-8"
    >
      <Search aria-hidden className="size-4 shrink-0" />
      <span className="min-w-0 flex-1 truncate text-left">Search or go to…</span>
      <Keys keys="⌘K" />
    </button>
  )
}
