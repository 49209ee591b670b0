/** What is typed at one place of a page: see `kept.ts`. */
import { useEffect, useState } from 'react'
import { changes, type Keeper, type KeptState, keep, noteUnkept } from './kept.ts'
import type { Place } from './records.ts'
import { useShared } from './shared-state.ts'

export type KeptPlace<T> = Keeper<T> & KeptState<T>

/** For a save that failed: the form shows why, and keeps what it has. Callbacks of a change are not called once its page is left. */
export const shown = () => {}

/** The place never changes: what shows another one has another key. */
export function useKept<T>(place: Place, empty: T): KeptPlace<T> {
  const [keeper] = useState(() => keep(place, empty))
  return { ...keeper, ...useShared(keeper.shown) }
}

/** Whether a keeper takes what this types. */
export function isKeptBy(act: () => void): boolean {
  const before = changes
  act()
  return changes !== before
}

/**
 * For a field that does not know whether its text is kept. Returns its `onChange`; while the text is neither kept nor saved, the
 * end of the session says that it is lost. `saved`: what the service has; without it, what the field began with.
 */
export function useUnkept(text: string, onChange: (text: string) => void, saved?: string) {
  const [first] = useState(text)
  const [isUnkept, setUnkept] = useState(false)
  const isLost = isUnkept && text !== (saved ?? first)
  useEffect(() => (isLost ? noteUnkept() : undefined), [isLost])
  return (typed: string) => setUnkept(!isKeptBy(() => onChange(typed)))
}
