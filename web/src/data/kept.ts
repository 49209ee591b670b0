/**
 * What a user is typing, kept in this browser until it is sent or saved. It has its idempotency key from its first letter on, so
 * that two tabs, a reload or a restarted service repeat the same request; what is changed gets a new key.
 */
import { notify, onStoreChange, read, removeAll, removeOthers, update } from './browser-store.ts'
import { emptyJournal, readJournal, removeJournal, writeJournal } from './journal.ts'
import { idOf, type Kept, type Place } from './records.ts'
import { SharedState } from './shared-state.ts'

/** `crypto.randomUUID` is missing where the dashboard is served without TLS. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)

const isEmpty = ({ value, files }: Kept, empty: unknown) => files.length === 0 && isSame(value, empty)

export function newKept<T>({ user_id, workspace_id, kind, of }: Place, value: T): Kept<T> {
  const [key, draft] = [newKey(), newKey()]
  const begun_at = new Date().toISOString()
  return { user_id, workspace_id, kind, of, value, files: [], key, draft, count: 0, begun_at }
}

export function changeKept<T>(kept: Kept<T>, more: { value?: T; files?: readonly File[] }): Kept<T> {
  return {
    ...kept,
    ...more,
    key: newKey(), // guard: key of what is changed
    count: Math.max(Date.now(), kept.count + 1),
  }
}

/** Whether a value from the journal has the form of this one. */
function isLike(value: unknown, model: unknown): boolean {
  if (model === null || model === undefined) return true
  if (Array.isArray(model)) return Array.isArray(value)
  if (typeof model !== 'object') return typeof value === typeof model
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.entries(model).every(([name, each]) => isLike((value as Record<string, unknown>)[name], each))
}

function fromJournal<T>(place: Place, empty: T, stored?: Kept<T>): Kept<T> | undefined {
  const found = readJournal(idOf(place)) as Omit<Kept<T>, 'files'> | undefined
  if (!found || !isLike(found.value, empty)) return undefined
  if (stored && stored.count >= found.count) return undefined // guard: the newer one counts
  return { ...found, files: stored?.draft === found.draft ? stored.files : [] } // guard: files stay where the store has them
}

/** What is typed at this place, by the store or the journal. */
export async function readKept<T>(place: Place, empty: T): Promise<Kept<T> | undefined> {
  const id = idOf(place)
  const stored = (await read('kept', id)) as Kept<T> | undefined
  const newer = fromJournal(place, empty, stored)
  if (!newer) {
    removeJournal('kept', id, stored?.count)
    return stored
  }
  await saveKept(newer, empty)
  return isEmpty(newer, empty) ? undefined : newer
}

/** Stores what is typed, unless another tab has stored something newer; what is empty is removed. Whether it outlives the tab. */
export async function saveKept<T>(kept: Kept<T>, empty: T): Promise<boolean> {
  const id = idOf(kept)
  const { stored } = await update({ kept: id }, ({ kept: before }) => ({
    kept: before && before.count > kept.count ? before : isEmpty(kept, empty) ? undefined : kept,
  }))
  if (stored) removeJournal('kept', id, kept.count) // guard: what is stored leaves the journal
  notify(id, { typed: true })
  return stored
}

/** Removes what is kept at a place. With `saved`, only up to that change: what the user has typed since stays. */
async function removeKept(place: Place, saved?: Kept): Promise<void> {
  const id = idOf(place)
  const until = saved?.count ?? Number.POSITIVE_INFINITY
  // guard: what was typed after a save stays
  await update({ kept: id }, ({ kept }) => ({ kept: kept && kept.count > until ? kept : undefined }))
  removeJournal('kept', id, until)
  notify(id)
}

const saveMs = 150

export interface KeptState<T> {
  readonly kept: Kept<T>
  /** Whether the browser's store has answered: before that an empty field means nothing. */
  readonly isLoaded: boolean
  readonly isSaved: boolean
}

/** What is typed at one place of one tab, in step with the browser's store and with other tabs. */
export interface Keeper<T> {
  readonly place: Place
  readonly shown: SharedState<KeptState<T>>
  readonly change: (next: (value: T) => T, files?: (before: readonly File[]) => readonly File[]) => void
  /** Empties the place, but not the store: what was typed is being sent. */
  readonly clear: () => void
  /** Removes it; what was saved only if nothing was typed since. */
  readonly discard: (saved?: Kept<T>) => Promise<void>
  readonly save: () => Promise<void>
  readonly isEmpty: () => boolean
  /** Whether all of it outlives the page. */
  readonly journal: () => boolean
}

/** The places that are shown or about to be, and those that are not but have something to store. Each has one keeper in a tab. */
const open = new Map<string, Pick<Keeper<unknown>, 'isEmpty' | 'journal' | 'save' | 'clear'>>()

/** What becomes of what is typed at open places. */
export type Fate = 'nothing' | 'kept' | 'lost'

