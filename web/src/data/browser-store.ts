/**
 * This browser's store (IndexedDB): what is typed, and what is being sent. A write reads its records and replaces them in one
 * transaction. What the browser refuses to store, as on a full disk or in some private windows, lives as long as its tab.
 */
import { type Kept, keyOf, type Underway } from './records.ts'

/** One record of each store, which change together. */
interface Pair {
  readonly kept?: Kept | undefined
  readonly underway?: Underway | undefined
}

type StoreName = keyof Pair

interface Keys {
  /** The place: whose text, and where it is typed. */
  readonly kept?: string
  readonly underway?: string
}

const databaseName = 'parley'
/** Version 2 had messages and forms apart; their records move. Version 3 was never released. */
const databaseVersion = 4

let opened: Promise<IDBDatabase | null> | undefined
/** What could not be stored is newer than what is. Undefined: removed. */
const overlay = new Map<string, Kept | Underway | undefined>()
let isThere = true
let isFull = false

/** Whether what is typed outlives this tab. */
export function isStored(): boolean {
  return isThere && !isFull
}

function open(): Promise<IDBDatabase | null> {
  opened ??= new Promise<IDBDatabase | null>((resolve) => {
    const request = globalThis.indexedDB?.open(databaseName, databaseVersion)
    if (!request) return resolve(null)
    request.onupgradeneeded = () => upgrade(request.result, request.transaction)
    request.onsuccess = () => {
      const database = request.result
      // A newer version in another tab must not wait for this one.
      database.onversionchange = () => {
        database.close()
        opened = undefined
      }
      // Also after a tab with the previous version has made it wait.
      opened = Promise.resolve(database)
      resolve(database)
    }
    request.onerror = () => resolve(null)
    request.onblocked = () => resolve(null)
  }).catch(() => null)
  return opened.then((database) => {
    isThere = database !== null
    return database
  })
}

function upgrade(database: IDBDatabase, transaction: IDBTransaction | null): void {
  const had = (name: string) => database.objectStoreNames.contains(name)
  for (const name of ['kept', 'underway']) if (!had(name)) database.createObjectStore(name)
  if (!transaction) return
  for (const name of ['drafts', 'sending', 'forms'].filter(had)) {
    const old = transaction.objectStore(name).openCursor()
    old.onsuccess = () => {
      if (!old.result) return database.deleteObjectStore(name)
      const moved = moveRecord(old.result.value as OldRecord)
      if (moved) transaction.objectStore(moved.store).put(moved.record, moved.key)
      old.result.continue()
    }
  }
}

/** As much of a record of version 2 as matters: a draft or a send of a chat, a form, or the start of a form. */
interface OldRecord {
  readonly user_id: string
  readonly workspace_id: string
  readonly account_id?: string
  readonly chat_id?: string
  readonly form?: string
  readonly text?: string
  readonly file?: File | null
  readonly value?: unknown
  readonly key?: string
  readonly begun_at?: string
  readonly sent_at?: string
  readonly starting?: { readonly key: string; readonly body: unknown; readonly at: string } | null
}

function moveRecord(old: OldRecord): { store: StoreName; key: string; record: unknown } | undefined {
  const { user_id, workspace_id, account_id, chat_id, form, text, key = '', starting } = old
  const [kind, of] = form === undefined ? ['chat', `${account_id} ${chat_id}`] : ['form', form]
  const place = { user_id, workspace_id, kind, of }
  const id = `${user_id} ${workspace_id} ${kind} ${of}`
  const own = { ...place, files: old.file ? [old.file] : [], part: 0, key, draft: key, count: 1 }
  if (form !== undefined && starting) {
    const record = { ...place, files: [], part: 0, draft: '', count: 1, ...starting }
    return { store: 'underway', key: id, record }
  }
  if (old.sent_at !== undefined) {
    return { store: 'underway', key, record: { ...own, body: text, at: old.sent_at } }
  }
  const record = { ...own, value: form === undefined ? text : old.value, begun_at: old.begun_at ?? '' }
  return { store: 'kept', key: id, record }
}

/** Runs the work in one transaction; undefined if the browser did not do it. */
async function transact<T>(
  names: readonly StoreName[],
  mode: IDBTransactionMode,
  work: (stores: (name: StoreName) => IDBObjectStore, done: (value: T) => void) => void,
): Promise<{ value: T } | undefined> {
  const database = await open()
  if (!database) return undefined
  return new Promise((resolve) => {
    try {
      const transaction = database.transaction(names, mode)
      let value: { value: T } | undefined
      transaction.oncomplete = () => resolve(value)
      transaction.onabort = transaction.onerror = () => resolve(undefined)
      work(
        (name) => transaction.objectStore(name),
        (result) => {
          value = { value: result }
        },
      )
    } catch {
      isThere = false
      resolve(undefined)
    }
  })
}

