/** A value outside of React that any number of components show. */
import { useSyncExternalStore } from 'react'

/** Where the value comes from, if not only from `set`. */
interface Source<T> {
  /** Reads it while nothing follows it. */
  readonly read?: (before: T) => T
  /** Sets it while something follows it, until the result is called. */
  readonly follow?: (set: (value: T) => void) => () => void
}

export class SharedState<T> {
  #value: T
  readonly #source: Source<T>
  readonly #listeners = new Set<() => void>()
  #stop: (() => void) | undefined

  constructor(value: T, source: Source<T> = {}) {
    this.#value = value
    this.#source = source
  }

  get = (): T => {
    if (this.#listeners.size === 0 && this.#source.read) this.#value = this.#source.read(this.#value)
    return this.#value
  }

  set = (value: T): void => {
    this.#value = value
    for (const listener of this.#listeners) listener()
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) this.#stop = this.#source.follow?.(this.set)
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#stop?.()
    }
  }

  /** Whether anything shows it. */
  isFollowed(): boolean {
    return this.#listeners.size > 0
  }
}

export function useShared<T>(state: SharedState<T>): T {
  return useSyncExternalStore(state.subscribe, state.get, state.get)
}