/** At the end of the page or the session. `nothing`: no place has any text. */
export function keepAll(): Fate {
  let fate: Fate = 'nothing'
  for (const each of open.values()) {
    if (!each.journal()) fate = 'lost'
    else if (fate === 'nothing' && !each.isEmpty()) fate = 'kept'
    void each.save()
  }
  return fate
}

/** How often a keeper took what was typed. */
export let changes = 0

/** How many fields have a text that ends with the page, because no keeper has it. */
let unkept = 0

/** Until the returned function is called. */
export function noteUnkept(): () => void {
  unkept++
  return () => void unkept--
}

export const hasUnkept = () => unkept > 0

globalThis.addEventListener?.('pagehide', () => keepAll())
globalThis.document?.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'hidden') keepAll()
})
onStoreChange(({ at }) => {
  if (at === null) for (const each of open.values()) each.clear()
})

/** At sign-out: the next user of this browser finds nothing. */
export async function forgetAll(): Promise<void> {
  for (const each of open.values()) each.clear() // guard: sign out drops what is not stored
  emptyJournal(() => true)
  await removeAll()
  notify(null)
}

/** Another user signed in to this browser before, and their session ended without a sign-out. */
export async function forgetOthers(user_id: string): Promise<void> {
  emptyJournal((theirs) => theirs !== user_id)
  await removeOthers(user_id)
}

const same = <T>(before: T) => before

/** What was typed before the store answered belongs to what it had. */
function join<T>(stored: T, typed: T): T {
  if (typeof stored === 'string' && typeof typed === 'string') return `${stored}${typed}` as T
  return typeof stored === 'object' && typeof typed === 'object' && typed !== null
    ? { ...stored, ...typed }
    : typed
}

export function keep<T>(place: Place, empty: T): Keeper<T> {
  const id = idOf(place)
  const earlier = open.get(id) as Keeper<T> | undefined
  if (earlier) return earlier
  const keeper = newKeeper(place, empty)
  // Before anything follows it: two components that appear together ask for it in the same rendering.
  open.set(id, keeper) // guard: one keeper of a place
  return keeper
}

function newKeeper<T>(place: Place, empty: T): Keeper<T> {
  const id = idOf(place)
  const kept = fromJournal(place, empty) ?? newKept(place, empty)
  let timer: ReturnType<typeof setTimeout> | undefined
  const shown = new SharedState<KeptState<T>>(
    { kept, isLoaded: false, isSaved: true },
    {
      follow: () => {
        open.set(id, keeper)
        void follow()
        const stop = onStoreChange(({ at, typed, own }) => {
          // After an own save the store has what is shown here.
          if (at === id && !(typed && own)) void follow() // guard: an own save is not read again
        })
        return () => {
          stop()
          void keeper.save()
        }
      },
    },
  )
  const set = (more: Partial<KeptState<T>>) => shown.set({ ...shown.get(), ...more })
  const put = (changed: Kept<T>) => {
    set({ kept: changed, isSaved: false })
    clearTimeout(timer)
    timer = setTimeout(() => void keeper.save(), saveMs)
    open.set(id, keeper)
  }
  const settle = () => {
    clearTimeout(timer)
    // guard: a keeper that goes leaves the next one
    if (!shown.isFollowed() && open.get(id) === keeper) open.delete(id)
  }
  const follow = async () => {
    const stored = await readKept(place, empty)
    const { isLoaded, isSaved, kept } = shown.get()
    const isCurrent = stored
      ? stored.draft === kept.draft && stored.count === kept.count
      : isEmpty(kept, empty)
    set({ isLoaded: true, ...(isSaved && !isCurrent && { kept: stored ?? newKept(place, empty) }) })
    // What is typed here is newer than what is stored, and what was typed before the store answered belongs to it.
    if (isSaved || isLoaded || !stored || stored.draft === kept.draft) return
    const files = [...stored.files, ...kept.files]
    put(changeKept(stored, { value: join(stored.value, kept.value), files }))
  }
  const keeper: Keeper<T> = {
    place,
    shown,
    change: (next, files = same) => {
      changes++
      const { kept } = shown.get()
      // The first letter begins a draft, also after the last one was emptied.
      const begun = isEmpty(kept, empty) ? { ...newKept(place, empty), count: kept.count } : kept
      put(changeKept(begun, { value: next(kept.value), files: files(kept.files) }))
    },
    clear: () => {
      set({ kept: newKept(place, empty), isSaved: true })
      settle()
    },
    discard: async (saved) => {
      if (saved && saved.count !== shown.get().kept.count) return
      keeper.clear()
      await removeKept(place, saved)
    },
    save: async () => {
      clearTimeout(timer)
      const { kept: saving, isSaved } = shown.get()
      if (isSaved) return settle()
      const stored = await saveKept(saving, empty)
      // What was typed meanwhile is saved after its own pause.
      if (shown.get().kept !== saving || !stored) return
      set({ isSaved: true })
      settle()
    },
    isEmpty: () => isEmpty(shown.get().kept, empty),
    // guard: what is not stored is in the journal
    journal: () => shown.get().isSaved || writeJournal('kept', id, shown.get().kept),
  }
  return keeper
}
