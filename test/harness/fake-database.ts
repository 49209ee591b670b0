/** As much of a browser's IndexedDB as the dashboard uses: two stores, transactions that complete once nothing is asked any more. */

interface Asked {
  result: unknown
  onsuccess: (() => void) | null
}

type Rows = Map<string, unknown>

export class FakeDatabase {
  readonly #stores = new Map<string, Rows>()

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
      createObjectStore: (name: string) => this.#stores.set(name, new Map()),
      transaction: () => new FakeTransaction(this.#stores),
      close: () => {},
    }
  }
}

class FakeTransaction {
  oncomplete: (() => void) | null = null
  #open = 0
  readonly #stores: ReadonlyMap<string, Rows>

  constructor(stores: ReadonlyMap<string, Rows>) {
    this.#stores = stores
    this.#ask(() => undefined)
  }

  objectStore(name: string) {
    const rows = this.#stores.get(name) ?? new Map<string, unknown>()
    return {
      get: (key: string) => this.#ask(() => rows.get(key)),
      put: (value: unknown, key: string) => this.#ask(() => rows.set(key, structuredClone(value))),
      delete: (key: string) => this.#ask(() => rows.delete(key)),
      count: (key: string) => this.#ask(() => (rows.has(key) ? 1 : 0)),
      getAll: () => this.#ask(() => [...rows.values()]),
      clear: () => this.#ask(() => rows.clear()),
      openCursor: () => this.#walk(rows),
    }
  }

  #ask(work: () => unknown): Asked {
    const asked: Asked = { result: undefined, onsuccess: null }
    this.#open += 1
    queueMicrotask(() => {
      asked.result = work()
      asked.onsuccess?.()
      this.#open -= 1
      if (this.#open === 0) queueMicrotask(() => this.#open === 0 && this.oncomplete?.())
    })
    return asked
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