const overlayKey = (name: StoreName, key: string) => `${name} ${key}`
function withOverlay<N extends StoreName>(name: N, key: string, stored: Pair[N]): Pair[N] {
  const over = overlayKey(name, key)
  return overlay.has(over) ? (overlay.get(over) as Pair[N]) : stored
}

/** One record, of a store that no other work needs: a save waits for few reads, and a read for few saves. */
export async function read<N extends StoreName>(name: N, key: string): Promise<Pair[N]> {
  // guard: a read hinders no other
  const found = await transact<Pair[N]>([name], 'readonly', (store, done) => {
    const request = store(name).get(key)
    request.onsuccess = () => done(request.result)
  })
  return withOverlay(name, key, found?.value)
}

/** What is being sent, by anyone. */
export async function readUnderway(): Promise<Underway[]> {
  const found = await transact<Underway[]>(['underway'], 'readonly', (store, done) => {
    const request = store('underway').getAll()
    request.onsuccess = () => done(request.result)
  })
  const stored = (found?.value ?? []).filter((each) => !overlay.has(overlayKey('underway', keyOf(each))))
  const own = [...overlay].filter(([key]) => key.startsWith('underway '))
  return [...stored, ...own.flatMap(([, record]) => (record ? [record as Underway] : []))]
}

/**
 * Replaces the records of these keys by what `next` makes of them; undefined removes one, the same leaves it. `stored`: whether
 * it outlives this tab.
 */
export async function update(keys: Keys, next: (before: Pair) => Pair): Promise<Pair & { stored: boolean }> {
  const names = (['kept', 'underway'] as const).filter((name) => keys[name] !== undefined)
  const apply = (records: readonly unknown[]): { before: Pair; after: Pair } => {
    const found = names.map((name, at) => [name, withOverlay(name, keys[name] ?? '', records[at] as Kept)])
    const before: Pair = Object.fromEntries(found)
    return { before, after: next(before) }
  }
  const done = await transact<Pair>(names, 'readwrite', (store, tell) => {
    const asked = names.map((name) => store(name).get(keys[name] ?? ''))
    // The requests of a transaction succeed one after the other.
    const last = asked.at(-1)
    if (!last) return
    last.onsuccess = () => {
      const { before, after } = apply(asked.map(({ result }) => result))
      for (const name of names) {
        const [key, record] = [keys[name] ?? '', after[name]]
        if (record === before[name] && !overlay.has(overlayKey(name, key))) continue
        if (record === undefined) store(name).delete(key)
        else store(name).put(record, key)
      }
      tell(after)
    }
  })
  if (done) {
    for (const name of names) overlay.delete(overlayKey(name, keys[name] ?? ''))
    if (names.some((name) => done.value[name] !== undefined)) isFull = false
    return { ...done.value, stored: true }
  }
  isFull = true
  // What is already stored stays the base of what this tab does with it.
  const stored = await Promise.all(names.map((name) => read(name, keys[name] ?? '')))
  const { after } = apply(stored)
  for (const name of names) {
    overlay.set(overlayKey(name, keys[name] ?? ''), after[name]) // guard: a full disk loses nothing that is being sent
  }
  return { ...after, stored: false }
}

/** Removes every record of these users, or of all. */
async function removeOf(isTheirs: (user_id: string) => boolean): Promise<void> {
  for (const [key, record] of overlay) if (record && isTheirs(record.user_id)) overlay.delete(key)
  const names = ['kept', 'underway'] as const
  await transact<void>(names, 'readwrite', (store) => {
    for (const name of names) {
      const cursor = store(name).openCursor()
      cursor.onsuccess = () => {
        if (!cursor.result) return
        if (isTheirs((cursor.result.value as Kept).user_id)) cursor.result.delete() // guard: sign out leaves nothing
        cursor.result.continue()
      }
    }
  })
}

export const removeOthers = (user_id: string) => removeOf((theirs) => theirs !== user_id)
export const removeAll = () => removeOf(() => true)

/** The place or key that changed, and whether only what is typed there did; `null`: everything was removed. */
interface Change {
  readonly at: string | null
  readonly typed: boolean
  /** It was changed in this tab. */
  readonly own: boolean
}

const channel = globalThis.BroadcastChannel ? new BroadcastChannel('parley.store') : undefined
const listeners = new Set<(change: Change) => void>()
channel?.addEventListener('message', ({ data }: MessageEvent) => {
  if (typeof data?.typed === 'boolean') hear({ at: data.at ?? null, typed: data.typed, own: false })
})

function hear(change: Change): void {
  for (const listener of listeners) listener(change)
}

export function notify(at: string | null, { typed = false } = {}): void {
  hear({ at, typed, own: true })
  channel?.postMessage({ at, typed })
}

/** Calls the listener after every change, in this tab or another. */
export function onStoreChange(listener: (change: Change) => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
