/** What the page says after a change that can be undone, or that failed. The next one replaces it. */
import { SharedState } from './shared-state.ts'

interface Toast {
  readonly text: string
  readonly tone?: 'plain' | 'danger'
  readonly undo?: () => void
}

export const shownToast = new SharedState<Toast | undefined>(undefined)

export const showToast = shownToast.set

/** Undoes the last change, if it is still offered. */
export function undoLast(): boolean {
  const undo = shownToast.get()?.undo
  if (!undo) return false
  showToast(undefined)
  undo()
  return true
}
