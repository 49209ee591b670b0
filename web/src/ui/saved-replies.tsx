/** Saved replies above the field where one writes. They load when they are first opened. */
import { lazy, Suspense } from 'react'
import type { SavedRepliesProps } from './saved-replies-panel.tsx'

const Panel = lazy(async () => ({ default: (await import('./saved-replies-panel.tsx')).SavedRepliesPanel }))

export function SavedReplies(props: SavedRepliesProps) {
  return (
    <Suspense>
      <Panel {...props} />
    </Suspense>
  )
}
