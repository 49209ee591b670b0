/** Starts what a form describes: once, whatever happens to the page or the answer in between. Never before the service said so. */
import { useEffect, useEffectEvent, useRef, useState } from 'react'
import { onStoreChange } from './browser-store.ts'
import { newKey } from './kept.ts'
import { idOf, type Place, type Underway } from './records.ts'
import { isStale, type Outcome, runUntilKnown, type Waiting } from './run-until-known.ts'
import { beginForm, endForm, isUnderway, readForm } from './underway.ts'
import type { KeptPlace } from './use-kept.ts'

export interface StartState {
  /** A request is under way; its outcome is not known. */
  readonly busy: boolean
  readonly waiting: Waiting | null
  readonly error: unknown
  /** It was refused after an attempt whose outcome is not known: it may have started all the same. */
  readonly unsure: boolean
  readonly start: (body: unknown) => Promise<void>
  /** A start of long ago, which a person continues or not. */
  readonly stalled: boolean
  readonly resume: () => void
  /** Back to the draft, whose key stays: started unchanged, it is still the same. */
  readonly giveUp: () => void
}

interface StartActions<A> {
  readonly ask: (body: unknown, key: string) => Promise<A>
  readonly onDone: (answer: A) => void
  /** Nothing was started, and the draft is back. */
  readonly onRefused: () => void
}

const words = { begins: 'It starts', once: 'it won’t start twice' }

/** Sends the request of a form until its outcome is known. Refused, the draft is back. */
export async function runForm<A>(
  request: Underway,
  { ask, onWait, resumed }: Running<A>,
): Promise<Outcome<A>> {
  const outcome = await runUntilKnown({
    key: request.key,
    ask: () => ask(request.body, request.key),
    isOpen: () => isUnderway(request),
    onWait,
    resumed,
    ambiguous: 'repeat',
    words,
  })
  if (outcome.is === 'done') await endForm(request)
  if (outcome.is === 'refused') {
    const key = outcome.unsure ? request.key : newKey() // guard: key of a form that may have started
    await endForm(request, { key })
  }
  return outcome
}

interface Running<A> {
  readonly ask: StartActions<A>['ask']
  readonly onWait: (waiting: Waiting | null) => void
  readonly resumed: boolean
}

/** What this browser has started and not finished, of this form. */
function useUnderway(place: Place): [Underway | undefined, (next: Underway) => void] {
  const [request, setRequest] = useState<Underway>()
  useEffect(() => {
    let isShown = true
    const read = async () => {
      const found = await readForm(place)
      if (isShown) setRequest((before) => (before?.key === found?.key ? before : found))
    }
    void read()
    const stop = onStoreChange(({ at }) => {
      if (at === null || at === idOf(place)) void read()
    })
    return () => {
      isShown = false
      stop()
    }
  }, [place])
  return [request, setRequest]
}

export function useStartForm<T, A>(
  form: KeptPlace<T>,
  { ask, onDone, onRefused }: StartActions<A>,
): StartState {
  const [request, setRequest] = useUnderway(form.place)
  const [waiting, setWaiting] = useState<Waiting | null>(null)
  const [refusal, setRefusal] = useState<{ error: unknown; unsure: boolean }>()
  /** The request that a person has asked for on this page. */
  const [continued, setContinued] = useState<string>()
  const running = useRef(new Set<string>())
  const run = async (begun: Underway, resumed: boolean) => {
    if (running.current.has(begun.key)) return
    running.current.add(begun.key)
    const outcome = await runForm(begun, { ask, onWait: setWaiting, resumed })
    running.current.delete(begun.key)
    setRefusal(outcome.is === 'refused' ? outcome : undefined)
    if (outcome.is === 'done') {
      form.clear()
      onDone(outcome.answer)
    }
    if (outcome.is === 'refused') onRefused()
  }
  const stalled = request !== undefined && isStale(request) && request.key !== continued
  const resume = useEffectEvent(() => request && void run(request, true))
  const found = form.isLoaded && !stalled ? request?.key : undefined
  // A start that is found in the store is continued once.
  useEffect(() => {
    if (found !== undefined) resume()
  }, [found])
  return {
    busy: request !== undefined && !stalled,
    waiting,
    // Of an attempt before the one under way.
    error: request ? undefined : refusal?.error,
    unsure: !request && (refusal?.unsure ?? false),
    start: async (body) => {
      await form.save()
      const begun = await beginForm(form.kept, body)
      setRequest(begun)
      setContinued(begun.key)
      await run(begun, begun.key !== form.kept.key)
    },
    stalled,
    resume: () => {
      setContinued(request?.key)
      if (request) void run(request, true)
    },
    giveUp: () => {
      if (request) void endForm(request, { key: request.key })
    },
  }
}
