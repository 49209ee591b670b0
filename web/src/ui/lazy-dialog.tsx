/** The dialog, loaded when it is first opened: pages that rarely open one stay light. */
import { lazy, Suspense } from 'react'
import type { DialogProps } from './dialog.tsx'

const Loaded = lazy(async () => ({ default: (await import('./dialog.tsx')).Dialog }))

export function LazyDialog(props: DialogProps) {
  return (
    props.open && (
      <Suspense>
        <Loaded {...props} />
      </Suspense>
    )
  )
}
