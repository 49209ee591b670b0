/** As much of a browser's IndexedDB as the dashboard uses: stores and their upgrade, and transactions that wait as a browser's do. */

interface Asked {
  result: unknown
  onsuccess: (() => void) | null
}

type Rows = Map<string, unknown>
type Mode = 'readonly' | 'readwrite' | 'versionchange'

/** What a browser had stored before. */
interface Given {
  readonly version?: number
  readonly stores?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

export class FakeDatabase {
  readonly #stores: Map<string, Rows>
  #version: number
  /** A full disk: a transaction that writes is aborted. */
  full = false
  /** The work that another tab holds open, by store. */
  readonly #held = new Map<string, PromiseWithResolvers<void>>()
  /** Transactions that have not ended: one that writes runs alone on its stores. */
  readonly #open: { names: readonly string[]; mode: Mode; ended: Promise<void> }[] = []
  /** Every transaction, as it was opened. */
  readonly begun: { readonly names: readonly string[]; readonly mode: Mode }[] = []

  constructor({ version = 0, stores = {} }: Given = {}) {
    this.#version = version
    this.#stores = new Map(
      Object.entries(stores).map(([name, rows]) => [name, new Map(Object.entries(rows))]),
    )
  }

  /** Stands in for `indexedDB`. */
  readonly factory = {
    open: (_: string, version: number) => {
      const database = this.#database()
      const asked = {
        result: database,
        transaction: null as FakeTransaction | null,
        onupgradeneeded: null as (() => void) | null,
        onsuccess: null as (() => void) | null,
      }
      queueMicrotask(() => {
        if (this.#version >= version) return asked.onsuccess?.()
        this.#version = version
        asked.transaction = this.#begin([...this.#stores.keys()], 'versionchange')
        asked.onupgradeneeded?.()
        void asked.transaction.ended.then(() => asked.onsuccess?.())
      })
      return asked
    },
  }

  keysOf(store: string): string[] {
    return [...(this.#stores.get(store)?.keys() ?? [])]
  }

  /** As a transaction of another tab that writes to this store and does not end. */
  hold(store: string): void {
    this.#held.set(store, Promise.withResolvers<void>())
  }

  /** Ends what is held. */
  release(): void {
    for (const { resolve } of this.#held.values()) resolve()
    this.#held.clear()
  }

  #begin(names: readonly string[], mode: Mode): FakeTransaction {
    const overlaps = (other: { names: readonly string[]; mode: Mode }) =>
      other.names.some((name) => names.includes(name)) && (mode !== 'readonly' || other.mode !== 'readonly')
    const before = [
      ...this.#open.filter(overlaps).map(({ ended }) => ended),
      ...names.flatMap((name) => this.#held.get(name)?.promise ?? []),
    ]
    const transaction = new FakeTransaction(this.#stores, {
      mode,
      isFull: () => this.full,
      turn: Promise.all(before).then(() => {}),
    })
    const entry = { names, mode, ended: transaction.ended }
    this.begun.push({ names, mode })
    this.#open.push(entry)
    void transaction.ended.then(() => this.#open.splice(this.#open.indexOf(entry), 1))
    return transaction
  }

  #database() {
    return {
      objectStoreNames: { contains: (name: string) => this.#stores.has(name) },
      createObjectStore: (name: string) => this.#stores.set(name, new Map()),
      deleteObjectStore: (name: string) => this.#stores.delete(name),
      transaction: (names: readonly string[], mode: Mode) => this.#begin(names, mode),
      close: () => {},
    }
  }
}

interface Around {
  readonly mode: Mode
  readonly isFull: () => boolean
  readonly turn: Promise<void>
}

class FakeTransaction {
  oncomplete: (() => void) | null = null
  onabort: (() => void) | null = null
  #open = 0
  readonly #stores: ReadonlyMap<string, Rows>
  readonly #around: Around
  readonly #ended = Promise.withResolvers<void>()
  #aborted = false

  constructor(stores: ReadonlyMap<string, Rows>, around: Around) {
    this.#stores = stores
    this.#around = around
    this.#ask(() => undefined)
  }

  get ended(): Promise<void> {
    return this.#ended.promise
  }

  objectStore(name: string) {
    const rows = this.#stores.get(name) ?? new Map<string, unknown>()
    return {
      get: (key: string) => this.#ask(() => rows.get(key)),
      put: (value: unknown, key: string) => this.#ask(() => this.#put(rows, value, key)),
      delete: (key: string) => this.#ask(() => this.#change(() => rows.delete(key))),
      getAll: () => this.#ask(() => [...rows.values()]),
      openCursor: () => this.#walk(rows),
    }
  }

  #change(work: () => void): void {
    if (this.#around.mode === 'readonly') throw new Error('A transaction that reads has written.')
    work()
  }

  #put(rows: Rows, value: unknown, key: string): void {
    if (this.#around.isFull()) this.#aborted = true
    else this.#change(() => rows.set(key, structuredClone(value)))
  }

  #ask(work: () => unknown): Asked {
    const asked: Asked = { result: undefined, onsuccess: null }
    this.#open += 1
    void this.#around.turn.then(() => {
      asked.result = work()
      asked.onsuccess?.()
      this.#open -= 1
      if (this.#open === 0) queueMicrotask(() => this.#end())
    })
    return asked
  }

  #end(): void {
    if (this.#open > 0) return
    if (this.#aborted) this.onabort?.()
    else this.oncomplete?.()
    this.#ended.resolve()
  }

  #walk(rows: Rows): Asked {
    let keys: readonly string[] = []
    let at = 0
    const asked: Asked = this.#ask(() => {
      keys = [...rows.keys()]
      return cursorAt()
    })
    const cursorAt = () => {
      const key = keys[at]
      if (key === undefined) return null
      return {
        key,
        value: rows.get(key),
        delete: () => this.#change(() => rows.delete(key)),
        continue: () => {
          at += 1
          asked.result = cursorAt()
          asked.onsuccess?.()
        },
      }
    }
    return asked
  }
}

/** As much of `localStorage` as the dashboard uses; `full`: it takes nothing more. */
export class FakeStorage {
  readonly #rows = new Map<string, string>()
  full = false
  get length(): number {
    return this.#rows.size
  }
  key(at: number): string | null {
    return [...this.#rows.keys()][at] ?? null
  }
  getItem(name: string): string | null {
    return this.#rows.get(name) ?? null
  }
  setItem(name: string, text: string): void {
    if (this.full) throw new Error('The quota has been exceeded.')
    this.#rows.set(name, text)
  }
  removeItem(name: string): void {
    this.#rows.delete(name)
  }
}
