/** One line at the bottom after a change that can be undone, or a change that failed. The next one replaces it. */
import { useEffect } from 'react'
import { useShared } from '../data/shared-state.ts'
import { shownToast, showToast, undoLast } from '../data/toasts.ts'
import { Button } from './button.tsx'
import { Keys } from './key-cap.tsx'

const shownMs = 8_000

export function ToastPlace() {
  const toast = useShared(shownToast)
  useEffect(() => {
    if (!toast) return
    const timer = setTimeout(() => showToast(undefined), shownMs)
    return () => clearTimeout(timer)
  }, [toast])
  return (
    <div
      role="status"
      className="pointer-events-none fixed inset-x-3 bottom-36 z-40 flex justify-center min-[761px]:bottom-5 min-[761px]:justify-start lg:left-[220px]"
    >
      {toast && (
        <div className="pointer-events-auto flex min-h-11 max-w-full items-center gap-3 rounded-[10px] bg-raised py-1.5 pl-3.5 pr-2 shadow-float">
          <span
            className={`min-w-0 [overflow-wrap:anywhere] ${toast.tone === 'danger' ? 'text-danger' : ''}`}
          >
            {toast.text}
          </span>
          {toast.undo ? (
            <Button size="small" onClick={undoLast}>
              Undo <Keys keys="Z" />
            </Button>
          ) : (
            <Button size="small" kind="quiet" onClick={() => showToast(undefined)}>
              Dismiss
            </Button>
          )}
        </div>
      )}
    </div>
  )
}
