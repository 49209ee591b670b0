/** What is typed at one place of a page: see `kept.ts`. */
import { useState } from 'react'
import { type Keeper, type KeptState, keep } from './kept.ts'
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
