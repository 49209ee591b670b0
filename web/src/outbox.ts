/**
 * What a user is writing and sending, kept in this browser. A draft has its idempotency key from its first letter on, so
 * that two tabs, a reload or a restarted service repeat the same request; a changed draft gets a new key. What is being
 * sent stays here from before the request until its outcome is known.
 */

/** The chat and the user: drafts of one user are invisible to the next one in the same browser. */
export interface ChatPlace {
  readonly user_id: string
  readonly workspace_id: string
  readonly account_id: string
  readonly chat_id: string
}

export interface Draft extends ChatPlace {
  readonly text: string
  readonly file: File | null
  readonly key: string
  /** When the draft was started, to notice that another user has answered since. */
  readonly begun_at: string
}

export interface OutboxEntry extends Draft {
  readonly sent_at: string
}

/** `crypto.randomUUID` is missing where the dashboard is served without TLS. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

const databaseName = 'parley'
const channelName = 'parley.outbox'
const draftsStore = 'drafts'
const sendingStore = 'sending'
/** Forms of whole pages: `form-draft.ts`. */
const formsStore = 'forms'
const allStores = [draftsStore, sendingStore, formsStore]
/** Version 1 had no forms. */
const databaseVersion = 2

const placeOf = ({ user_id, workspace_id, account_id, chat_id }: ChatPlace) =>
  [user_id, workspace_id, account_id, chat_id].join(' ')

let opened: Promise<IDBDatabase | null> | undefined
/** Without IndexedDB (a private window, a full disk) drafts are kept only while the tab is open. */
const memory = { drafts: new Map<string, Draft>(), sending: new Map<string, OutboxEntry>() }
/** Called at sign-out, for what others keep in memory. */
const forgetting = new Set<() => void>()
export function onForget(forget: () => void): void {
  forgetting.add(forget)
}

let stored = true
/** The browser refused a write, as on a full disk: from then on what this tab has in memory is newer. */
let isFull = false

/** Whether drafts outlive this tab. */
export function isStored(): boolean {
  return stored && !isFull
}

function open(): Promise<IDBDatabase | null> {
  opened ??= new Promise<IDBDatabase | null>((resolve) => {
    const request = globalThis.indexedDB?.open(databaseName, databaseVersion)
    if (!request) return resolve(null)
    request.onupgradeneeded = () => {
      const { objectStoreNames } = request.result
      for (const name of allStores) {
        if (!objectStoreNames.contains(name)) request.result.createObjectStore(name)
      }
    }
    request.onsuccess = () => {
      // Another tab deletes the database at sign-out: it must not wait for this one.
      request.result.onversionchange = () => {
        request.result.close()
        opened = undefined
      }
      resolve(request.result)
    }
    request.onerror = () => resolve(null)
    request.onblocked = () => resolve(null)
  }).catch(() => null)
  return opened.then((database) => {
    stored = database !== null
    return database
  })
}

interface Stores {
  readonly drafts: IDBObjectStore
  readonly sending: IDBObjectStore
  readonly forms: IDBObjectStore
}

type Work<T> = (stores: Stores, done: (value: T) => void) => void

/** Runs the work in one transaction; undefined if the browser stores nothing. */
export async function transact<T>(work: Work<T>): Promise<{ value: T } | undefined> {
  const database = await open()
  if (!database) return undefined
  return new Promise((resolve) => {
    try {
      const transaction = database.transaction(allStores, 'readwrite')
      let value: { value: T } | undefined
      transaction.oncomplete = () => resolve(value)
      transaction.onabort = transaction.onerror = () => {
        isFull = true // guard: a full disk loses nothing that is being sent
        resolve(undefined)
      }
      const drafts = transaction.objectStore(draftsStore)
      const sending = transaction.objectStore(sendingStore)
      const forms = transaction.objectStore(formsStore)
      work({ drafts, sending, forms }, (result) => {
        value = { value: result }
      })
    } catch {
      stored = false
      resolve(undefined)
    }
  })
}

/** A page that is being left may end before the browser commits by itself. Nothing can be asked of the store after it. */
export function commitNow({ transaction }: { readonly transaction?: IDBTransaction }): void {
  transaction?.commit()
}

const channel = globalThis.BroadcastChannel ? new BroadcastChannel(channelName) : undefined
const listeners = new Set<() => void>()
channel?.addEventListener('message', () => notifyThisTab())

function notifyThisTab(): void {
  for (const listener of listeners) listener()
}

export function notify(): void {
  notifyThisTab()
  channel?.postMessage('changed')
}

