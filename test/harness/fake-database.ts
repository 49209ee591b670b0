/** As much of a browser's IndexedDB as the dashboard uses: a few stores, transactions that complete once nothing is asked any more. */

interface Asked {
  result: unknown
  onsuccess: (() => void) | null
}

type Rows = Map<string, unknown>

export class FakeDatabase {
  readonly #stores = new Map<string, Rows>()
  /** A full disk: a transaction that writes is aborted. */
  full = false
  /** Ends with the last transaction: those that write run one after another. */
  #turn = Promise.resolve()

  /** Stands in for `indexedDB`. */
  readonly factory = {
    open: () => {
      const asked = { result: this.#database(), onupgradeneeded: null, onsuccess: null } as {
        result: unknown
        onupgradeneeded: (() => void) | null
        onsuccess: (() => void) | null
      }
      queueMicrotask(() => {
        if (this.#stores.size === 0) asked.onupgradeneeded?.()
        asked.onsuccess?.()
      })
      return asked
    },
  }

  keysOf(store: string): string[] {
    return [...(this.#stores.get(store)?.keys() ?? [])]
  }

  #database() {
    return {
      objectStoreNames: { contains: (name: string) => this.#stores.has(name) },
      createObjectStore: (name: string) => this.#stores.set(name, new Map()),
      transaction: () => {
        const transaction = new FakeTransaction(this.#stores, { isFull: () => this.full, turn: this.#turn })
        this.#turn = transaction.ended
        return transaction
      },
      close: () => {},
    }
  }
}

class FakeTransaction {
  oncomplete: (() => void) | null = null
  onabort: (() => void) | null = null
  #open = 0
  readonly #stores: ReadonlyMap<string, Rows>
  readonly #isFull: () => boolean
  readonly #turn: Promise<void>
  readonly #ended = Promise.withResolvers<void>()
  #aborted = false

  constructor(
    stores: ReadonlyMap<string, Rows>,
    { isFull, turn }: { isFull: () => boolean; turn: Promise<void> },
  ) {
    this.#stores = stores
    this.#isFull = isFull
    this.#turn = turn
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
      delete: (key: string) => this.#ask(() => rows.delete(key)),
      count: (key: string) => this.#ask(() => (rows.has(key) ? 1 : 0)),
      getAll: () => this.#ask(() => [...rows.values()]),
      clear: () => this.#ask(() => rows.clear()),
      openCursor: () => this.#walk(rows),
    }
  }

  #put(rows: Rows, value: unknown, key: string): void {
    if (!this.#isFull()) rows.set(key, structuredClone(value))
    else this.#aborted = true
  }

  #ask(work: () => unknown): Asked {
    const asked: Asked = { result: undefined, onsuccess: null }
    this.#open += 1
    void this.#turn.then(() => {
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
    const keys = [...rows.keys()]
    let at = 0
    const asked: Asked = this.#ask(() => cursorAt())
    const cursorAt = () => {
      const key = keys[at]
      if (key === undefined) return null
      return {
        value: rows.get(key),
        delete: () => rows.delete(key),
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
