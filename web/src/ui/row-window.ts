/** Of a long list, only the rows in sight and a few beyond them are rendered. */
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  type VirtualItem,
  Virtualizer,
  type VirtualizerOptions,
} from '@tanstack/react-virtual'
import { type RefObject, useLayoutEffect, useState } from 'react'
import { SharedState, useShared } from '../data/shared-state.ts'

interface View {
  readonly items: readonly VirtualItem[]
  /** Of all rows. */
  readonly height: number
  /** The first one in sight. */
  readonly top: number
  /** What stands above the rows and scrolls with them. */
  readonly margin: number
}

interface Layout {
  /** A guess where rows are measured. */
  readonly rowPx: number
  readonly overscan: number
  readonly gap?: number
  readonly paddingEnd?: number
}

class RowWindow<Row> {
  readonly view = new SharedState<View>({ items: [], height: 0, top: 0, margin: 0 })
  readonly #virtual: Virtualizer<HTMLElement, Element>
  #place: HTMLElement | null = null

  constructor({ rowPx, ...layout }: Layout) {
    this.#virtual = new Virtualizer<HTMLElement, Element>({
      ...layout,
      count: 0,
      estimateSize: () => rowPx,
      getScrollElement: () => this.#place,
      observeElementRect,
      observeElementOffset,
      scrollToFn: elementScroll,
      onChange: () => this.#look(),
    })
  }

  mount(): () => void {
    return this.#virtual._didMount()
  }

  scrollIn(place: HTMLElement | null, scrollMargin: number): void {
    this.#place = place
    if (scrollMargin !== this.#virtual.options.scrollMargin) this.#change({ scrollMargin })
    this.#virtual._willUpdate()
    this.#look()
  }

  list(rows: readonly Row[], keyOf: (row: Row) => string): void {
    const getItemKey = (at: number) => (rows[at] === undefined ? at : keyOf(rows[at]))
    this.#change({ count: rows.length, getItemKey })
  }

  #change(options: Partial<VirtualizerOptions<HTMLElement, Element>>): void {
    this.#virtual.setOptions({ ...this.#virtual.options, ...options })
  }

  show = (index: number) => this.#virtual.scrollToIndex(index, { align: 'auto' })

  measure = (element: Element | null) => this.#virtual.measureElement(element)

  #look(): void {
    const before = this.view.get()
    const [items, height] = [this.#virtual.getVirtualItems(), this.#virtual.getTotalSize()]
    const top = this.#virtual.range?.startIndex ?? 0
    const { scrollMargin: margin } = this.#virtual.options
    const isSame = items === before.items && height === before.height
    if (isSame && top === before.top && margin === before.margin) return
    this.view.set({ items, height, top, margin })
  }
}

interface Wanted<Row> extends Layout {
  /** Pass the same array while nothing changes: the window lays a new array out again and renders without end. */
  readonly rows: readonly Row[]
  /** The same function each time. */
  readonly keyOf: (row: Row) => string
  /** What scrolls. */
  readonly place: RefObject<HTMLElement | null>
  /** What has the rows, if other things scroll with them. */
  readonly list?: RefObject<HTMLElement | null>
}

export function useRowWindow<Row>({ rows, keyOf, place, list, ...layout }: Wanted<Row>) {
  const [shown] = useState(() => new RowWindow<Row>(layout))
  const { items, ...view } = useShared(shown.view)
  useLayoutEffect(() => shown.mount(), [shown])
  useLayoutEffect(() => shown.list(rows, keyOf), [shown, rows, keyOf])
  // After each rendering: what scrolls may have appeared with it, and what stands above may have grown.
  useLayoutEffect(() => shown.scrollIn(place.current, list?.current?.offsetTop ?? 0))
  const { show, measure } = shown
  return { items, ...view, first: items[0]?.index ?? 0, last: items.at(-1)?.index ?? 0, show, measure }
}
