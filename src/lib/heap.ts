/** A binary heap: the first by `order` is available at once, however many there are. */
export class Heap<T> {
  readonly #order: (one: T, other: T) => number
  readonly #items: T[] = []

  constructor(order: (one: T, other: T) => number) {
    this.#order = order
  }

  first(): T | undefined {
    return this.#items[0]
  }

  add(one: T): void {
    const items = this.#items
    let at = items.push(one) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      if (this.#order(items[above] as T, one) <= 0) break
      items[at] = items[above] as T
      at = above
    }
    items[at] = one
  }

  takeFirst(): T | undefined {
    const items = this.#items
    const first = items[0]
    const last = items.pop()
    if (last === undefined || items.length === 0) return first
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= items.length) break
      const right = below + 1
      if (right < items.length && this.#order(items[right] as T, items[below] as T) < 0) below = right
      if (this.#order(last, items[below] as T) <= 0) break
      items[at] = items[below] as T
      at = below
    }
    items[at] = last
    return first
  }
}
