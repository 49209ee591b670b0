/** What the page says about its connection; empty while all is well. */
import type { useLiveState } from '../data/live/live.ts'

export function liveWords(state: ReturnType<typeof useLiveState>, online: boolean): string {
  if (!online) return 'You are offline' // guard: offline says offline
  return state === 'lost' ? 'Reconnecting…' : ''
}
