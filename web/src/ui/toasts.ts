/** What the page says after a change that can be undone, or that failed. The next one replaces it. */

interface Toast {
  readonly text: string
  readonly tone?: 'plain' | 'danger'
  readonly undo?: () => void
}

let current: Toast | undefined
const listeners = new Set<() => void>()

export function showToast(toast: Toast | undefined): void {
  current = toast
  for (const listener of listeners) listener()
}

/** Undoes the last change, if it is still offered. */
export function undoLast(): boolean {
  const undo = current?.undo
  if (!undo) return false
  showToast(undefined)
  undo()
  return true
}

export function onToast(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function currentToast(): Toast | undefined {
  return current
}
