/** Says that the page may be behind, and why. Shows nothing while all is well. */
import { useLiveState } from '../data/live/live.ts'
import { SharedState, useShared } from '../data/shared-state.ts'
import { liveWords } from './live-words.ts'

/** Whether the browser has a network at all. */
const isOnline = new SharedState(true, {
  read: () => navigator.onLine,
  follow: (set) => {
    const look = () => set(navigator.onLine)
    addEventListener('online', look)
    addEventListener('offline', look)
    return () => {
      removeEventListener('online', look)
      removeEventListener('offline', look)
    }
  },
})

export function LiveNote() {
  const words = liveWords(useLiveState(), useShared(isOnline))
  return (
    <p
      role="status"
      className={
        words === ''
          ? 'sr-only'
          : 'fixed bottom-3 left-3 z-40 rounded-lg bg-raised px-3 py-1.5 text-xs text-soft shadow-float'
      }
    >
      {words}
    </p>
  )
}
