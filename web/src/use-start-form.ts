/** Starts what a form describes: once, whatever happens to the page or the answer in between. Never before the service said so. */
import { useEffect, useRef, useState } from 'react'
import type { FormDraft, FormState } from './form-draft.ts'
import { isStale, runForm, type Waiting } from './start-form.ts'

export interface StartState {
  /** A request is under way; its outcome is not known. */
  readonly busy: boolean
  readonly waiting: Waiting | null
  readonly error: unknown
  /** It was refused after an answer that was lost: it may have started all the same. */
  readonly unsure: boolean
  readonly start: (body: unknown) => Promise<void>
  /** A start of long ago, which a person continues or not. */
  readonly stalled: boolean
  readonly resume: () => void
}

interface StartActions<A> {
  readonly ask: (body: unknown, key: string) => Promise<A>
  readonly onDone: (answer: A) => void
  /** Nothing was started, and the draft is back. */
  readonly onRefused: () => void
}

export function useStartForm<T, A>(
  form: FormState<T>,
  { ask, onDone, onRefused }: StartActions<A>,
): StartState {
  const [waiting, setWaiting] = useState<Waiting | null>(null)
  const [error, setError] = useState<unknown>()
  const [unsure, setUnsure] = useState(false)
  const running = useRef(new Set<string>())
  const { draft, isLoaded } = form
  const run = async (begun: FormDraft<T>, resumed: boolean) => {
    const key = begun.starting?.key ?? ''
    if (running.current.has(key)) return
    running.current.add(key)
    setError(undefined)
    setUnsure(false)
    const onUnsure = () => setUnsure(true)
    try {
      const answer = await runForm(begun, form.end, { ask, onWait: setWaiting, resumed, onUnsure })
      if (answer !== undefined) onDone(answer)
    } catch (refusal) {
      setError(refusal)
      onRefused()
    } finally {
      running.current.delete(key)
    }
  }
  const stalled = isStale(draft)
  // biome-ignore lint/correctness/useExhaustiveDependencies: a start found in the store is continued once.
  useEffect(() => {
    if (isLoaded && draft.starting && !stalled) void run(draft, true)
  }, [isLoaded, draft.starting?.key, stalled])
  return {
    busy: draft.starting !== null && !stalled,
    waiting,
    error,
    unsure,
    start: async (body) => {
      const begun = await form.begin(body)
      await run(begun, begun.starting?.key !== draft.key)
    },
    stalled,
    resume: () => void run(draft, true),
  }
}
