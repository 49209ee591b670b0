/**
 * The draft of a whole page (a campaign, a broadcast), kept in this browser like the draft of a message: its idempotency key
 * changes with it, and what is being started is stored with its exact request before that request leaves, so that a reload, a
 * second tab or a lost answer repeats the same request and starts nothing twice.
 */
import { useCallback, useEffect, useRef, useState } from 'react'
import { commitNow, isStored, newKey, notify, onForget, onOutboxChange, transact } from './outbox.ts'

/** The form and the user: the draft of one user is invisible to the next one in the same browser. */
export interface FormPlace {
  readonly user_id: string
  readonly workspace_id: string
  readonly form: 'campaign' | 'broadcast'
}

/** A request under way: its outcome is not known yet. */
export interface Starting {
  readonly key: string
  readonly body: unknown
  readonly at: string
}

export interface FormDraft<T> extends FormPlace {
  readonly value: T
  readonly key: string
  readonly starting: Starting | null
}

/** Without IndexedDB a draft lives as long as its tab. */
const memory = new Map<string, FormDraft<unknown>>()
onForget(() => memory.clear())

const idOf = ({ user_id, workspace_id, form }: FormPlace) => [user_id, workspace_id, form].join(' ')
/** A request under way has a record of its own, which a draft that another tab saves later does not overwrite. */
const startOf = (id: string) => `${id} start`

/** A record of the browser's store, which removes those of other users. */
type StartRecord = FormPlace & { readonly starting: Starting }

export async function readForm<T>(place: FormPlace): Promise<FormDraft<T> | undefined> {
  const id = idOf(place)
  const found = await transact<FormDraft<T> | undefined>(({ forms }, done) => {
    const start = forms.get(startOf(id))
    start.onsuccess = () => {
      const draft = forms.get(id)
      draft.onsuccess = () => done(withStart(draft.result, start.result))
    }
  })
  const own = isStored() ? undefined : (memory.get(id) as FormDraft<T> | undefined)
  return own ?? found?.value
}

function withStart<T>(
  draft: FormDraft<T> | undefined,
  start: StartRecord | undefined,
): FormDraft<T> | undefined {
  return draft && start ? { ...draft, key: start.starting.key, starting: start.starting } : draft
}

/** Saves what is typed. */
export async function saveForm(draft: FormDraft<unknown>): Promise<void> {
  const id = idOf(draft)
  memory.set(id, draft)
  await transact<void>(({ forms }) => {
    forms.put(draft, id)
    commitNow(forms)
  })
  notify()
}

async function removeForm(place: FormPlace): Promise<void> {
  const id = idOf(place)
  memory.delete(id)
  await transact<void>(({ forms }) => {
    forms.delete(id)
    forms.delete(startOf(id))
  })
  notify()
}

export function newForm<T>(place: FormPlace, value: T): FormDraft<T> {
  return { ...place, value, key: newKey(), starting: null }
}

export function changeForm<T>(draft: FormDraft<T>, value: T): FormDraft<T> {
  return {
    ...draft,
    value,
    key: newKey(), // guard: key of a changed form
  }
}

/** Stores the request before it leaves. Of two tabs that start the same draft, both send the request of the first. */
export async function beginForm<T>(draft: FormDraft<T>, body: unknown): Promise<FormDraft<T>> {
  const id = idOf(draft)
  const starting = { key: draft.key, body, at: new Date().toISOString() }
  const { user_id, workspace_id, form } = draft
  const record: StartRecord = { user_id, workspace_id, form, starting }
  const found = await transact<StartRecord>(({ forms }, done) => {
    const earlier = forms.get(startOf(id))
    earlier.onsuccess = () => {
      if (earlier.result) return done(earlier.result) // guard: one request of a form at a time
      forms.put({ ...draft, starting: null }, id)
      forms.put(record, startOf(id)) // guard: request of a form stored before it leaves
      done(record)
    }
  })
  const begun = { ...draft, starting: found?.value.starting ?? starting }
  memory.set(id, begun)
  notify()
  return begun
}

/**
 * The request is over. `back`: the user goes on writing, with a new key; with the request's own if it may have succeeded:
 * started unchanged, it is still the same request.
 */
export async function endForm<T>(draft: FormDraft<T>, back: boolean, key = newKey()): Promise<void> {
  if (!back) return removeForm(draft)
  const id = idOf(draft)
  const kept = { ...draft, key, starting: null }
  memory.set(id, kept)
  await transact<void>(({ forms }) => {
    forms.put(kept, id)
    forms.delete(startOf(id))
  })
  notify()
}

/** Whether the outcome of this key is still unknown, in any tab. */
export async function isStarting({ starting, ...place }: FormDraft<unknown>): Promise<boolean> {
  return (await readForm(place))?.starting?.key === starting?.key
}

const saveMs = 150

export interface FormState<T> {
  readonly draft: FormDraft<T>
  /** Whether the browser's store has answered: before that an empty form means nothing. */
  readonly isLoaded: boolean
  readonly change: (next: (value: T) => T) => void
  readonly begin: (body: unknown) => Promise<FormDraft<T>>
  readonly end: (draft: FormDraft<T>, back: boolean, key?: string) => Promise<void>
  readonly discard: () => Promise<void>
}

export function useFormDraft<T>(place: FormPlace, empty: T): FormState<T> {
  const [draft, setDraft] = useState(() => newForm(place, empty))
  const [isLoaded, setLoaded] = useState(false)
  const unsaved = useRef<{ draft: FormDraft<T>; timer: ReturnType<typeof setTimeout> }>(undefined)
  const flush = useCallback(async () => {
    const saving = unsaved.current
    if (!saving) return
    clearTimeout(saving.timer)
    await saveForm(saving.draft)
    if (unsaved.current === saving) unsaved.current = undefined
  }, [])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the page has a key, so the place never changes.
  useEffect(() => {
    const follow = async () => {
      const stored = await readForm<T>(place)
      setLoaded(true)
      // What is typed here is newer than what is stored.
      if (unsaved.current) return
      setDraft((current) => {
        if (!stored) return isSame(current.value, empty) ? current : newForm(place, empty)
        return stored.key === current.key && Boolean(stored.starting) === Boolean(current.starting)
          ? current
          : stored
      })
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
    (next: (value: T) => T) => {
      setDraft((current) => {
        const changed = changeForm(current, next(current.value))
        clearTimeout(unsaved.current?.timer)
        unsaved.current = { draft: changed, timer: setTimeout(() => void flush(), saveMs) }
        return changed
      })
    },
    [flush],
  )
  const forget = () => {
    clearTimeout(unsaved.current?.timer)
    unsaved.current = undefined
  }
  return {
    draft,
    isLoaded,
    change,
    begin: async (body) => {
      forget()
      const begun = await beginForm(draft, body)
      setDraft(begun)
      return begun
    },
    end: async (ended, back, key) => {
      forget()
      await endForm(ended, back, key)
    },
    discard: async () => {
      forget()
      setDraft(newForm(place, empty))
      await removeForm(place)
    },
  }
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
