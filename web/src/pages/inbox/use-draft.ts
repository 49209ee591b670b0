/** The draft of one chat, kept in sync with the browser's store and other tabs. */
import { useCallback, useEffect, useRef, useState } from 'react'
import {
  type ChatPlace,
  changeDraft,
  type Draft,
  emptyDraft,
  onOutboxChange,
  readDraft,
  saveDraft,
} from '../../outbox.ts'

const saveMs = 150

interface DraftState {
  readonly draft: Draft
  /** Whether the browser's store has answered: before that an empty field means nothing. */
  readonly isLoaded: boolean
  readonly change: (more: { text?: string; file?: File | null }) => void
  /** Clears the field: the draft is being sent. */
  readonly clear: () => void
}

export function useDraft(place: ChatPlace): DraftState {
  const [draft, setDraft] = useState(() => emptyDraft(place))
  const [isLoaded, setLoaded] = useState(false)
  const unsaved = useRef<{ draft: Draft; timer: ReturnType<typeof setTimeout> }>(undefined)
  const flush = useCallback(() => {
    if (!unsaved.current) return
    clearTimeout(unsaved.current.timer)
    const { draft } = unsaved.current
    unsaved.current = undefined
    void saveDraft(draft)
  }, [])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the pane has a key, so the place never changes.
  useEffect(() => {
    const follow = async () => {
      const stored = await readDraft(place)
      setLoaded(true)
      // What is typed here is newer than what is stored.
      if (unsaved.current) return
      setDraft((current) => (stored ? (stored.key === current.key ? current : stored) : emptyDraft(place)))
    }
    void follow()
    const stop = onOutboxChange(() => void follow())
    addEventListener('pagehide', flush)
    return () => {
      stop()
      removeEventListener('pagehide', flush)
      flush()
    }
  }, [])
  const change = useCallback(
    (more: { text?: string; file?: File | null }) => {
      setDraft((current) => {
        const next = changeDraft(current, more)
        clearTimeout(unsaved.current?.timer)
        unsaved.current = { draft: next, timer: setTimeout(flush, saveMs) }
        return next
      })
    },
    [flush],
  )
  const clear = useCallback(() => {
    clearTimeout(unsaved.current?.timer)
    unsaved.current = undefined
    setDraft(emptyDraft(place))
  }, [place])
  return { draft, isLoaded, change, clear }
}