/** Calls the listener after every change, in this tab or another. */
export function onOutboxChange(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function emptyDraft(place: ChatPlace): Draft {
  return { ...place, text: '', file: null, key: newKey(), begun_at: new Date().toISOString() }
}

export function changeDraft(draft: Draft, more: { text?: string; file?: File | null }): Draft {
  const isNew = draft.text === '' && draft.file === null
  return {
    ...draft,
    ...more,
    key: newKey(), // guard: key of a changed draft
    begun_at: isNew ? new Date().toISOString() : draft.begun_at,
  }
}

export async function readDraft(place: ChatPlace): Promise<Draft | undefined> {
  const id = placeOf(place)
  const found = await transact<Draft | undefined>(({ drafts }, done) => {
    const request = drafts.get(id)
    request.onsuccess = () => done(request.result)
  })
  return (isStored() ? undefined : memory.drafts.get(id)) ?? found?.value
}

/** Stores a draft; an empty one is removed. */
export async function saveDraft(draft: Draft): Promise<void> {
  const id = placeOf(draft)
  const isEmpty = draft.text === '' && draft.file === null
  if (isEmpty) memory.drafts.delete(id)
  else memory.drafts.set(id, draft)
  await transact<void>(({ drafts }) => {
    if (isEmpty) drafts.delete(id)
    else drafts.put(draft, id)
    commitNow(drafts)
  })
  channel?.postMessage('changed')
}

/** Turns the draft into what is being sent, before the request. A draft that another tab has sent meanwhile keeps its key. */
export async function beginSending(draft: Draft): Promise<OutboxEntry> {
  const entry: OutboxEntry = { ...draft, sent_at: new Date().toISOString() }
  const id = placeOf(draft)
  memory.sending.set(entry.key, entry)
  if (memory.drafts.get(id)?.key === draft.key) memory.drafts.delete(id)
  await transact<void>(({ drafts, sending }) => {
    sending.put(entry, entry.key) // guard: key stored before the request
    const current = drafts.get(id)
    current.onsuccess = () => {
      if ((current.result as Draft | undefined)?.key === draft.key) drafts.delete(id)
    }
  })
  notify()
  return entry
}

/** The outcome is known. `back`: nothing was sent, so the text returns to the composer unless there is a newer draft. */
export async function endSending(entry: OutboxEntry, back?: { readonly key: string }): Promise<void> {
  const id = placeOf(entry)
  const { sent_at: _, ...draft } = entry
  memory.sending.delete(entry.key)
  if (back && !memory.drafts.has(id)) memory.drafts.set(id, { ...draft, ...back })
  await transact<void>(({ drafts, sending }) => {
    sending.delete(entry.key)
    if (!back) return
    const current = drafts.get(id)
    current.onsuccess = () => {
      if (current.result === undefined) drafts.put({ ...draft, ...back }, id)
    }
  })
  notify()
}

/** What is being sent by this user, oldest first. */
export async function listSending(user_id: string): Promise<OutboxEntry[]> {
  const found = await transact<OutboxEntry[]>(({ sending }, done) => {
    const request = sending.getAll()
    request.onsuccess = () => done(request.result)
  })
  const entries = new Map((found?.value ?? []).map((entry) => [entry.key, entry]))
  if (!isStored()) for (const [key, entry] of memory.sending) entries.set(key, entry)
  return [...entries.values()]
    .filter((entry) => entry.user_id === user_id)
    .toSorted((a, b) => a.sent_at.localeCompare(b.sent_at))
}

/** Whether the outcome of this key is still unknown. */
export async function isSending(key: string): Promise<boolean> {
  const found = await transact<boolean>(({ sending }, done) => {
    const request = sending.count(key)
    request.onsuccess = () => done(request.result > 0)
  })
  return found?.value || (!isStored() && memory.sending.has(key))
}

/** Another user signed in to this browser before, and their session ended without a sign-out. */
export async function forgetOthers(user_id: string): Promise<void> {
  await transact<void>((stores) => {
    for (const store of [stores.drafts, stores.sending, stores.forms]) {
      const cursor = store.openCursor()
      cursor.onsuccess = () => {
        if (!cursor.result) return
        if ((cursor.result.value as Draft).user_id !== user_id) cursor.result.delete()
        cursor.result.continue()
      }
    }
  })
}

/** At sign-out: the next user of this browser finds nothing. */
export async function clearOutbox(): Promise<void> {
  memory.drafts.clear()
  memory.sending.clear()
  for (const forget of forgetting) forget()
  await transact<void>(({ drafts, sending, forms }) => {
    drafts.clear() // guard: sign out leaves no draft
    sending.clear()
    forms.clear() // guard: sign out leaves no form
  })
  notify()
}
