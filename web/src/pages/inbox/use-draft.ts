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
  readonly isSaved: boolean
  readonly change: (more: { text?: string; file?: File | null }) => void
  /** Clears the field: the draft is being sent. */
  readonly clear: () => void
}

export function useDraft(place: ChatPlace): DraftState {
  const [draft, setDraft] = useState(() => emptyDraft(place))
  const [isLoaded, setLoaded] = useState(false)
  const [isSaved, setSaved] = useState(true)
  const unsaved = useRef<{ draft: Draft; timer: ReturnType<typeof setTimeout> }>(undefined)
  const flush = useCallback(async () => {
    const saving = unsaved.current
    if (!saving) return
    clearTimeout(saving.timer)
    await saveDraft(saving.draft)
    // What was typed meanwhile is saved after its own pause.
    if (unsaved.current !== saving) return
    unsaved.current = undefined
    setSaved(true)
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
    const leave = () => void flush()
    addEventListener('pagehide', leave)
    return () => {
      stop()
      removeEventListener('pagehide', leave)
      leave()
    }
  }, [])
  const change = useCallback(
    (more: { text?: string; file?: File | null }) => {
      setDraft((current) => {
        const next = changeDraft(current, more)
        clearTimeout(unsaved.current?.timer)
        unsaved.current = { draft: next, timer: setTimeout(() => void flush(), saveMs) }
        return next
      })
      setSaved(false)
    },
    [flush],
  )
  const clear = useCallback(() => {
    clearTimeout(unsaved.current?.timer)
    unsaved.current = undefined
    setDraft(emptyDraft(place))
  }, [place])
  return { draft, isLoaded, isSaved, change, clear }
}
